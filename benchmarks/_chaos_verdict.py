"""What the database and the witnesses say after the drain, each promise checked by itself."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from _chaos_ground import Ground
from _chaos_submitter import Entry
from _chaos_work import LEASE_SECONDS, LIMITS, Done, Work
from _measure import percentiles
from paceline.core.lifecycle import State
from paceline.core.model import Wants
from paceline.events import Kind
from paceline.node.reaper import SWEEP_EVERY
from paceline.store.driver import Driver

ENDS = frozenset({Kind.JOB_COMPLETED, Kind.JOB_FAILED, Kind.JOB_CANCELLED, Kind.JOB_TIMED_OUT})
NAMED = 5
AWAY = frozenset({"freeze", "cut", "restart"})
"""After these code may go on for a while whose lease was taken away, and cannot know."""
DECLARED_WITHIN = round(LEASE_SECONDS * 1e6) + SWEEP_EVERY + 1_500_000
"""A lease, a sweep, and what a busy machine takes."""
FREES = ENDS | {Kind.JOB_RETRYING, Kind.JOB_GIVEN_BACK}
"""After these an epoch holds nothing any more; nothing here is cancelled while its code runs."""


class Event(NamedTuple):
    """One line of a job's log, first of all its place in the whole log."""

    place: int
    id: int
    seq: int
    prev: int | None
    at: int
    kind: Kind
    epoch: int


class JobFacts(NamedTuple):
    """A job as it stands at the end."""

    agent: str
    state: State
    epoch: int
    node: int | None
    staged: bool
    seq: int
    last_event: int | None
    reason: str | None
    work: Work
    result: Done | None


class Run(NamedTuple):
    """What a witness saw of one epoch; `end` is None when nobody saw its end."""

    pid: int
    start: int
    end: int | None
    how: str


class Fault(NamedTuple):
    """What the driver did to a process, in time since boot."""

    kind: str
    role: str
    pid: int
    at: int
    until: int


class Evidence:
    """Everything that was left behind, read once all processes are gone."""

    def __init__(self, ground: Ground, witnesses: Path) -> None:
        with ground.evidence() as (db, self.offset):
            self.damage = ground.damage(db)
            self.jobs = {job: facts for job, facts in _jobs(db)}  # noqa: C416
            self.events = _events(db, ground.dialect.words["pos"])
            self.edges: list[tuple[int, int, int]] = db.rows("select dependency, dependent, wants from edges")
            self.leases = len(db.rows("select 1 from leases"))
            self.repaired = len(db.rows("select 1 from events where kind = :kind", {"kind": int(Kind.SWEEP_REPAIRED)}))
            self.nodes: list[tuple[str, int | None, str | None]] = db.rows(
                "select identity, ended_at, ending from nodes"
            )
        self.runs, self.begun_twice = _runs(witnesses, self.offset)


def _jobs(db: Driver) -> Iterator[tuple[int, JobFacts]]:
    rows = db.rows(
        "select jobs.id, agents.name, state, epoch, node, batch is not null, seq, last_event, reason, inputs.body,"
        " results.body from jobs join lanes on lanes.id = jobs.lane join agents on agents.id = lanes.agent"
        " join inputs on inputs.job = jobs.id left join results on results.job = jobs.id"
    )
    for id, agent, state, epoch, node, staged, seq, last, reason, body, result in rows:
        done = msgspec.json.decode(result, type=Done) if state == State.COMPLETED else None
        work = msgspec.json.decode(body, type=Work)
        staged = bool(staged) and state == State.CREATED
        yield id, JobFacts(agent, State(state), epoch, node, staged, seq, last, reason, work, done)


def _events(db: Driver, place: str) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for pos, id, job, seq, prev, at, kind, epoch in db.rows(
        f"select {place}, id, job, seq, prev, at, kind, epoch from events where job is not null order by {place}"
    ):
        found[job].append(Event(pos, id, seq, prev, at, Kind(kind), epoch))
    return found


def _runs(folder: Path, offset: int) -> tuple[dict[tuple[int, int], Run], int]:
    """Witnessed epochs in store time, and how many began twice."""
    runs: dict[tuple[int, int], Run] = {}
    twice = 0
    for file in sorted(folder.iterdir()):
        for line in file.read_text().splitlines():
            word, job, epoch, pid, at, more = line.split(" ", 5)
            place, time = (int(job), int(epoch)), int(at) + offset
            if word == "S":
                twice += place in runs
                runs[place] = Run(int(pid), time, None, "")
            else:
                runs[place] = runs[place]._replace(end=time, how=more)
    return runs, twice


def lost(evidence: Evidence, acknowledged: list[Entry]) -> int:
    """Acknowledged jobs that are not there, are another job, or have not ended."""
    found = {key: number for entry in acknowledged for key, number in entry.jobs.items()}
    return sum(
        number not in evidence.jobs or evidence.jobs[number].work.key != key or not evidence.jobs[number].state.ended
        for key, number in found.items()
    )


