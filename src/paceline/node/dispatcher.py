"""Which ready jobs this node starts next: ranked, admitted, claimed and leased in one transaction."""

from collections.abc import Mapping
from typing import NamedTuple

from paceline.core.capacity import Admission, Demand, with_locks
from paceline.core.model import Claimed
from paceline.node.picture import Picture
from paceline.node.sharing import Sharing
from paceline.store.protocol import Tx


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
    """Chooses from its picture of the lanes; a wrong picture wastes a claim and never doubles one."""

    def __init__(self, *, work_sharing: bool = True) -> None:
        self._picture = Picture(work_sharing)
        self.sharing = Sharing()
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
        self.sharing.forget()

    def claim(self, tx: Tx, node: int, room: int) -> list[Start]:
        """Claims at most `room` jobs and takes what they demand; a node whose life was ended claims nothing."""
        self.passed_over = self.sharing.begins = False
        if tx.again:
            self.forget()
        if room <= 0 or not self.served:
            return []
        self._picture.look(tx, node)
        if over := self.sharing.over(tx.now):
            self.sharing.taken_back(self._picture.put_back(tx, over), tx.now)
        company = tx.company.slots(node) if len(self._picture.book) else None
        if company is None:
            return []
        starts, outrun = self._claim(tx, node, room, company)
        if outrun:
            self._picture.look_again(tx, outrun)
            starts += self._claim(tx, node, room - len(starts), company)[0]
        return starts

    def _claim(self, tx: Tx, node: int, room: int, company: int) -> tuple[list[Start], set[int]]:
        """What was chosen and could be claimed, and the lanes in which others had been faster."""
        admission = self._admission(tx)
        picks = self._pick_beside(tx, node, room, admission, company) if company else self._pick(tx, room, admission)
        if not picks:
            return [], set()
        bodies, outrun = tx.jobs.lock_ready([job for job, _ in picks]), set[int]()
        if len(bodies) < len(picks):
            lost = [(job, lane) for job, lane in picks if job not in bodies]
            contested = self._picture.put_back(tx, [job for job, _ in lost])
            self.passed_over = self.passed_over or contested > 0
            outrun = {lane for _, lane in lost} if contested < len(lost) else outrun
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
        return starts, outrun

    def _pick_beside(self, tx: Tx, node: int, room: int, admission: Admission, company: int) -> list[tuple[int, int]]:
        """The first of what could start, as many as are this node's share while others have room."""
        book, whole = self._picture.book, admission.copy()
        turns = book.turns()
        picks = self._pick(tx, room, admission)
        supply = len(picks) + (book.known if len(picks) >= room else 0)
        if not picks or supply >= room + company:
            return picks
        found, lanes = [job for job, _ in picks], {self._picture.facts[lane] for _, lane in picks}
        most = self.sharing.most(tx, node, found, supply, lanes)
        if most < len(picks):
            self._picture.put_back(tx, found[:most])
            book.give_turns_back(turns)
            picks = self._pick(tx, most, whole)
        return picks

    def _pick(self, tx: Tx, room: int, admission: Admission) -> list[tuple[int, int]]:
        picks: list[tuple[int, int]] = []
        while True:
            taken = self._picture.book.take(
                tx.now, room - len(picks), admission, self._demands.__getitem__, self.served
            )
            picks += taken.picks
            self.refused = taken.refused
            if not taken.hungry or len(picks) >= room:
                return list(dict.fromkeys(picks))  # a job that was tried again may be known twice
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
