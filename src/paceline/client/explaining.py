"""Gathers what the store knows about jobs, for explanations; what many jobs share is read once."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from paceline.client.finding import known_of, row_of
from paceline.core.explaining import explain, stands_before
from paceline.core.explanation import (
    COUNTED_AHEAD,
    Explanation,
    Facts,
    Failure,
    Holder,
    Host,
    Pool,
    Prerequisite,
)
from paceline.core.lanes import LaneFacts
from paceline.core.lifecycle import State
from paceline.core.lines import LaneAgent
from paceline.core.model import JobRow, NodeRow
from paceline.core.scheduling import QueueClass, effective
from paceline.store.protocol import Tx
from paceline.units.failing import Summary, read_error

SHOWN_HOLDERS = 8
MOST_LANES = 500
"""With more lanes than this, who stands ahead in all of them is not counted."""
SHOWN_PREREQUISITES = 50
DEEPEST = 100
"""How far a line of waiting jobs is followed to the one that all of them wait for in the end."""


_read_summary = msgspec.json.Decoder(Summary).decode


class Explainer:
    """Explains jobs within one look at the store."""

    def __init__(self, tx: Tx, *, counting: bool = True) -> None:
        """Counting who stands ahead costs more than all the rest: listings do without."""
        self._tx = tx
        self._counting = counting

    def explain(self, job: int) -> Explanation:
        """Why a job is where it is."""
        return explain(self._facts(row_of(self._tx, job), rooted=True), self._tx.now)

    def _facts(self, row: JobRow, *, rooted: bool) -> Facts:
        lane = self._tx.reasons.agent_of_lane(row.lane)
        facts = Facts(row, QueueClass(lane.queue_class), lane.priority, lane.name, lane.origin)
        if row.state is State.CREATED:
            return facts._replace(accepted=self._tx.reasons.accepted(row.id))
        if row.node is not None:
            facts = facts._replace(holder=self._node(row.node))
        if row.state is State.RUNNING:
            line = self._tx.listing.by_ids([row.id])[0]
            return facts._replace(fraction=line.fraction, note=line.note)
        if row.state is State.FAILED:
            return facts._replace(failure=_failure(self._tx.outcomes.results([row.id])[row.id][2]))
        if row.state.ended:
            return facts
        last = next(iter(self._tx.events.of_job(row.id, most=1)), None)
        facts = facts._replace(entered_at=last.at if last else row.created_at)
        if row.state is State.QUEUED:
            summary = last.data if last and row.epoch and row.due_at is not None else None
            return self._queued(facts._replace(failure=_retried(summary)), lane)
        return self._blocked(facts, rooted)

    def _blocked(self, facts: Facts, rooted: bool) -> Facts:
        row = facts.job
        found = [one for one in self._tx.reasons.prerequisites(row.id, SHOWN_PREREQUISITES) if one.met.name == "OPEN"]
        unmet = tuple(
            Prerequisite(one.job, one.state, one.wants, row.session is not None and one.session == row.session)
            for one in found
        )
        root = self._root_of(unmet) if rooted else None
        return facts._replace(unmet=unmet, unmet_count=self._tx.reasons.count_edges(row.id)[1], at_root=root)

    def _root_of(self, unmet: tuple[Prerequisite, ...]) -> tuple[int, str] | None:
        """The end of the line of prerequisites and why it is there, unless it is next and simply runs."""
        first = job = next((one.job for one in unmet if not one.state.ended), None)
        for _ in range(DEEPEST):
            if job is None:
                return None
            row = row_of(self._tx, job)
            if job == first and row.state is State.RUNNING:
                return None
            if row.state is not State.BLOCKED:
                reason = explain(self._facts(row, rooted=False), self._tx.now)
                return (job, f"{row.state.word}, {reason.text}")
            before = self._tx.reasons.prerequisites(job, SHOWN_PREREQUISITES)
            job = next((one.job for one in before if one.met.name == "OPEN" and not one.state.ended), None)
        return None

    def _queued(self, facts: Facts, lane: LaneAgent) -> Facts:
        live, agent, limit = self._live, lane.agent, lane.max_concurrency
        here = {node for node, number, _, _ in self._served if number == agent and node in live}
        pinned = lane.home in self._unended
        serving = tuple(
            live[node]._replace(takes=not pinned or node == lane.home or bool(self._unended[node].work_sharing))
            for node in sorted(here)
        )
        facts = facts._replace(home=self._unended[lane.home].name if pinned else "")
        namesakes = tuple(
            (live[node].name, origin)
            for node, number, name, origin in self._served
            if name == facts.agent and number != agent and node in live
        )
        pools = [self._pool(agent, name, units) for name, units in known_of(lane.definition).needs.items()]
        if limit is not None:
            held = self._held_by_agent.get(agent, 0)
            holders = self._holders(agent, f"agent:{agent}", held >= limit)
            pools.insert(0, Pool(f"agent:{facts.agent}", 1, limit, held, holders))
        facts = facts._replace(nodes=len(live), serving=serving, namesakes=namesakes, pools=tuple(pools))
        if not self._counting or facts.job.due_at is not None or facts.job.ready_at is None:
            return facts
        in_lane, ahead = self._ahead(facts, agent)
        return facts._replace(in_lane=in_lane, ahead=ahead)

    def _pool(self, agent: int, name: str, units: int) -> Pool:
        limit = self._limits.get(name, 1 if name.startswith("lock:") else None)
        held = self._held.get(name, 0)
        if limit is None:
            return Pool(name, units, held + units, held)
        return Pool(name, units, limit, held, self._holders(agent, name, held + units > limit))

    def _holders(self, agent: int, pool: str, full: bool) -> tuple[Holder, ...]:
        if not full:
            return ()
        return tuple(Holder(*found) for found in self._tx.reasons.holders(agent, pool, SHOWN_HOLDERS))

    def _ahead(self, facts: Facts, agent: int) -> tuple[int, int | None]:
        """How many ready jobs go first: in the job's own lane, and in all lanes that the same nodes serve."""
        row, now, ready_at = facts.job, self._tx.now, facts.job.ready_at or 0
        in_lane = self._tx.reasons.ahead([(row.lane, ready_at, row.id)], COUNTED_AHEAD)
        if not facts.serving or len(self._ready_lanes) > MOST_LANES:
            return in_lane, None
        nodes = {node for node, number, _, _ in self._served if number == agent and node in self._live}
        beside = {number for node, number, _, _ in self._served if node in nodes}
        mine = (*effective(facts.queue_class, facts.priority, ready_at, now), ready_at, row.id)
        borders: dict[tuple[int, int], tuple[int, int]] = {}
        rows = []
        for lane in self._ready_lanes:
            kind = (lane.queue_class, lane.priority)
            if lane.agent in beside:
                borders[kind] = borders.get(kind) or stands_before(*kind, mine, now)
                rows.append((lane.id, *borders[kind]))
        return in_lane, self._tx.reasons.ahead(rows, COUNTED_AHEAD)

    @cached_property
    def _live(self) -> Mapping[int, Host]:
        load, now = self._tx.nodes.load(), self._tx.now
        there = (node for node in self._unended.values() if node.expires_at > now)
        return {node.id: _host(node, load.get(node.id, 0)) for node in there}

    @cached_property
    def _unended(self) -> Mapping[int, NodeRow]:
        return {node.id: node for node in self._tx.nodes.live()}

    @cached_property
    def _served(self) -> list[tuple[int, int, str, str]]:
        return self._tx.reasons.served()

    @cached_property
    def _held_by_agent(self) -> dict[int, int]:
        return self._tx.reasons.held_by_agent()

    @cached_property
    def _limits(self) -> dict[str, int]:
        return self._tx.pools.limits()

    @cached_property
    def _held(self) -> dict[str, int]:
        return self._tx.pools.held()

    @cached_property
    def _ready_lanes(self) -> list[LaneFacts]:
        return self._tx.listing.ready_lanes(MOST_LANES + 1)

    def _node(self, number: int) -> Host | None:
        if number in self._live:
            return self._live[number]
        found = self._tx.reasons.node(number)
        return _host(found, 0) if found is not None else None


def _host(node: NodeRow, held: int) -> Host:
    return Host(node.name, node.slots, held, node.beat_at, node.expires_at, node.ended_at)


def _failure(body: str | None) -> Failure:
    error = read_error(body)
    return Failure(error.type, error.message, error.failure_class, error.chain, error.cause)


def _retried(data: str | None) -> Failure:
    if data is None:
        return Failure()
    said = _read_summary(data)
    return Failure(said.type, said.message)
