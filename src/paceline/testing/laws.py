"""What must hold after every commit, read from the tables and from the log of events, whatever was interrupted.

The laws keep their own picture of every job, moved only by the events that the product wrote, and compare it with the
rows: a change without an event, an event without a change and a step that the lifecycle does not know all show.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from paceline.core.lifecycle import Happening, State, target_of
from paceline.events import Kind
from paceline.testing.lives import Lives

if TYPE_CHECKING:
    from paceline.testing.world import World

S, H = State, Happening


class Violation(AssertionError):
    """A law was broken; `law` names it."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law


class Row(NamedTuple):
    """A job row as far as the laws look at it."""

    id: int
    state: int
    epoch: int
    node: int | None
    seq: int
    last_event: int | None
    lane: int
    reason: str | None
    batch: int | None
    parent: int | None


class Told(NamedTuple):
    """One event of a job."""

    id: int
    job: int
    seq: int
    prev: int | None
    at: int
    kind: Kind
    epoch: int


class Shadow:
    """One job as its events tell it."""

    __slots__ = ("acknowledged", "ended_once", "epoch", "last_event", "node", "seq", "serial", "state")

    def __init__(self, serial: int) -> None:
        self.serial = serial
        self.state = S.CREATED
        self.epoch = 0
        self.seq = 0
        self.last_event: int | None = None
        self.node: int | None = None
        self.ended_once = False
        self.acknowledged = False


_HAPPENING: dict[tuple[Kind, State], Happening] = {
    (Kind.JOB_QUEUED, S.CREATED): H.PUBLISH_READY,
    (Kind.JOB_BLOCKED, S.CREATED): H.PUBLISH_BLOCKED,
    (Kind.JOB_BLOCKED, S.FAILED): H.REVIVE,
    (Kind.JOB_UNBLOCKED, S.BLOCKED): H.UNBLOCK,
    (Kind.JOB_STARTED, S.QUEUED): H.CLAIM,
    (Kind.JOB_COMPLETED, S.RUNNING): H.COMPLETE,
    (Kind.JOB_FAILED, S.BLOCKED): H.DEPENDENCY_FAILED,
    (Kind.JOB_FAILED, S.QUEUED): H.FAIL,
    (Kind.JOB_FAILED, S.RUNNING): H.FAIL,
    (Kind.JOB_RETRYING, S.RUNNING): H.RETRY,
    (Kind.JOB_GIVEN_BACK, S.RUNNING): H.GIVE_BACK,
    **{(Kind.JOB_CANCELLED, state): H.CANCEL for state in (S.BLOCKED, S.QUEUED, S.RUNNING)},
    **{(Kind.JOB_TIMED_OUT, state): H.TIME_OUT for state in (S.BLOCKED, S.QUEUED, S.RUNNING)},
    **{(Kind.JOB_REPLAYED, state): H.REPLAY for state in (S.FAILED, S.TIMED_OUT, S.CANCELLED)},
}
_RELEASES = {Kind.JOB_RELEASED, Kind.JOB_LATE}
_STAYS = {Kind.JOB_DUE, Kind.JOB_LOG, Kind.JOB_PROGRESS, *_RELEASES}
_BY_EPOCH = {
    Kind.JOB_COMPLETED, Kind.JOB_RETRYING, Kind.JOB_GIVEN_BACK, Kind.JOB_FAILED, Kind.JOB_LOG, Kind.JOB_PROGRESS,
    Kind.JOB_RELEASED, Kind.JOB_STARTED, Kind.JOB_LATE,
}  # fmt: skip

JOBS = "select id, state, epoch, node, seq, last_event, lane, reason, batch, parent from jobs order by id"
EVENTS = "select id, job, seq, prev, at, kind, epoch from events where id > ? order by id"
LEASES = "select job, epoch, pool, units from leases order by job, pool"
AT_REST_EMPTY = ("unsettled", "batches", "leases")
LEFT_BEHIND = """
select e.dependent from edges e join jobs b on b.id = e.dependent join jobs d on d.id = e.dependency
 where b.state = 1 and e.met = 0 and d.state >= 10 and not exists (select 1 from unsettled u where u.job = d.id)
union all
select b.id from jobs b where b.state = 1 and not exists (select 1 from edges e where e.dependent = b.id and e.met = 0)
union all
select e.dependent from edges e left join jobs b on b.id = e.dependent
 where coalesce(b.state, 1) <> 0 and not exists (select 1 from jobs d where d.id = e.dependency)
"""


