"""What people and programs look at: lists of jobs, and everything about one of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from paceline.client.explaining import Explainer
from paceline.client.finding import find_agents, row_of
from paceline.core.explanation import Explanation
from paceline.core.lanes import LaneFacts
from paceline.core.lifecycle import OPEN, State
from paceline.core.lines import Bodies, JobLine, LaneAgent, Linked
from paceline.core.model import JobRow, NodeRow
from paceline.core.names import closest, shown
from paceline.core.scheduling import Rank, rank
from paceline.errors import UsageError
from paceline.events import Event, Kind
from paceline.store.protocol import Tx
from paceline.units.failing import ErrorBody, Summary, read_error

PREVIEW = 4_000
NEIGHBOURS = 20
EVENTS = 1_000
LANES_LOOKED_AT = 200

LOG_LOOKED_AT = 20_000

ENDS = (Kind.JOB_COMPLETED, Kind.JOB_FAILED, Kind.JOB_CANCELLED, Kind.JOB_TIMED_OUT)
RETURNS = (Kind.JOB_RETRYING, Kind.JOB_GIVEN_BACK)


class Listed(NamedTuple):
    """A list of jobs as people look at it: what is open, in the order in which it runs, then what ended last."""

    open: list[JobLine]
    ended: list[JobLine]
    more_open: int | None
    """How many open jobs the list leaves out; None: some."""


class Screenful(NamedTuple):
    """Jobs with their reasons as a person looks at them, how many more there are (None: some), and the time."""

    lines: list[tuple[JobLine, Explanation]]
    more: int | None
    now: int


class Start(NamedTuple):
    """One start of a job's code, and how it ended."""

    epoch: int
    started_at: int
    ended_at: int | None = None
    ending: str = ""
    detail: str = ""


class Detail(NamedTuple):
    """Everything about one job."""

    line: JobLine
    row: JobRow
    lane: LaneAgent
    explanation: Explanation
    bodies: Bodies
    error: ErrorBody
    key: str | None
    session: str | None
    node: NodeRow | None
    prerequisites: list[Linked]
    dependents: list[Linked]
    counts: tuple[int, int, int]
    """Prerequisites, unmet ones of these, and dependents, all of them."""
    children: list[int]
    starts: list[Start]
    events: list[Event]


def list_jobs(
    tx: Tx,
    *,
    states: Sequence[State] | None = None,
    agent: str | None = None,
    tenant: str | None = None,
    limit: int = 50,
    before: int | None = None,
) -> list[JobLine]:
    """Jobs that fit, the newest first; a single open state is listed in the order in which its jobs come to run."""
    lanes = _lanes(tx, agent, tenant)
    if states is not None and len(states) == 1 and before is None:
        return tx.listing.by_ids(_in_state(tx, states[0], lanes, limit))
    paging = {} if before is None else {"before": before}
    return tx.listing.by_ids(tx.listing.find("newest", limit, states=states, lanes=lanes, **paging))


def overview(tx: Tx, *, agent: str | None = None, tenant: str | None = None, limit: int = 20, ended: int = 5) -> Listed:
    """Open jobs first, then the few that ended last."""
    lanes = _lanes(tx, agent, tenant)
    found: list[int] = []
    for look in (_running, _ready, _delayed, _blocked, _staged):
        found += look(tx, lanes, limit + 1 - len(found)) if len(found) <= limit else []
    more: int | None = 0
    if len(found) > limit:
        more = None if lanes is not None else sum(tx.outcomes.pending()) + sum(tx.nodes.load().values()) - limit
    return Listed(tx.listing.by_ids(found[:limit]), _ended_last(tx, lanes, ended, set(found)), more)


def screenful(
    tx: Tx, states: Sequence[State], *, every: bool, agent: str | None, tenant: str | None, limit: int, ended: int
) -> Screenful:
    """What `overview` lists, or the jobs in some states, each with its reason."""
    if states or every:
        lines = list_jobs(tx, states=states or None, agent=agent, tenant=tenant, limit=limit + 1)
        return Screenful(with_reasons(tx, lines[:limit]), None if len(lines) > limit else 0, tx.now)
    listed = overview(tx, agent=agent, tenant=tenant, limit=limit, ended=ended)
    return Screenful(with_reasons(tx, listed.open + listed.ended), listed.more_open, tx.now)


def dead(tx: Tx, *, agent: str | None = None, tenant: str | None = None, limit: int = 50) -> list[JobLine]:
    """Jobs that failed or timed out, the newest first."""
    return tx.listing.by_ids(tx.listing.find("dead", limit, lanes=_lanes(tx, agent, tenant)))


def with_reasons(tx: Tx, lines: Iterable[JobLine]) -> list[tuple[JobLine, Explanation]]:
    """Each line with why the job is where it is."""
    explainer = Explainer(tx, counting=False)
    return [(line, explainer.explain(line.id)) for line in lines]