def doubled(evidence: Evidence, acknowledged: list[Entry]) -> dict[str, int]:
    """Everything that happened twice and must happen once."""
    answers: dict[str, set[int]] = defaultdict(set)
    for entry in acknowledged:
        for key, number in entry.jobs.items():
            answers[key] |= {number} if number else set()
    keys = Counter(facts.work.key for facts in evidence.jobs.values())
    counts = Counter[str]()
    for job, facts in evidence.jobs.items():
        events = evidence.events.get(job, [])
        ends = [event for event in events if event.kind in ENDS]
        counts["outcomes"] += len(ends) > 1
        counts["started_after_the_end"] += (
            bool(ends) and events[-1].id != ends[0].id and _started_after(events, ends[0])
        )
        if facts.result is not None:
            run = evidence.runs.get((job, facts.epoch))
            by_another = facts.result.epoch != facts.epoch or ends[-1].epoch != facts.epoch
            counts["result_of_another_epoch"] += by_another
            counts["result_without_witness"] += not by_another and (run is None or run.how != "returned")
    return {
        "keys_with_two_jobs": sum(times > 1 for times in keys.values()),
        "answers_with_two_jobs": sum(len(numbers) > 1 for numbers in answers.values()),
        "epochs_begun_twice": evidence.begun_twice,
        **counts,
    }


def _started_after(events: list[Event], end: Event) -> bool:
    return any(event.kind is Kind.JOB_STARTED and event.place > end.place for event in events)


def stuck(evidence: Evidence) -> int:
    """Jobs that have not ended; a bulk that nobody accepted is not one of them."""
    return sum(not facts.state.ended and not facts.staged for facts in evidence.jobs.values())


def leaked(evidence: Evidence) -> int:
    """What is still held when nobody is left to hold it."""
    return evidence.leases + sum(facts.node is not None for facts in evidence.jobs.values())


def event_gaps(evidence: Evidence) -> int:
    """Jobs whose log is not 1, 2, 3 … linked one to the next, up to what the job says is its last."""
    wrong = 0
    for job, facts in evidence.jobs.items():
        events = evidence.events.get(job, [])
        links = [None, *(event.id for event in events)]
        whole = [(event.seq, event.prev) for event in events] == list(enumerate(links[:-1], 1))
        wrong += not (whole and facts.seq == len(events) and facts.last_event == links[-1]) and not facts.staged
    return wrong


def early(evidence: Evidence) -> int:
    """Dependents that started before a prerequisite had ended."""
    wrong = 0
    for dependency, dependent, _ in evidence.edges:
        started = next((one.place for one in evidence.events.get(dependent, []) if one.kind is Kind.JOB_STARTED), None)
        ended = next((one.place for one in evidence.events.get(dependency, []) if one.kind in ENDS), None)
        wrong += started is not None and (ended is None or started < ended)
    return wrong


def unexpected(evidence: Evidence) -> list[int]:
    """Jobs that ended otherwise than the plan says, or lost an edge."""
    before: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for dependency, dependent, wants in evidence.edges:
        before[dependent].append((dependency, wants))
    fails: dict[int, bool] = {}
    for job in sorted(evidence.jobs):  # a prerequisite is always older
        broken = any(fails.get(one, True) for one, wants in before[job] if wants == Wants.COMPLETED)
        fails[job] = evidence.jobs[job].work.doomed or broken
    return [
        job
        for job, facts in evidence.jobs.items()
        if facts.state.ended
        and (
            facts.state is not (State.FAILED if fails[job] else State.COMPLETED) or len(before[job]) != facts.work.after
        )
    ]


def over_limit(evidence: Evidence) -> int:
    """Leases beyond a limit: starts that found it used up already, in the order in which the database wrote them."""
    wrong = 0
    for agent, limit in LIMITS.items():
        jobs = [job for job, facts in evidence.jobs.items() if facts.agent == agent]
        held = 0
        for event in sorted(event for job in jobs for event in evidence.events.get(job, [])):
            if event.kind is Kind.JOB_STARTED:
                held += 1
                wrong += held > limit
            elif event.kind in FREES and event.epoch:
                held -= 1
    return wrong


