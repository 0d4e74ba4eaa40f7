"""Which ready jobs this node starts next: ranked, admitted, claimed and leased in one transaction."""

from collections.abc import Mapping
from typing import NamedTuple

from paceline.core.capacity import Admission, Demand, with_locks
from paceline.core.model import Claimed
from paceline.node.picture import Picture
from paceline.store.protocol import Tx


class Start(NamedTuple):
    """A job that this node has claimed, with its input."""

    job: Claimed
    agent: int
    body: str


LOOKS = 4
"""So often one claim chooses, when others hold or have taken what it chose."""


class Served(NamedTuple):
    """What the dispatcher must know of an agent that this node has code for."""

    limited: bool
    needs: Mapping[str, int]


class Dispatcher:
    """Chooses from its picture of the lanes; a wrong picture wastes a claim and never doubles one."""

    def __init__(self) -> None:
        self._picture = Picture()
        self._demands: dict[int, Demand] = {}
        self.served: dict[int, Served] = {}
        self.refused: dict[int, str] = {}
        self.leases = False
        self.passed_over = False
        """Some of the chosen jobs were held by somebody else for a moment; come again soon."""

    def serve(self, agent: int, served: Served) -> None:
        """This node has code for one more agent; a claim that runs meanwhile goes on with what it saw."""
        standard = {f"agent:{agent}": 1} if served.limited else {}
        self._demands = {**self._demands, agent: {**standard, **served.needs}}
        self.leases = self.leases or bool(served.needs)
        self.served = {**self.served, agent: served}

    def forget(self) -> None:
        """What was remembered may be wrong: a transaction failed. Look at everything again."""
        self._picture.forget()

    def claim(self, tx: Tx, node: int, room: int) -> list[Start]:
        """Claims at most `room` jobs and takes what they demand; a node whose life was ended claims nothing."""
        self.passed_over = False
        if tx.again:
            self.forget()
        if room <= 0 or not self.served:
            return []
        self._picture.look(tx)
        if not len(self._picture.book) or not tx.nodes.is_live(node):
            return []
        starts: list[Start] = []
        aside: list[int] = []
        for _ in range(LOOKS):
            picks = list(dict.fromkeys(self._pick(tx, room - len(starts))))  # one tried again may be known twice
            bodies = tx.jobs.lock_ready([job for job, _ in picks]) if picks else {}
            starts += self._start(tx, node, picks, bodies)
            lost = [(job, lane) for job, lane in picks if job not in bodies]
            if not lost:
                break
            aside += [job for job, _ in lost]
            self._picture.renew(tx, lost)
        if aside:
            self.passed_over = self._picture.put_back(tx, aside)
        return starts

    def _start(self, tx: Tx, node: int, picks: list[tuple[int, int]], bodies: dict[int, str]) -> list[Start]:
        """Claims those of the chosen jobs that are locked, in the order in which they were chosen."""
        if not bodies:
            return []
        claimed = {job.id: job for job in tx.jobs.claim([job for job, _ in picks if job in bodies], node, tx.now)}
        starts = [  # whatever order the database answers in
            Start(claimed[job], self._picture.facts[lane].agent, bodies[job]) for job, lane in picks if job in claimed
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
            taken = self._picture.book.take(
                tx.now, room - len(picks), admission, self._demands.__getitem__, self.served
            )
            picks += taken.picks
            self.refused = taken.refused
            if not taken.hungry or len(picks) >= room:
                return picks
            self._picture.refill(tx, taken.hungry)

    def _admission(self, tx: Tx) -> Admission:
        """Room in every pool that some agent here demands; usage is read from rows that say who holds."""
        limits: dict[str, int] = {}
        held: dict[str, int] = {}
        limited = [
            agent for agent in self._picture.book.agents() if agent in self.served and self.served[agent].limited
        ]
        if limited:
            tx.guards.limits(limited)
            limits = {f"agent:{row.id}": row.max_concurrency for row in tx.lanes.agents() if row.max_concurrency}
            by_lane = tx.watch.held_by_lane()
            self._picture.learn(tx, [lane for lane, _ in by_lane])
            for lane, count in by_lane:
                pool = f"agent:{self._picture.facts[lane].agent}"
                held[pool] = held.get(pool, 0) + count
        needs = {pool for served in self.served.values() for pool in served.needs}
        if needs:
            tx.guards.pools(needs)
            limits |= with_locks(needs, tx.pools.limits())
            held |= tx.pools.held()
        return Admission(limits, held)