class Laws:
    """Checked after every commit; raises the first law that is broken."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rows: Callable[..., list[tuple[Any, ...]]] = world.store.rows
        self._table: list[tuple[Any, ...]] = []
        self.seen = 0
        self._agent_of: dict[int, int] = {}
        self.jobs: dict[int, Shadow] = {}
        self.by_serial: dict[int, int] = {}
        self.held: list[Row] = []
        self._untold: set[int] = set()
        self.lives = Lives(world, self._must)

    def code_ends(self, job: int, epoch: int) -> None:
        """Code ends by itself: notes what its word will meet."""
        shadow = self.jobs.get(job)
        if shadow is None:
            return
        if shadow.state is S.CANCELLED:
            self._world.hit("late completion after cancel")
        if shadow.epoch != epoch:
            self._world.hit("late completion of an older epoch")

    def is_older(self, job: int, event: int) -> bool:
        """The job had been there before that event."""
        found = self._rows("select min(id) from events where job = ?", (job,))
        return found[0][0] is not None and found[0][0] <= event

    def heard_the_end(self, job: int) -> None:
        """A client was told that this job has ended."""
        self._must(self.jobs[job].ended_once, "told_too_early", f"j{job} has not ended")

    def acknowledge(self, serial: int, job: int) -> None:
        """A client was told that this job is accepted."""
        shadow = self.jobs.get(job)
        if shadow is None or shadow.serial != serial:
            raise Violation("lost_job", f"j{job} was acknowledged and is not there")
        shadow.acknowledged = True

    def check(self, labels: tuple[str, ...]) -> str:
        """After a commit; answers what changed, for the trace."""
        table = self._rows(JOBS)
        events = self._rows(EVENTS, (self.seen,))
        if table == self._table and not events:
            return ""
        before, self._table = self._table, table
        rows = {row[0]: Row._make(row) for row in table}
        self._vanished(before, rows)
        for row in rows.values():
            if row.id not in self.jobs:
                self._appeared(row)
        told = []
        for line in events:
            self.seen = line[0]
            event = Told._make((*line[:5], Kind(line[5]), line[6]))
            told.append(event)
            if event.job is None:
                self.lives.event(event)
            else:
                self._job_event(event, rows[event.job], labels)
        self._same(rows)
        self.held = [row for row in rows.values() if row.node is not None]
        self._capacity()
        self._untold = {row[0] for row in self._rows("select job from unsettled")}
        if self._untold:
            self._world.hit("settle postponed")
        return " ".join(f"{event.job or ''}:{event.kind.word}" for event in told)

    def still_running(self) -> None:
        """Whatever code runs in a process whose life nobody has ended is held by a row, and once only."""
        live = {row[0] for row in self._rows("select id from nodes where ended_at is null")}
        held = {(row.id, row.epoch): row.node for row in self.held}
        seen: set[tuple[int, int]] = set()
        for process in self._world.processes:
            if process is None or process.node is None:
                continue
            for key in process.running:
                self._must(key not in seen, "double_run", f"epoch {key[1]} of j{key[0]} runs twice")
                seen.add(key)
                if process.life in live and self._world.claims[key] == process.life:
                    self._must(key in held, "released_while_running", f"j{key[0]} still runs and holds nothing")

    def heavy(self) -> None:
        """What is too dear to look at after every commit."""
        behind = self._rows(LEFT_BEHIND)
        self._must(not behind, "left_behind", f"nobody is going to tell {[row[0] for row in behind]}")
        chains = self._rows("select count(*), count(distinct seq), max(seq), job from events "
                            "where job is not null group by job")  # fmt: skip
        for count, distinct, most, job in chains:
            self._must(count == distinct == most, "event_gap", f"j{job} has {count} events up to number {most}")
        for job, body in self._rows("select job, body from results where body like '{\"epoch\":%'"):
            shadow = self.jobs[job]
            if shadow.state is S.COMPLETED:
                own = f'{{"epoch":{shadow.epoch}}}'
                self._must(body == own, "stale_write_applied", f"j{job} has the result {body}")

    def at_rest(self) -> bool:
        """Nothing is left to be done."""
        if any(row[1] < 10 or row[3] is not None for row in self._table):
            return False
        return not any(self._rows(f"select 1 from {table} limit 1") for table in AT_REST_EMPTY)

    def open_jobs(self) -> str:
        """What is not at rest, for the report of a run that does not end."""
        rows = [Row._make(row) for row in self._table if row[1] < 10 or row[3]]
        lines = [f"j{row.id} {S(row.state).word} epoch {row.epoch} node {row.node}" for row in rows]
        return "; ".join(lines[:8]) or str([self._rows(f"select * from {one}") for one in AT_REST_EMPTY])

    def _must(self, holds: bool, law: str, what: str) -> None:
        if not holds:
            raise Violation(law, what)

    def _vanished(self, before: list[tuple[Any, ...]], rows: dict[int, Row]) -> None:
        """Only jobs that nobody has seen may go; their numbers may be given again, even in the same commit."""
        for old in before:
            was, row = Row._make(old), rows.get(old[0])
            same = row is not None and (
                was.seq or was.batch == row.batch or self._serial(was.id) == self._known(was.id)
            )
            if not same:
                shadow = self.jobs.pop(was.id)
                self._must(shadow.state is S.CREATED and not shadow.acknowledged, "lost_job", f"j{old[0]} disappeared")
                del self.by_serial[shadow.serial]
                self._world.hit("abandoned submission swept")

    def _known(self, job: int) -> int:
        return self.jobs[job].serial

    def _serial(self, job: int) -> int:
        return self._world.workload.serial_of(self._rows("select body from inputs where job = ?", (job,))[0][0])

    def _appeared(self, row: Row) -> None:
        serial = self._serial(row.id)
        self._must(serial > 0, "rolled_back", f"j{row.id} belongs to a unit that raised")
        self._must(serial not in self.by_serial, "key_uniqueness", f"j{row.id} is the second job of wish {serial}")
        self.jobs[row.id] = Shadow(serial)
        self.by_serial[serial] = row.id

    def _job_event(self, event: Told, row: Row, labels: tuple[str, ...]) -> None:
        shadow = self.jobs[event.job]
        name = f"j{event.job} ({shadow.state.word}, epoch {shadow.epoch}) {event.kind.word} of epoch {event.epoch}"
        self._must(event.seq == shadow.seq + 1 and event.prev == shadow.last_event, "event_gap", name)
        shadow.seq, shadow.last_event = event.seq, event.id
        if event.kind is Kind.JOB_STARTED:
            self._must(shadow.state is not S.RUNNING, "double_run", name)
            shadow.epoch += 1
        if event.kind in _BY_EPOCH:
            self._must(event.epoch == shadow.epoch, "stale_write_applied", name)
        if event.kind in _STAYS:
            if event.kind in _RELEASES:
                self._must(shadow.state.ended and shadow.node is not None, "unlawful_step", name)
                shadow.node = None
            return
        happening = _HAPPENING.get((event.kind, shadow.state))
        if happening is None:
            self._must(not shadow.state.ended, "double_terminal", name)
        target = target_of(shadow.state, happening) if happening else None
        self._must(target is not None, "unlawful_step", name)
        assert target is not None
        self._cover(event, shadow, row, labels)
        if event.kind is Kind.JOB_STARTED:
            self._start(event, row, shadow)
        elif event.kind not in (Kind.JOB_CANCELLED, Kind.JOB_TIMED_OUT):
            shadow.node = None
        if event.kind in (Kind.JOB_QUEUED, Kind.JOB_BLOCKED) and event.seq == 1:
            self._visible(shadow)
        shadow.state = target
        shadow.ended_once = shadow.ended_once or target.ended

    def _start(self, event: Told, row: Row, shadow: Shadow) -> None:
        shadow.node = row.node
        if row.node is not None:  # or else the same commit has taken it away again
            live = self._rows("select 1 from nodes where id = ? and ended_at is null", (row.node,))
            self._must(bool(live), "running_without_node", f"j{event.job} was claimed by the ended node {row.node}")
            self.lives.may_start(event.job, row.lane, row.node)
        self._world.claims[event.job, event.epoch] = row.node
        parent = self.jobs.get(row.parent) if row.parent is not None else None
        if parent is not None and parent.state is S.CANCELLED and not shadow.ended_once:
            told = row.parent in self._untold or self._rows("select 1 from unsettled where job = ?", (row.parent,))
            undone = row.state == S.CANCELLED  # the same commit went on with what it had postponed
            self._must(
                bool(told) or undone, "child_of_cancelled", f"j{event.job} starts under the cancelled j{row.parent}"
            )
        spec = self._world.workload.specs[shadow.serial]
        for serial, finished in spec.after:
            job = self.by_serial.get(serial)
            before = self.jobs[job] if job is not None else None
            met = before is not None and (before.ended_once if finished else before.state is S.COMPLETED)
            self._must(met, "dep_order", f"j{event.job} starts before its time: j{job} is not as it asked")
        if spec.session is not None:
            for earlier, other in self.jobs.items():
                if earlier < event.job and self._world.workload.specs[other.serial].session == spec.session:
                    self._must(other.ended_once, "session_order", f"j{event.job} starts before j{earlier} has ended")

    def _visible(self, shadow: Shadow) -> None:
        """Of a submission that is accepted as a whole every job is there before anybody can see one."""
        group = self._world.workload.specs[shadow.serial].group
        missing = [serial for serial in group if serial not in self.by_serial]
        self._must(not missing, "all_or_nothing", f"submission {group} is visible without {missing}")

    def _same(self, rows: dict[int, Row]) -> None:
        for row in rows.values():
            shadow = self.jobs[row.id]
            if (row.state, row.epoch, row.seq, row.node) == (shadow.state, shadow.epoch, shadow.seq, shadow.node):
                if row.last_event == shadow.last_event:
                    continue
            law = "released_while_running" if row.node is None and shadow.node is not None else "unlawful_step"
            raise Violation(law, f"j{row.id} is {row} without events that say so")

    def _capacity(self) -> None:
        by_agent: Counter[int] = Counter()
        by_node: Counter[int | None] = Counter()
        owed: dict[tuple[int, int, str], int] = {}
        for row in self.held:
            agent = self._agent(row.lane)
            by_agent[agent] += 1
            by_node[row.node] += 1
            owed.update({(row.id, row.epoch, pool): units for pool, units in self._world.needs(agent).items()})
        for agent, count in by_agent.items():
            most = self._world.limit(agent)
            self._must(most is None or count <= most, "over_commit", f"{count} jobs of agent {agent} run, {most} may")
        for node, count in by_node.items():
            most = self._world.slots(node)
            self._must(count <= most, "over_commit", f"node {node} holds {count} jobs and has {most} slots")
        leases = {(job, epoch, pool): units for job, epoch, pool, units in self._rows(LEASES)}
        units_of: Counter[str] = Counter()
        for (_, _, pool), units in leases.items():
            units_of[pool] += units
        for pool, units in units_of.items():
            self._must(units <= self._world.pool(pool), "over_commit", f"{units} of pool {pool} are held")
        self._must(leases.keys() <= owed.keys(), "orphan_lease", f"{leases.keys() - owed.keys()} have no holder")
        if leases != owed:  # a node that lives in another life by now has let go of what its ended code held
            live = {row[0] for row in self._rows("select id from nodes where ended_at is null")}
            holders = {(row.id, row.epoch) for row in self.held if row.node in live}
            owing = {key for key in owed.keys() - leases.keys() if key[:2] in holders}
            self._must(not owing, "running_without_lease", f"{owing} is held by nobody")

    def _agent(self, lane: int) -> int:
        agent = self._agent_of.get(lane)
        if agent is None:
            agent = self._agent_of[lane] = self._rows("select agent from lanes where id = ?", (lane,))[0][0]
        return agent

    def _cover(self, event: Told, shadow: Shadow, row: Row, labels: tuple[str, ...]) -> None:
        """Notes the rare branches that an event shows."""
        hit, state = self._world.hit, shadow.state
        if event.kind is Kind.JOB_TIMED_OUT:
            hit(f"timed out while {state.word}")
        elif event.kind is Kind.JOB_CANCELLED:
            hit(f"cancelled while {state.word}")
            if row.reason == "parent_cancelled":
                hit("cancelled with its parent")
        elif event.kind is Kind.JOB_FAILED:
            if row.reason in ("dependency_failed", "repeating", "too_many_timeouts", "no_retries_left"):
                hit(f"failed: {row.reason}")
            if state is S.BLOCKED and self._chained(shadow):
                hit("a chain of failed dependencies")
        elif event.kind is Kind.JOB_REPLAYED:
            hit("replayed")
        elif event.kind is Kind.JOB_BLOCKED and state is S.FAILED:
            hit("revived")
        elif event.kind is Kind.JOB_STARTED and shadow.epoch > 2:
            hit("third epoch")
        if event.seq == 1 and labels == ("Tidied",):
            hit("submission finished by the janitor")

    def _chained(self, shadow: Shadow) -> bool:
        for serial, _ in self._world.workload.specs[shadow.serial].after:
            job = self.by_serial.get(serial)
            if job is not None and self.jobs[job].state is S.FAILED and self._world.workload.specs[serial].after:
                return True
        return False
