"""Which ready jobs this node starts next: ranked, admitted, claimed and leased in one transaction."""

from typing import NamedTuple

from paceline.core.capacity import Admission, Demand
from paceline.core.model import Claimed, Company
from paceline.node.picture import Picture
from paceline.node.pools import Served, room_in_pools
from paceline.node.sharing import Sharing
from paceline.store.protocol import Tx


class Start(NamedTuple):
    """A job that this node has claimed, with its input."""

    job: Claimed
    agent: int
    body: str


LOOKS = 4
"""So often one claim chooses: what others hold or have taken it passes over, and before the last time it reads anew."""


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

    def claim(self, tx: Tx, node: int, room: int, company: Company) -> list[Start]:
        """Claims at most `room` jobs and takes what they demand."""
        self.passed_over = self.sharing.begins = False
        if tx.again:
            self.forget()
        if room <= 0 or not self.served:
            return []
        self._picture.look(tx, node, company.last_event)
        if over := self.sharing.over(tx.now):
            self.sharing.taken_back(self._picture.put_back(tx, over), tx.now)
        if not len(self._picture.book):
            return []
        starts: list[Start] = []
        aside: dict[int, int] = {}
        for looked in range(LOOKS):
            picks = self._choose(tx, node, room - len(starts), company.slots)
            bodies = tx.jobs.lock_ready([job for job, _ in picks]) if picks else {}
            starts += self._start(tx, node, picks, bodies)
            lost = {job: lane for job, lane in picks if job not in bodies}
            if not lost:
                break
            aside |= lost
            if looked == LOOKS - 2:
                self._picture.look_again(tx, sorted(set(aside.values())))
        if aside:
            self.passed_over = self._picture.put_back(tx, list(aside)) > 0
        return starts

    def _choose(self, tx: Tx, node: int, room: int, others: int) -> list[tuple[int, int]]:
        """The next (job, lane) that fit, as many as there is room for here; fewer when others have room as well."""
        admission = room_in_pools(tx, self._picture, self.served)
        return self._pick_beside(tx, node, room, admission, others) if others else self._pick(tx, room, admission)

    def _start(self, tx: Tx, node: int, picks: list[tuple[int, int]], bodies: dict[int, str]) -> list[Start]:
        """Claims those of the chosen jobs that are held now, in the order in which they were chosen."""
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

    def _pick_beside(self, tx: Tx, node: int, room: int, admission: Admission, others: int) -> list[tuple[int, int]]:
        """The first of what could start, as many as are this node's share while others have room."""
        book, whole = self._picture.book, admission.copy()
        turns = book.turns()
        picks = self._pick(tx, room, admission)
        supply = len(picks) + (book.known if len(picks) >= room else 0)
        if not picks or supply >= room + others:
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
