"""What may be told, and what every notifier promises: nothing but a chance to look sooner."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

Topic = Literal["ready", "ended", "nodes", "cancel"]
Reach = Literal["process", "host", "hosts"]


class Hint(NamedTuple):
    """`ready`: there may be work; `ended`, `cancel`: these jobs; `nodes`: one came, changed or went.

    Without ids it says: look for yourself.
    """

    topic: Topic
    ids: tuple[int, ...] = ()


Callback = Callable[[tuple[Hint, ...]], None]


class Notifier(Protocol):
    """Carries hints from anybody to everybody; hints may be lost, doubled or late."""

    reach: Reach
    """From how far hints come here: while it is `process`, whoever waits looks often."""
    reason: str
    """Why the reach is not wider; empty when it is all that was asked for."""

    def start(self) -> None:
        """Begins to listen, on the running event loop; starting twice is fine."""

    def stop(self) -> None:
        """Ends it; stopping twice or before starting is fine, and it may be started again."""

    async def settled(self) -> None:
        """Returns when the start has come to an end, well or badly; where it takes no time, at once."""

    def tell(self, hints: Sequence[Hint]) -> None:
        """From any thread; never raises, never waits. While not started, nothing is told."""

    def tell_others(self, hints: Sequence[Hint]) -> None:
        """Like `tell`, for who has told the listeners of this process directly."""

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Calls back on the event loop with at most one hint per topic; the answer ends it."""


def merged(hints: Iterable[Hint], most_ids: int) -> tuple[Hint, ...]:
    """One hint per topic, in the order first told, each id once; more than `most_ids` become a hint without ids."""
    found: dict[Topic, dict[int, None] | None] = {}
    for topic, ids in hints:
        known = found.setdefault(topic, {})
        if known is None:
            continue
        known.update(dict.fromkeys(ids))
        if not ids or len(known) > most_ids:
            found[topic] = None
    return tuple(Hint(topic, tuple(known or ())) for topic, known in found.items())
