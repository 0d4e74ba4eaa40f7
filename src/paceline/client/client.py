"""The door to one store: everything a program may ask of it, whether a node runs beside it or not."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

from paceline.bus.protocol import Hint, Notifier
from paceline.client.bound import Bound
from paceline.client.bulk import accept_in_chunks
from paceline.client.explaining import Explainer
from paceline.client.finding import Target as Target
from paceline.client.finding import find_target, no_such_job, row_of
from paceline.client.following import LogLine, filter_of, follow_events, logs_of
from paceline.client.gather import Gatherer
from paceline.client.graph import Call, wishes_of
from paceline.client.job import Job, Outcome, value_of
from paceline.client.options import FAR, edges_of, job_number, patience, terms_of, whole
from paceline.client.reading import Detail, dead, list_jobs, parse_state, show
from paceline.client.visiting import accept_in
from paceline.client.waiting import Waiting
from paceline.core.explanation import Explanation
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.model import UNIT_ROWS
from paceline.core.names import check_name, shown
from paceline.core.problem import Problem
from paceline.core.submission import Wish
from paceline.errors import PacelineError, WaitTimedOut, as_error
from paceline.events import Event, Severity
from paceline.store.protocol import Store, Tx, Visits
from paceline.units.control import cancel, replay
from paceline.units.submit import submit

AT_ONCE = 64
"""Up to so many results are read right here; more are read beside the event loop."""
NOTHING: Mapping[int, str] = {}


@contextmanager
def speaking() -> Iterator[None]:
    """Problems that decisions raise leave here as the errors that callers catch."""
    try:
        yield
    except PacelineError:
        raise
    except Problem as problem:
        raise as_error(problem) from None


class Client:
    """Submits, waits, looks, cancels, replays.

    `poke` and `attend` tell a node in this process, `home` is the number of its life; 0: there is none.
    """

    def __init__(
        self,
        store: Store,
        notifier: Notifier,
        *,
        max_pending: int,
        poke: Callable[[], None],
        attend: Callable[[], None] = lambda: None,
        visits: Visits | None = None,
        home: Callable[[], int] = lambda: 0,
    ) -> None:
        self.store = store
        self._visits = visits
        self.waiting = Waiting(store, self._hears)
        self._notifier = notifier
        self._poke = poke
        self._attend = attend
        self._home = home
        self._bound = Bound(max_pending)
        self._gatherer = Gatherer(store, self._submit, poke)
        self._stop_listening = notifier.listen(self._on_hints)

    async def target(self, name: str) -> Target:
        """An agent that some program has registered, by its name."""
        with speaking():
            check_name("agent", name)
        return await self.store.read(lambda tx: find_target(tx, name))

    async def submit(
        self,
        target: Target,
        input: object = None,
        *,
        after: Iterable[object] = (),
        connection: object = None,
        **options: object,
    ) -> Job:
        """One job; when this returns it is durable, or part of the transaction that is open on the connection."""
        with speaking():
            terms = terms_of(target.number, target.defaults, options, self.store.clock.now(), self._home())
            wish = Wish(terms, target.check(input), edges_of(after))
            ids = await self._accept([wish], connection)
        return Job(self, ids[0], promised=connection is not None)

    async def submit_many(
        self,
        target: Target,
        inputs: Iterable[object],
        *,
        after: Iterable[object] = (),
        connection: object = None,
        **options: object,
    ) -> list[Job]:
        """One job per input, all of them or none; the options hold for each."""
        with speaking():
            if options.get("key") is not None or options.get("session") is not None:
                raise Problem(code="one_by_one", what="a key or a session belongs to one job", todo="use submit()")
            if not isinstance(inputs, Iterable):
                raise Problem(code="bad_inputs", what="the inputs are given as a list", found=shown(inputs))
            terms = terms_of(target.number, target.defaults, options, self.store.clock.now(), self._home())
            edges, check = edges_of(after), target.check
            ids = await self._accept([Wish(terms, check(value), edges) for value in inputs], connection)
        return [Job(self, number, promised=connection is not None) for number in ids]

    async def submit_graph(self, calls: Mapping[str, tuple[Target, Call]]) -> dict[str, Job]:
        """Many jobs that depend on each other by name, all of them or none; a cycle is refused with its path."""
        with speaking():
            names, wishes = wishes_of(calls, self.store.clock.now(), self._home())
            ids = await self._accept(wishes)
        numbers = dict(zip(names, ids, strict=True))
        return {name: Job(self, numbers[name]) for name in calls}

    def job(self, id: object) -> Job:
        """A handle on a job by its id; whether it exists shows when it is asked."""
        with speaking():
            return Job(self, job_number(id))

    async def outcomes(self, jobs: Sequence[Job]) -> dict[int, Outcome]:
        """How these jobs stand right now."""
        numbers = [job.number for job in jobs]
        question = lambda tx: tx.outcomes.results(numbers)  # noqa: E731
        here = self.store.near and len(numbers) <= AT_ONCE
        found = self.store.look(question) if here else await self.store.read(question)
        absent = [number for number in numbers if number not in found]
        if absent:
            raise await self.store.read(lambda tx: no_such_job(tx, absent[0]))
        return {number: Outcome(*row) for number, row in found.items()}

    async def wait(self, jobs: Sequence[Job], timeout: float | None = None) -> Mapping[int, str]:
        """Waits until all have ended; raises WaitTimedOut, and the jobs go on, when the time is up first.

        Answers such results as were heard of meanwhile, as text by the number of the job.
        """
        if timeout is not None:
            with speaking():
                timeout = patience(timeout)
        promised = frozenset(job.number for job in jobs if job.promised)
        heard = await self.waiting.ended([job.number for job in jobs], timeout, promised)
        if heard is None:
            raise WaitTimedOut(
                code="wait_timed_out", what="not all jobs ended in time; they go on", where=_names(jobs),
                found=f"waited {timeout:g} s", todo="wait again, or `paceline explain` one of them",
            )  # fmt: skip
        return heard

    async def results(
        self, jobs: Sequence[Job], timeout: float | None = None, return_exceptions: bool = False
    ) -> list[Any]:
        """All results in order; the first job that ended otherwise raises, or stands in its place if asked."""
        outcomes = await self.ends(jobs, timeout)
        values: list[Any] = []
        for job in jobs:
            try:
                values.append(value_of(job.number, outcomes[job.number]))
            except PacelineError as error:
                if not return_exceptions:
                    raise
                values.append(error)
        return values

    async def ends(self, jobs: Sequence[Job], timeout: float | None) -> dict[int, Outcome]:
        """How all of these ended; one that somebody has brought to life again meanwhile is waited for again."""
        while True:
            heard = await self.wait(jobs, timeout)
            outcomes = {job: Outcome(State.COMPLETED, None, body) for job, body in heard.items()}
            if unheard := [job for job in jobs if job.number not in outcomes]:
                outcomes |= await self.outcomes(unheard)
            alive = [number for number, outcome in outcomes.items() if not outcome.state.ended]
            if not alive:
                return outcomes
            for number in alive:
                self.waiting.forget(number)

    async def cancel(self, job: object, reason: str = "cancelled") -> bool:
        """Ends a job and its tree; False when it had ended before. Its outcome never changes afterwards."""
        with speaking():
            number = job_number(job)
            ended = await self.store.transact(lambda tx: cancel(tx, number, reason))
        self._attend()
        self.tell_ended([one for one, _ in ended])
        self._notifier.tell_others([Hint("cancel", tuple(one for one, _ in ended[:AT_ONCE]))])
        return bool(ended)

    async def retry(self, job: object, *, input: str | None = None) -> Job:
        """Tries a dead job again, and with it the dependents that failed because of it."""
        with speaking():
            number = job_number(job)
            alive = await self.store.transact(lambda tx: replay(tx, number, input))
        for one in alive:
            self.waiting.forget(one)
        self.tell_ready()
        return Job(self, number)

    async def explain(self, job: object) -> Explanation:
        """Why a job is where it is, and what it waits for; `str()` of the answer is a sentence."""
        with speaking():
            number = job_number(job)
            return await self.store.read(lambda tx: Explainer(tx).explain(number))

    async def show(self, job: object) -> Detail:
        """Everything about one job."""
        with speaking():
            number = job_number(job)
            return await self.store.read(lambda tx: show(tx, number))

    async def jobs(
        self, *, state: State | str | None = None, agent: str | None = None, tenant: str | None = None, limit: int = 50
    ) -> list[JobLine]:
        """Jobs that fit, the newest first; those of one open state in the order in which they come to run."""
        with speaking():
            states = None if state is None else [parse_state(state) if isinstance(state, str) else state]
            whole("limit", limit, 1, FAR)
            return await self.store.read(
                lambda tx: list_jobs(tx, states=states, agent=agent, tenant=tenant, limit=limit)
            )

    async def dead(self, *, agent: str | None = None, tenant: str | None = None, limit: int = 50) -> list[JobLine]:
        """Jobs that failed or timed out, the newest first."""
        with speaking():
            whole("limit", limit, 1, FAR)
            return await self.store.read(lambda tx: dead(tx, agent=agent, tenant=tenant, limit=limit))

    async def logs(self, job: object) -> list[LogLine]:
        """What a job has written with `ctx.log`, oldest first."""
        with speaking():
            number = job_number(job)
            return await self.store.read(lambda tx: logs_of(tx, row_of(tx, number).id))

    async def events(
        self,
        *,
        after: int = 0,
        job: object = None,
        kinds: Iterable[str] = (),
        severity: Severity | str | None = None,
        follow: bool = False,
    ) -> AsyncIterator[Event]:
        """The log behind the event id `after`, oldest first; with `follow` it goes on for ever."""
        with speaking():
            wanted = filter_of(kinds, severity, None if job is None else job_number(job))
            whole("after", after, 0, FAR)
        async with aclosing(follow_events(self.store, wanted, after, self._listen if follow else None)) as found:
            async for event in found:
                yield event

    def _listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._notifier.listen(lambda hints: wake())

    def tell_ready(self) -> None:
        """There may be work for somebody."""
        self._poke()
        self.tell_of_work()

    def tell_of_work(self) -> None:
        """There may be work for other nodes."""
        self._notifier.tell_others([Hint("ready")])

    def tell_ended(self, ended: Sequence[int], bodies: Mapping[int, str] = NOTHING) -> None:
        """These jobs have ended, with these results; those who wait here hear it at once, others by hint."""
        if ended:
            self.waiting.remember(ended, bodies)
            self._notifier.tell_others([Hint("ended", tuple(ended))])

    def close(self) -> None:
        """Stops listening; closing twice is fine."""
        self._stop_listening()

    async def _accept(self, wishes: list[Wish], connection: object = None) -> list[int]:
        if not wishes:
            return []
        if connection is not None:
            return await accept_in(self.store, self._visits, connection, wishes, self._bound)
        if len(wishes) > UNIT_ROWS:
            ids = await accept_in_chunks(self.store, wishes, self._bound, self._poke)
        else:
            ids = await self._gatherer.accept(wishes)
        self._notifier.tell_others([Hint("ready")])
        return ids

    def _submit(self, tx: Tx, wishes: list[Wish]) -> list[int]:
        return submit(tx, wishes, self._bound.check)

    def _hears(self) -> bool:
        return self._notifier.reach != "process"

    def _on_hints(self, hints: tuple[Hint, ...]) -> None:
        for hint in hints:
            if hint.topic == "ended":
                self.waiting.look_now(hint.ids)


def _names(jobs: Sequence[Job]) -> str:
    shown = ", ".join(job.id for job in jobs[:5])
    return shown + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
