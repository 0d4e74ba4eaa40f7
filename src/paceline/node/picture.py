"""What a node knows of the lanes that have ready jobs: read once, then kept fresh from the log of events."""

from collections.abc import Sequence

from paceline.core.bands import Key
from paceline.core.choosing import Hungry
from paceline.core.lanes import LaneBook, LaneFacts
from paceline.store.protocol import Row, Tx

LOADED_AT_ONCE = 20_000
FEED_STRETCH = 5_000
HEADS_AT_ONCE = 512


class Picture:
    """The book of lanes, what each lane stands for, and how far the log was read."""

    def __init__(self, work_sharing: bool = True) -> None:
        self.book = LaneBook()
        self.facts: dict[int, LaneFacts] = {}
        self._seen: int | None = None
        self._work_sharing = work_sharing
        self._barred: set[int] = set()

    def forget(self) -> None:
        """Look at everything again."""
        self.book.clear()
        self.facts.clear()
        self._barred.clear()
        self._seen = None

    def look(self, tx: Tx, node: int, last: int) -> None:
        """Brings the picture up to date from the log as far as `last`, or from the lanes themselves when it is new.

        Every life that this node has had is at home here.
        """
        if node not in self.book.homes:
            self.book.homes |= {node}
            self.forget()
        if self._barred and not self._barred.issubset(row.id for row in tx.nodes.live()):
            self.forget()  # what was submitted through a life that has ended is for everybody
        fresh, complete = tx.events.gained_here(self._seen, last)
        if self._seen is None or last - self._seen > LOADED_AT_ONCE:
            self.book.clear()
            ready = tx.lanes.with_ready_jobs()
            self.learn(tx, ready)
            everything = [Hungry(lane, -1, -1) for lane in ready if self._is_for_us(lane)]
            for lane, (keys, complete) in self._heads(tx, everything).items():
                self.book.load(self.facts[lane], keys, complete)
            self._seen = last
            return
        self._learn_of(tx, tx.lanes.ready(fresh))
        if complete:
            self._seen = last
        while self._seen < last:
            upto = min(last, self._seen + FEED_STRETCH)
            changed = tx.events.gained(self._seen, upto)
            for lane, ready_at, job, ready in changed:
                if not ready:
                    self.book.remove(lane, ready_at, job)
            self._learn_of(tx, [row[:3] for row in changed if row[3]])
            self._seen = upto

    def refill(self, tx: Tx, hungry: list[Hungry]) -> None:
        """Reads more of the lanes whose known jobs are used up."""
        for lane, (keys, complete) in self._heads(tx, hungry).items():
            self.book.refill(lane, keys, complete)

    def look_again(self, tx: Tx, lanes: Sequence[int]) -> None:
        """Others were faster here: reads anew what stands at the head of these lanes."""
        for lane, (keys, complete) in self._heads(tx, [Hungry(lane, -1, -1) for lane in lanes]).items():
            self.book.load(self.facts[lane], keys, complete)

    def put_back(self, tx: Tx, jobs: Sequence[int]) -> int:
        """Those of the chosen jobs that are ready all the same stay known; answers how many they are.

        Somebody else holds them for a moment, and may let them go as they were.
        """
        ready = tx.lanes.ready(jobs)
        self._learn_of(tx, ready)
        return len(ready)

    def _learn_of(self, tx: Tx, gained: list[Row]) -> None:
        """Jobs that became ready."""
        self.learn(tx, [row[0] for row in gained])
        for lane, ready_at, job in gained:
            if self._barred and not self._is_for_us(lane):
                continue
            self.book.add(self.facts[lane], ready_at, job)

    def _heads(self, tx: Tx, hungry: list[Hungry]) -> dict[int, tuple[list[Key], bool]]:
        """The next jobs of each lane, and whether these are all it has."""
        if not hungry:
            return {}
        self.learn(tx, [lane.lane for lane in hungry])
        most = max(2, min(HEADS_AT_ONCE, LOADED_AT_ONCE // len(hungry)))
        heads: dict[int, list[Key]] = {lane.lane: [] for lane in hungry}
        for lane, ready_at, job in tx.lanes.heads(hungry, most):
            heads[lane].append((ready_at, job))
        return {lane: (keys, len(keys) < most) for lane, keys in heads.items()}

    def learn(self, tx: Tx, lanes: list[int]) -> None:
        """Reads what these lanes stand for and, where that matters, whether those live who submit there."""
        unknown = sorted({lane for lane in lanes if lane not in self.facts})
        if not unknown:
            return
        found = tx.lanes.facts(unknown)
        self.facts |= found
        if not self._work_sharing:
            others = {lane.home for lane in found.values()} - self.book.homes
            self._barred |= others & {row.id for row in tx.nodes.live()}

    def _is_for_us(self, lane: int) -> bool:
        return self.facts[lane].home not in self._barred
