"""What ended is written down: outcome, leases, dependents and events in one transaction, guarded by state and epoch."""

from collections.abc import Callable
from typing import NamedTuple

from paceline.core.completion import Ended, Ending, Verdict, judge
from paceline.core.failure_memory import FailureMemory
from paceline.core.lifecycle import Happening, State
from paceline.events import Kind
from paceline.store.protocol import Tx
from paceline.units.failing import summary
from paceline.units.settle import Ends, settle


class Finished(NamedTuple):
    """What came of a round: jobs that ended, the results of those that completed, and epochs that did not count."""

    ended: Ends
    bodies: dict[int, str]
    stale: list[int]


_KINDS = {
    Happening.FAIL: Kind.JOB_FAILED,
    Happening.RETRY: Kind.JOB_RETRYING,
    Happening.GIVE_BACK: Kind.JOB_GIVEN_BACK,
}

_LATE = {
    Ending.RETURNED: Kind.JOB_LATE,
    Ending.RAISED: Kind.JOB_LATE,
    Ending.GIVEN_BACK: Kind.JOB_RELEASED,
    Ending.STOPPED: Kind.JOB_RELEASED,
}


class Completer:
    """Judges how epochs ended and writes it; a lost race is counted and never raised."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self._memory = FailureMemory()
        self.stale = 0

    def finish(self, tx: Tx, ended: list[Ended], leased: bool) -> Finished:
        """Writes the ends of these epochs and tells everybody who waits for them."""
        if not ended:
            return Finished([], {}, [])
        held = [(end.job.id, end.job.epoch) for end in ended] if leased else []
        ended = newest_of_each(ended)
        bodies = self._complete(tx, [end for end in ended if end.ending is Ending.RETURNED])
        ends: Ends = [(job, State.COMPLETED) for job in bodies]
        moved = set(bodies)
        stale: list[int] = []
        if len(moved) < len(ended):
            others = [end for end in ended if end.ending in (Ending.RAISED, Ending.GIVEN_BACK)]
            ends += self._judge_all(tx, others, moved)
            late = [(end.job.id, end.job.epoch, _LATE[end.ending]) for end in ended if end.job.id not in moved]
            moved.update(tx.jobs.release(late, tx.now))
            stale = [job for job, _, _ in late if job not in moved]
            self.stale += len(stale)
        if held:
            tx.pools.release(held)
        if ends:
            ends += settle(tx, ends)
        return Finished(ends, bodies, stale)

    def _complete(self, tx: Tx, returned: list[Ended]) -> dict[int, str]:
        if not returned:
            return {}
        if len(self._memory):
            for end in returned:
                self._memory.succeeded((end.job.lane, end.task))
        bodies = {end.job.id: end.body for end in returned}
        completed = tx.jobs.complete([(end.job.id, end.job.epoch, end.body) for end in returned], tx.now)
        return bodies if len(completed) == len(bodies) else {job: bodies[job] for job in completed}

    def _judge_all(self, tx: Tx, ended: list[Ended], moved: set[int]) -> Ends:
        """Raises and returns to the queue: one guarded write per kind of arrow."""
        ends: Ends = []
        verdicts = [self._judge(end, tx.now) for end in ended]
        bodies = {end.job.id: end.body for end in ended}
        for happening, kind in _KINDS.items():
            moves = [verdict.move for verdict in verdicts if verdict.happening is happening]
            data = {move.id: summary(bodies[move.id], move.reason, move.due_at) for move in moves}
            won = tx.jobs.move(moves, kind, tx.now, data)
            moved.update(won)
            if happening is Happening.FAIL and won:
                tx.jobs.keep_results([(job, bodies[job]) for job in won])
                ends += [(job, State.FAILED) for job in won]
        return ends

    def _judge(self, end: Ended, now: int) -> Verdict:
        task = (end.job.lane, end.task)
        if end.ending is Ending.RAISED:
            self._memory.remember(task, end.failure, now, (end.job.id, end.job.epoch))
        return judge(end, now=now, jitter=self._chance(), repeating=self._memory.repeating(task, end.failure, now))


def newest_of_each(ended: list[Ended]) -> list[Ended]:
    """Two epochs of one job may end here at once, when it was lost and claimed again: the older counts nothing."""
    newest: dict[int, Ended] = {}
    for end in ended:
        known = newest.get(end.job.id)
        if known is None or known.job.epoch < end.job.epoch:
            newest[end.job.id] = end
    return ended if len(newest) == len(ended) else list(newest.values())
