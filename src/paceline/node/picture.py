"""What a node knows of the lanes that have ready jobs: read once, then kept fresh from the log of events."""

from collections.abc import Sequence

from paceline.core.bands import Key
from paceline.core.choosing import Hungry
from paceline.core.lanes import LaneBook, LaneFacts
from paceline.store.protocol import Row, Tx

LOADED_AT_ONCE = 20_000
FEED_STRETCH = 5_000
HEADS_AT_ONCE = 512
RENEWED_AT_ONCE = 64
"""Who shares a lane with others learns little of it at a time: they take most of it."""


class Picture:
    """The book of lanes, what each lane stands for, and how far the log was read."""

    def __init__(self) -> None:
        self.book = LaneBook()
        self.facts: dict[int, LaneFacts] = {}
        self._seen: int | None = None

    def forget(self) -> None:
        """Look at everything again."""
        self.book.clear()
        self.facts.clear()
        self._seen = None

    def look(self, tx: Tx) -> None:
        """Brings the picture up to date from the log of events, or from the lanes themselves when it is new."""
        last = tx.events.last()
        if self._seen is None or last - self._seen > LOADED_AT_ONCE:
            self.book.clear()
            everything = [Hungry(lane, -1, -1) for lane in tx.lanes.with_ready_jobs()]
            for lane, (keys, complete) in self._heads(tx, everything).items():
                self.book.load(self.facts[lane], keys, complete)
            self._seen = last
            return
        self._learn_of(tx, tx.lanes.ready(tx.events.gained_here()))
        while self._seen < last:
            upto = min(last, self._seen + FEED_STRETCH)
            self._learn_of(tx, tx.events.gained(self._seen, upto))
            self._seen = upto

    def refill(self, tx: Tx, hungry: list[Hungry]) -> None:
        """Reads more of the lanes whose known jobs are used up."""
        for lane, (keys, complete) in self._heads(tx, hungry).items():
            self.book.refill(lane, keys, complete)

    def put_back(self, tx: Tx, jobs: Sequence[int]) -> bool:
        """Those of the chosen jobs that are ready all the same stay known; True when there were any.

        Somebody else holds them for a moment, and may let them go as they were.
        """
        ready = tx.lanes.ready(jobs)
        self._learn_of(tx, ready)
        return bool(ready)

    def renew(self, tx: Tx, lost: Sequence[tuple[int, int]]) -> None:
        """Of these (job, lane) some may have been taken by others: what is known of such a lane begins anew."""
        waiting = {job for _, _, job in tx.lanes.ready([job for job, _ in lost])}
        stale = [Hungry(lane, -1, -1) for lane in sorted({lane for job, lane in lost if job not in waiting})]
        for lane, (keys, complete) in self._heads(tx, stale, RENEWED_AT_ONCE).items():
            self.book.load(self.facts[lane], keys, complete)

    def _learn_of(self, tx: Tx, gained: list[Row]) -> None:
        """Jobs that became ready."""
        self.learn(tx, [row[0] for row in gained])
        for lane, ready_at, job in gained:
            self.book.add(self.facts[lane], ready_at, job)

    def _heads(self, tx: Tx, hungry: list[Hungry], at_once: int = HEADS_AT_ONCE) -> dict[int, tuple[list[Key], bool]]:
        """The next jobs of each lane, and whether these are all it has."""
        if not hungry:
            return {}
        self.learn(tx, [lane.lane for lane in hungry])
        most = max(2, min(at_once, LOADED_AT_ONCE // len(hungry)))
        heads: dict[int, list[Key]] = {lane.lane: [] for lane in hungry}
        for lane, ready_at, job in tx.lanes.heads(hungry, most):
            heads[lane].append((ready_at, job))
        return {lane: (keys, len(keys) < most) for lane, keys in heads.items()}

    def learn(self, tx: Tx, lanes: list[int]) -> None:
        unknown = sorted({lane for lane in lanes if lane not in self.facts})
        if unknown:
            self.facts |= tx.lanes.facts(unknown)
