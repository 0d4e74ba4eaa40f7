"""Which ready jobs this node starts next: ranked, admitted, claimed and leased in one transaction."""

from collections.abc import Mapping
from typing import NamedTuple

from paceline.core.bands import Key
from paceline.core.capacity import Admission, Demand, with_locks
from paceline.core.choosing import Hungry
from paceline.core.lanes import LaneBook, LaneFacts
from paceline.core.model import Claimed
from paceline.store.protocol import Tx

LOADED_AT_ONCE = 20_000
FEED_STRETCH = 5_000


class Start(NamedTuple):
    """A job that this node has claimed, with its input."""

    job: Claimed
    agent: int
    body: str


class Served(NamedTuple):
    """What the dispatcher must know of an agent that this node has code for."""

    limited: bool
    needs: Mapping[str, int]


class Dispatcher:
    """Keeps a picture of the lanes between claims; a wrong picture wastes a claim and never doubles one."""

    def __init__(self) -> None:
        self._book = LaneBook()
        self._facts: dict[int, LaneFacts] = {}
        self._seen: int | None = None
        self._demands: dict[int, Demand] = {}
        self.served: dict[int, Served] = {}
        self.refused: dict[int, str] = {}
        self.leases = False

    def serve(self, agent: int, served: Served) -> None:
        """This node has code for one more agent; a claim that runs meanwhile goes on with what it saw."""
        standard = {f"agent:{agent}": 1} if served.limited else {}
        self._demands = {**self._demands, agent: {**standard, **served.needs}}
        self.leases = self.leases or bool(served.needs)
        self.served = {**self.served, agent: served}

    def forget(self) -> None:
        """What was remembered may be wrong: a transaction failed. Look at everything again."""
        self._book.clear()
        self._facts.clear()
        self._seen = None

    def claim(self, tx: Tx, node: int, room: int) -> list[Start]:
        """Claims at most `room` jobs and takes what they demand; a node whose life was ended claims nothing."""
        if room <= 0 or not self.served:
            return []
        self._look(tx)
        if not len(self._book) or not tx.nodes.is_live(node):
            return []
        picks = list(dict.fromkeys(self._pick(tx, room)))  # a job that was tried again may be known twice
        if not picks:
            return []
        bodies = tx.jobs.lock_ready([job for job, _ in picks])
        claimed = {job.id: job for job in tx.jobs.claim([job for job, _ in picks if job in bodies], node, tx.now)}
        starts = [  # in the order in which they were picked, whatever order the database answers in
            Start(claimed[job], self._facts[lane].agent, bodies[job]) for job, lane in picks if job in claimed
        ]
        leases = [
            (job.id, pool, job.epoch, units)
            for job, agent, _ in starts
            for pool, units in self.served[agent].needs.items()
        ]
        if leases:
            tx.pools.take(leases)
        return starts

    def _pick(self, tx: Tx, room: int) -> list[tuple[int, int]]:
        admission = self._admission(tx)
        picks: list[tuple[int, int]] = []
        while True:
            taken = self._book.take(tx.now, room - len(picks), admission, self._demands.__getitem__, self.served)
            picks += taken.picks
            self.refused = taken.refused
            if not taken.hungry or len(picks) >= room:
                return picks
            for lane, (keys, complete) in self._heads(tx, taken.hungry).items():
                self._book.refill(lane, keys, complete)

    def _admission(self, tx: Tx) -> Admission:
        """Room in every pool that some agent here demands; usage is read from rows that say who holds."""
        limits: dict[str, int] = {}
        held: dict[str, int] = {}
        if any(served.limited for served in self.served.values()):
            limits = {f"agent:{row.id}": row.max_concurrency for row in tx.lanes.agents() if row.max_concurrency}
            by_lane = tx.watch.held_by_lane()
            self._learn(tx, [lane for lane, _ in by_lane])
            for lane, count in by_lane:
                pool = f"agent:{self._facts[lane].agent}"
                held[pool] = held.get(pool, 0) + count
        needs = {pool for served in self.served.values() for pool in served.needs}
        if needs:
            limits |= with_locks(needs, tx.pools.limits())
            held |= tx.pools.held()
        return Admission(limits, held)

    def _look(self, tx: Tx) -> None:
        """Brings the picture up to date from the log of events, or from the lanes themselves when it is new."""
        last = tx.events.last()
        if self._seen is None or last - self._seen > LOADED_AT_ONCE:
            self._book.clear()
            everything = [Hungry(lane, -1, -1) for lane in tx.lanes.with_ready_jobs()]
            for lane, (keys, complete) in self._heads(tx, everything).items():
                self._book.load(self._facts[lane], keys, complete)
            self._seen = last
            return
        while self._seen < last:
            upto = min(last, self._seen + FEED_STRETCH)
            gained = tx.events.gained(self._seen, upto)
            self._learn(tx, [row[0] for row in gained])
            for lane, ready_at, job in gained:
                self._book.add(self._facts[lane], ready_at, job)
            self._seen = upto

    def _heads(self, tx: Tx, hungry: list[Hungry]) -> dict[int, tuple[list[Key], bool]]:
        """The next jobs of each lane, and whether these are all it has."""
        if not hungry:
            return {}
        self._learn(tx, [lane.lane for lane in hungry])
        most = max(2, min(512, LOADED_AT_ONCE // len(hungry)))
        heads: dict[int, list[Key]] = {lane.lane: [] for lane in hungry}
        for lane, ready_at, job in tx.lanes.heads(hungry, most):
            heads[lane].append((ready_at, job))
        return {lane: (keys, len(keys) < most) for lane, keys in heads.items()}

    def _learn(self, tx: Tx, lanes: list[int]) -> None:
        unknown = sorted({lane for lane in lanes if lane not in self._facts})
        if unknown:
            self._facts |= tx.lanes.facts(unknown)