def show(tx: Tx, job: int, *, preview: int = PREVIEW) -> Detail:
    """Everything about one job, with the first `preview` characters of its input and result."""
    row = row_of(tx, job)
    lane = tx.reasons.agent_of_lane(row.lane)
    events = tx.events.of_job(job, most=EVENTS)
    key, session = tx.reasons.names(job, lane.tenant, lane.agent)
    failed = row.state in (State.FAILED, State.TIMED_OUT)
    return Detail(
        line=tx.listing.by_ids([job])[0],
        row=row,
        lane=lane,
        explanation=Explainer(tx).explain(job),
        bodies=tx.reasons.bodies(job, preview),
        error=read_error(tx.outcomes.results([job])[job][2] if failed else None),
        key=key,
        session=session,
        node=tx.reasons.node(row.node) if row.node is not None else None,
        prerequisites=tx.reasons.prerequisites(job, NEIGHBOURS),
        dependents=tx.reasons.dependents(job, NEIGHBOURS),
        counts=tx.reasons.count_edges(job),
        children=tx.watch.children([job], NEIGHBOURS),
        starts=starts_of(events),
        events=events,
    )


_read_summary = msgspec.json.Decoder(Summary).decode


def starts_of(events: Iterable[Event]) -> list[Start]:
    """The starts of a job's code, as its events tell them."""
    starts: dict[int, Start] = {}
    for event in events:
        if event.kind is Kind.JOB_STARTED:
            starts[event.epoch] = Start(event.epoch, event.at)
        elif event.kind in (*ENDS, *RETURNS) and event.epoch in starts:
            said = _read_summary(event.data) if event.data else Summary()
            detail = f"{said.type}: {said.message}" if said.type else said.reason or ""
            ending = event.kind.word.removeprefix("job.")
            starts[event.epoch] = starts[event.epoch]._replace(ended_at=event.at, ending=ending, detail=detail)
    return list(starts.values())


def parse_state(word: str) -> State:
    """A state by its name."""
    known = {state.word: state for state in State}
    found = known.get(word.strip().lower().replace("-", "_").replace(" ", "_"))
    if found is None:
        likely = closest(word, known)
        raise UsageError(
            code="bad_state", what="there is no such state", found=shown(word), allowed=", ".join(known),
            todo=f"did you mean {likely[0]}?" if likely else "",
        )  # fmt: skip
    return found


def _lanes(tx: Tx, agent: str | None, tenant: str | None) -> list[int] | None:
    if agent is None and tenant is None:
        return None
    if agent is not None:
        find_agents(tx, agent)
    return tx.listing.lanes_of(agent, tenant)


def _ended_last(tx: Tx, lanes: list[int] | None, most: int, known: set[int]) -> list[JobLine]:
    """The jobs that ended last, found in the newest stretch of the log; a pass over all jobs when there is nothing."""
    behind = max(0, tx.events.last() - LOG_LOOKED_AT)
    found = dict.fromkeys(tx.history.ended(behind, ENDS, lanes, 2 * (most + len(known))))
    ids = [job for job in found if job not in known][:most]
    if not ids and not known:
        ids = tx.listing.find("newest", most, states=sorted(set(State) - OPEN), lanes=lanes)
    return tx.listing.by_ids(ids)


def _in_state(tx: Tx, state: State, lanes: list[int] | None, limit: int) -> list[int]:
    if state is State.QUEUED:
        ready = _ready(tx, lanes, limit)
        return ready + (_delayed(tx, lanes, limit - len(ready)) if len(ready) < limit else [])
    if state is State.RUNNING:
        return tx.listing.find("running", limit, lanes=lanes, states=[state])
    if state is State.BLOCKED:
        return _blocked(tx, lanes, limit)
    if state is State.CREATED:
        return _staged(tx, lanes, limit)
    return tx.listing.find("newest", limit, lanes=lanes, states=[state])


def _running(tx: Tx, lanes: list[int] | None, most: int) -> list[int]:
    return tx.listing.find("running", most, lanes=lanes)


def _delayed(tx: Tx, lanes: list[int] | None, most: int) -> list[int]:
    return tx.listing.find("delayed", most, lanes=lanes)


def _blocked(tx: Tx, lanes: list[int] | None, most: int) -> list[int]:
    return tx.listing.find("blocked", most, lanes=lanes)


def _staged(tx: Tx, lanes: list[int] | None, most: int) -> list[int]:
    return tx.listing.find("staged", most, lanes=lanes)


def _ready(tx: Tx, lanes: list[int] | None, most: int) -> list[int]:
    """The first ready jobs in the order of their rank; of very many lanes the first few hundred are looked at."""
    facts = {lane.id: lane for lane in _ready_lanes(tx, lanes)}
    heads = tx.lanes.heads([(lane, -1, -1) for lane in facts], most) if facts else []
    ranked: list[Rank] = [
        rank(facts[lane].queue_class, facts[lane].priority, ready_at, job, tx.now) for lane, ready_at, job in heads
    ]
    return [one.job for one in sorted(ranked)[:most]]


def _ready_lanes(tx: Tx, lanes: list[int] | None) -> list[LaneFacts]:
    if lanes is None:
        return tx.listing.ready_lanes(LANES_LOOKED_AT)
    if len(lanes) > LANES_LOOKED_AT:
        wanted = set(lanes)
        lanes = [lane for lane in tx.lanes.with_ready_jobs() if lane in wanted][:LANES_LOOKED_AT]
    return list(tx.lanes.facts(lanes).values()) if lanes else []
