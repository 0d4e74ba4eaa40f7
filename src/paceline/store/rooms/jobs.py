"""Job rows: every write names the state and epoch it expects and answers with the rows it really changed."""

from collections.abc import Sequence

from paceline.core.lifecycle import State
from paceline.core.model import Claimed, JobRow, Move, Moved, NewJob
from paceline.events import Kind
from paceline.store.driver import Driver, as_list
from paceline.store.rooms.events import EventRoom
from paceline.store.statements import Statements

_NO_DATA: dict[int, str] = {}


class JobRoom:
    """The verbs that move jobs through their lives.

    A job that is not as a verb expects is left alone and is missing from the answer: that is how a lost race looks.
    What a verb changes it also tells, with one event per job in the same transaction. A job stands at most once in one
    call, and rows are taken in the order of their ids, so that two who change many cannot hold each other up. Answers
    are in no particular order unless a verb says so.
    """

    def __init__(self, driver: Driver, sql: Statements, events: EventRoom) -> None:
        self._driver = driver
        self._sql = sql
        self._events = events
        self._lock_ready = sql["jobs.lock_ready"]
        self._claim = sql["jobs.claim"]
        self._complete = sql["jobs.complete"]
        self._move = sql["jobs.move"]

    def reserve(self, count: int) -> list[int]:
        """`count` ids that no job has, in rising order; the transaction that asks inserts before it ends."""
        return list(self._driver.reserve("jobs", count))

    def insert(self, jobs: Sequence[NewJob], bodies: Sequence[str], now: int) -> None:
        """Inserts jobs with their inputs, all of them staged or none; the visible ones get their first event.

        The ids are new, from `reserve` in this transaction; one that exists is an error and undoes the unit.
        """
        driver = self._driver
        first = self._events.reserve(len(jobs)) if jobs[0].state is not State.CREATED else 0
        if first:
            jobs = [job._replace(seq=1, last_event=first + place) for place, job in enumerate(jobs)]
            self._events.append(
                [(job.last_event or 0, job.id, 1, None, now, _FIRST_EVENT[job.state], 0, None) for job in jobs]
            )
        driver.write_many(self._sql["jobs.insert"], jobs)
        driver.write_many(
            self._sql["jobs.insert_input"], [(job.id, body) for job, body in zip(jobs, bodies, strict=True)]
        )

    def lock_ready(self, ids: list[int]) -> dict[int, str]:
        """The inputs of those of the given jobs that are still ready; nobody else claims them before the unit ends."""
        return dict(self._driver.rows(self._lock_ready, {"ids": as_list(ids)}))

    def claim(self, ids: Sequence[int], node: int, now: int) -> list[Claimed]:
        """queued → running for those that are still ready: queued, no delay to come; the epoch rises.

        One that somebody else claimed, cancelled or delayed meanwhile is not in the answer. The node's life goes on.
        """
        first = self._events.reserve(len(ids))
        rows = as_list([(job, first + place) for place, job in enumerate(ids)])
        events = {job: first + place for place, job in enumerate(ids)}
        claimed = list(map(Claimed._make, self._driver.rows(self._claim, {"node": node, "now": now, "rows": rows})))
        kind = int(Kind.JOB_STARTED)
        self._events.append(
            [(events[job.id], job.id, job.seq, job.prev_event, now, kind, job.epoch, None) for job in claimed]
        )
        return claimed

    def complete(self, ended: Sequence[tuple[int, int, str]], now: int) -> list[int]:
        """running → completed with a result, for (job, epoch, body); answers the jobs that it really ended.

        A stale epoch, and a job that was ended or given back meanwhile, are not in the answer; their body is dropped.
        """
        first = self._events.reserve(len(ended))
        by_job = {job: (first + place, epoch, body) for place, (job, epoch, body) in enumerate(ended)}
        rows = as_list(sorted((job, epoch, event) for job, (event, epoch, _) in by_job.items()))
        moved = self._driver.rows(self._complete, {"now": now, "rows": rows})
        kind = int(Kind.JOB_COMPLETED)
        self._events.append(
            [(by_job[job][0], job, seq, prev, now, kind, by_job[job][1], None) for job, seq, prev in moved]
        )
        self.keep_results([(row[0], by_job[row[0]][2]) for row in moved])
        return [row[0] for row in moved]

    def move(self, moves: Sequence[Move], kind: Kind, now: int, data: dict[int, str] = _NO_DATA) -> list[int]:
        """Any other change of state; answers the jobs whose state and epoch were as expected, the others are as before.

        The caller has asked the lifecycle whether the arrow exists. Leaving `running` frees the job from its node,
        unless the move keeps it there until its code has stopped.
        """
        if not moves:
            return []
        first = self._events.reserve(len(moves))
        rows = as_list([(*move, first + place) for place, move in sorted(enumerate(moves), key=_by_job)])
        epochs = {move.id: (first + place, move.epoch) for place, move in enumerate(moves)}
        moved = [Moved._make(row) for row in self._driver.rows(self._move, {"rows": rows})]
        for job in moved:
            event, epoch = epochs[job.id]
            self._events.append([(event, job.id, job.seq, job.prev_event, now, int(kind), epoch, data.get(job.id))])
        return [job.id for job in moved]

    def keep_results(self, results: Sequence[tuple[int, str]]) -> None:
        """Results or errors of jobs that this transaction has just ended; they replace those of an earlier life."""
        self._driver.write_many(self._sql["jobs.insert_result"], results)

    def release(self, held: Sequence[tuple[int, int, Kind]], now: int) -> list[int]:
        """What an ended job's code still held is free, for (job, epoch, kind of event) whose code has stopped."""
        return self._noted("jobs.release", [(job, epoch, kind, None) for job, epoch, kind in held], now)

    def note(self, notes: Sequence[tuple[int, int, Kind, str | None]], now: int) -> list[int]:
        """Events that change nothing else, for (job, epoch, kind, data), one per job and call.

        Only the epoch that holds the job is heard, also after the job was ended: until its code has stopped.
        """
        return self._noted("jobs.note", notes, now)

    def unblock(self, freed: Sequence[tuple[int, int]], now: int) -> list[int]:
        """blocked → queued and ready, for (job, epoch) that wait for nothing any more."""
        return self._noted("jobs.unblock", [(job, epoch, Kind.JOB_UNBLOCKED, None) for job, epoch in freed], now)

    def make_due(self, due: Sequence[tuple[int, int]], now: int) -> list[int]:
        """Delayed jobs whose time has come become ready, for (job, epoch); not one that was cancelled or is ready."""
        return self._noted("jobs.make_due", [(job, epoch, Kind.JOB_DUE, None) for job, epoch in due], now)

    def rows(self, ids: Sequence[int]) -> list[JobRow]:
        """Whole rows, by id; unknown ids are left out."""
        found = self._driver.rows(self._sql["jobs.rows"], {"ids": as_list(ids)})
        return [JobRow(row[0], State(row[1]), *row[2:]) for row in found]

    def _noted(self, name: str, notes: Sequence[tuple[int, int, Kind, str | None]], now: int) -> list[int]:
        if not notes:
            return []
        first = self._events.reserve(len(notes))
        by_job = {note[0]: (first + place, note) for place, note in enumerate(notes)}
        rows = as_list(sorted((job, note[1], event) for job, (event, note) in by_job.items()))
        moved = [Moved._make(row) for row in self._driver.rows(self._sql[name], {"now": now, "rows": rows})]
        for job in moved:
            event, (_, epoch, kind, data) = by_job[job.id]
            self._events.append([(event, job.id, job.seq, job.prev_event, now, int(kind), epoch, data)])
        return [job.id for job in moved]


_FIRST_EVENT = {State.QUEUED: int(Kind.JOB_QUEUED), State.BLOCKED: int(Kind.JOB_BLOCKED)}


def _by_job(placed: tuple[int, Move]) -> int:
    return placed[1].id
