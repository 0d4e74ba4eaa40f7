"""The door for programs without an event loop: every call is one transaction on the caller's own thread."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from paceline.bus.protocol import Hint
from paceline.client.bound import Bound
from paceline.client.finding import Target, row_of
from paceline.client.options import edges_of, terms_of
from paceline.core.submission import Wish
from paceline.payloads import encode
from paceline.store.protocol import Store, Tx
from paceline.units.control import cancel, replay
from paceline.units.submit import submit

NAMED_IN_HINTS = 64


class Direct:
    """Submits, cancels and replays; `tell` carries hints to whoever listens on this host."""

    def __init__(self, store: Store, tell: Callable[[Sequence[Hint]], object], *, max_pending: int) -> None:
        self.store = store
        self._tell = tell
        self._bound = Bound(max_pending)

    def submit(self, target: Target, input: object, after: Iterable[object], options: Mapping[str, object]) -> int:
        """One job; when this returns it is durable."""
        terms = terms_of(target.number, target.defaults, options, self.store.clock.now())
        wish = Wish(terms, target.check(input), edges_of(after))
        job = self.store.execute(lambda tx: submit(tx, [wish], self._bound.check))[0]
        self._tell([Hint("ready")])
        return job

    def cancel(self, job: int, reason: str = "cancelled") -> list[int]:
        """Ends a job and its tree; answers every job that ended because of it, none when it had ended before."""

        def end(tx: Tx) -> list[int]:
            row_of(tx, job)
            return [one for one, _ in cancel(tx, job, reason)]

        ended = self.store.execute(end)
        if ended:
            self._tell([Hint("ended", tuple(ended)), Hint("cancel", tuple(ended[:NAMED_IN_HINTS]))])
        return ended

    def retry(self, job: int, *, input: object = None, changed: bool = False) -> list[int]:
        """Tries a dead job again, with another input when `changed`; answers every job that lives again."""

        def again(tx: Tx) -> list[int]:
            row_of(tx, job)
            return replay(tx, job, encode(input, where=f"input of j{job}") if changed else None)

        alive = self.store.execute(again)
        self._tell([Hint("ready")])
        return alive