def overlaps(evidence: Evidence, killed: Mapping[int, int], *, fenced: bool) -> int:
    """Code of a limited agent that really began while as much of it ran as may, by the witnesses.

    With `fenced` an epoch counts only until the database took its lease away: a frozen process cannot know.
    """
    wrong = 0
    for agent, limit in LIMITS.items():
        marks: list[tuple[int, int]] = []
        for (job, epoch), run in evidence.runs.items():
            if job in evidence.jobs and evidence.jobs[job].agent == agent:
                freed = [one.at for one in evidence.events[job] if one.kind in FREES and one.epoch == epoch]
                last_seen = run.end if run.end is not None else killed.get(run.pid, run.start)
                end = min([last_seen, *(freed if fenced else [])])
                marks += [(run.start, 1), (end, -1)] if end > run.start else []
        held = 0
        for _, change in sorted(marks):
            held += change
            wrong += change > 0 and held > limit
    return wrong


def recovery(evidence: Evidence, faults: list[Fault], killed: Mapping[int, int]) -> dict[str, object]:
    """Milliseconds from a kill until the node's life was ended, and until its jobs ran again.

    `late` counts lives that went on beyond the lease and a sweep, and beyond whatever was away just then.
    """
    again = []
    for (job, epoch), run in evidence.runs.items():
        at = killed.get(run.pid)
        if at is None or run.end is not None:
            continue
        starts = [
            event.at
            for event in evidence.events.get(job, [])
            if event.kind is Kind.JOB_STARTED and event.epoch == epoch + 1
        ]
        again += [(start - at) / 1e3 for start in starts]
    seen, late = [], 0
    for identity, ended_at, ending in evidence.nodes:
        at = killed.get(int(identity.split("/")[2])) if identity.count("/") == 3 else None
        if at is not None and ended_at is not None and ending != "stopped":
            seen.append((ended_at - at) / 1e3)
            away = [
                (fault.at + evidence.offset, fault.until + evidence.offset) for fault in faults if fault.kind in AWAY
            ]
            excused = sum(until - since for since, until in away if since < ended_at and until > at)
            late += ended_at - at > DECLARED_WITHIN + excused
    return {"node_declared_dead_ms": percentiles(seen, 1), "job_runs_again_ms": percentiles(again, 1), "late": late}


def verdict(evidence: Evidence, acknowledged: list[Entry], faults: list[Fault]) -> dict[str, object]:
    """Every figure of the rig; the first group must be 0."""
    killed = {fault.pid: fault.at + evidence.offset for fault in faults if fault.kind == "kill"}
    frozen = any(fault.kind in AWAY for fault in faults)
    twice = doubled(evidence, acknowledged)
    really = overlaps(evidence, killed, fenced=False)
    accepted = {(job, facts.epoch) for job, facts in evidence.jobs.items() if facts.result is not None}
    starts = sum(event.kind is Kind.JOB_STARTED for events in evidence.events.values() for event in events)
    strange = unexpected(evidence)
    recovered = recovery(evidence, faults, killed)
    return {
        "lost": lost(evidence, acknowledged),
        "doubled": sum(twice.values()),
        "stuck": stuck(evidence),
        "over_limit": over_limit(evidence) + (overlaps(evidence, killed, fenced=True) if frozen else really),
        "early": early(evidence),
        "unexpected": len(strange),
        "event_gaps": event_gaps(evidence),
        "leaked": leaked(evidence),
        "repaired": evidence.repaired,
        "damaged": len(evidence.damage),
        "late": recovered["late"],
        "damage": evidence.damage,
        "unexpected_jobs": [_told(evidence, job) for job in strange[:NAMED]],
        "doubled_by": {name: count for name, count in twice.items() if count},
        "acknowledged": len({key for entry in acknowledged for key in entry.jobs}),
        "jobs": len(evidence.jobs),
        "edges": len(evidence.edges),
        "states": dict(Counter(facts.state.word for facts in evidence.jobs.values())),
        "starts": starts,
        "given_back": _count(evidence, Kind.JOB_GIVEN_BACK),
        "retried": _count(evidence, Kind.JOB_RETRYING),
        "returned_in_vain": sum(
            run.how == "returned" and place not in accepted for place, run in evidence.runs.items()
        ),
        "code_overlapped_after_its_lease": really if frozen else 0,
        "lives_ended": dict(Counter(ending for _, _, ending in evidence.nodes)),
        "recovery": recovered,
    }


MUST_BE_ZERO = (
    "lost", "doubled", "stuck", "over_limit", "early", "unexpected", "event_gaps", "leaked", "repaired", "damaged",
    "late",
)  # fmt: skip


def _told(evidence: Evidence, job: int) -> str:
    """A job and its log in one line."""
    facts, events = evidence.jobs[job], evidence.events.get(job, [])
    before = [dependency for dependency, dependent, _ in evidence.edges if dependent == job]
    log = " ".join(f"{event.kind.word}/{event.epoch}" for event in events)
    return f"{job} {facts.agent} {facts.state.word} {facts.reason} after {before}: {facts.work}: {log}"


def _count(evidence: Evidence, kind: Kind) -> int:
    return sum(event.kind is kind for events in evidence.events.values() for event in events)
