"""Waiting for jobs to end: told by hints, and looking for itself where a hint was lost."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from paceline.client.finding import no_such_job
from paceline.core.lifecycle import State
from paceline.errors import PacelineError
from paceline.store.protocol import Store, Tx

FIRST_LOOK = 0.02
LOOK_EVERY = 1.0
LOOK_WITHOUT_HINTS = 0.05
CHUNK = 5_000
REMEMBERED = 20_000
_NO_BODIES: Mapping[int, str] = {}


class Group:
    """Some jobs that somebody waits for together, and the results that were told with their ends."""

    __slots__ = ("bodies", "called", "future", "looking", "pending", "promised")

    def __init__(self, pending: set[int], future: "asyncio.Future[bool]", promised: Collection[int]) -> None:
        self.pending = pending
        self.future = future
        self.promised = promised
        self.bodies: dict[int, str] = {}
        self.called = asyncio.Event()
        self.looking: asyncio.Task[None] | None = None


class Waiting:
    """Everybody in this process who waits for the end of jobs."""

    def __init__(self, store: Store, hinted: Callable[[], bool]) -> None:
        self._store = store
        self._hinted = hinted
        self._groups: dict[int, list[Group]] = {}
        self._told: set[int] = set()
        self._order: deque[int] = deque()
        self._named: set[int] = set()
        self._reading: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._groups)

    def remember(self, ended: Sequence[int], bodies: Mapping[int, str] = _NO_BODIES) -> None:
        """A commit of this process ended these jobs; the newest are remembered for who asks later.

        `bodies` are the results of completed ones, which can never change: who waits now need not read them.
        """
        self._told.update(ended)
        self._order.extend(ended)
        while len(self._order) > REMEMBERED:
            self._told.discard(self._order.popleft())
        self.tell(ended, bodies)

    def tell(self, ended: Sequence[int], bodies: Mapping[int, str] = _NO_BODIES) -> None:
        """These jobs have ended: whoever waits for them hears it."""
        if self._groups:
            for job in ended:
                self._tell_one(job, bodies.get(job))

    def look_now(self, ended: Sequence[int]) -> None:
        """Somebody says that these jobs ended, or without ids that some did: who waits for them looks.

        A hint may be late, and the job may live again, so it is never taken for the truth.
        """
        if not ended:
            for group in {id(group): group for groups in self._groups.values() for group in groups}.values():
                self._look(group)
            return
        self._named |= self._groups.keys() & ended
        if self._named and self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read_named())

    def forget(self, job: int) -> None:
        """The job lives again."""
        self._told.discard(job)

    async def ended(
        self, jobs: Iterable[int], timeout: float | None, promised: Collection[int] = ()
    ) -> Mapping[int, str] | None:
        """Waits until all of these have ended; answers the results it was told, None when the time was up first.

        The `promised` ones may not exist yet; another that does not exist is an error.
        """
        loop = asyncio.get_running_loop()
        group = Group(set(jobs) - self._told, loop.create_future(), promised)
        if not group.pending:
            return group.bodies
        for job in group.pending:
            self._groups.setdefault(job, []).append(group)
        timers = [loop.call_later(FIRST_LOOK, self._look, group)]
        if timeout is not None:
            timers.append(loop.call_later(max(0.0, timeout), _give_up, group.future))
        try:
            return group.bodies if await group.future else None
        finally:
            for timer in timers:
                timer.cancel()
            if group.looking is not None:
                group.looking.cancel()
            self._leave(group)

    def _tell_one(self, job: int, body: str | None) -> None:
        for group in self._groups.pop(job, ()):
            group.pending.discard(job)
            if body is not None:
                group.bodies[job] = body
            if not group.pending and not group.future.done():
                group.future.set_result(True)

    async def _read_named(self) -> None:
        """How those stand that hints have named, however many more are waited for."""
        try:
            while self._named:
                named = sorted(self._named)[:CHUNK]
                self._named.difference_update(named)
                states = await self._store.read(partial(_states, named))
                self.tell([job for job, state in states if state.ended])
        except PacelineError:
            self._named.clear()  # who looks at all of them a little later says what is wrong
        finally:
            if self._reading is asyncio.current_task():
                self._reading = None

    def _look(self, group: Group) -> None:
        if group.looking is not None:
            group.called.set()
        elif not group.future.done():
            group.looking = asyncio.get_running_loop().create_task(self._look_or_say_why_not(group))

    async def _look_or_say_why_not(self, group: Group) -> None:
        """Whoever waits hears it when there is no such job, or no store to ask any more."""
        try:
            await self._keep_looking(group)
        except Exception as error:
            if not group.future.done():
                group.future.set_exception(error)

    async def _keep_looking(self, group: Group) -> None:
        """Finds what had ended before anybody waited, and what no hint told."""
        while not group.future.done():
            pending = sorted(group.pending)
            for place in range(0, len(pending), CHUNK):
                chunk = pending[place : place + CHUNK]
                self.tell(await self._store.read(partial(ended_among, chunk, group.promised)))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY if self._hinted() else LOOK_WITHOUT_HINTS):
                    await group.called.wait()
                    await asyncio.sleep(FIRST_LOOK)  # who tells without naming anybody may tell much at once
            group.called.clear()

    def _leave(self, group: Group) -> None:
        for job in group.pending:
            groups = self._groups.get(job, [])
            if group in groups:
                groups.remove(group)
            if not groups:
                self._groups.pop(job, None)
        if not self._groups and self._reading is not None:
            self._reading.cancel()
            self._reading = None
            self._named.clear()


def _states(jobs: list[int], tx: Tx) -> list[tuple[int, State]]:
    return tx.outcomes.states(jobs)


def ended_among(jobs: list[int], promised: Collection[int], tx: Tx) -> list[int]:
    """Those of the given jobs that have ended; one that does not exist, nor will, would be waited for in vain."""
    states = tx.outcomes.states(jobs)
    if len(states) < len(jobs):
        absent = set(jobs) - {job for job, _ in states} - set(promised)
        if absent:
            raise no_such_job(tx, min(absent))
    return [job for job, state in states if state.ended]


def _give_up(future: "asyncio.Future[bool]") -> None:
    if not future.done():
        future.set_result(False)
