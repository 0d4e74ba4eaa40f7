"""Leaves other nodes their share of what is ready; what they do not take is taken at the next look."""

from collections.abc import Collection, Sequence

from paceline.core.lanes import LaneFacts
from paceline.core.sharing import Offer, share
from paceline.store.protocol import Tx


class Sharing:
    """Remembers what was left, and asks how much room others have only where that decides anything."""

    def __init__(self) -> None:
        self._offer = Offer()
        self.begins = False
        """The last claim has begun to leave something: others should hear of it."""

    def forget(self) -> None:
        """Nobody knows whether the last claim has happened."""
        self._offer, self.begins = Offer(), False

    @property
    def waits(self) -> bool:
        """Something is left for others; look again when their time is over."""
        return bool(self._offer.left)

    def over(self, now: int) -> Sequence[int]:
        """What was left for others who have had their time."""
        return self._offer.left if self._offer.over(now) else ()

    def taken_back(self, ready: int, now: int) -> None:
        """So many of these were still there."""
        self._offer = self._offer.taken_back(ready, now)

    def most(self, tx: Tx, node: int, found: Sequence[int], supply: int, lanes: Collection[LaneFacts]) -> int:
        """How many of the jobs found in these lanes this node takes, of so many that might start; the rest is left."""
        alone = not self._offer.left and tx.now < self._offer.until
        if alone:
            return len(found)
        agents = {lane.agent for lane in lanes}
        free = tx.company.free(node, agents, tx.now, for_anybody=any(not lane.home for lane in lanes))
        own = free.pop(node, len(found))
        most = min(len(found), share(supply, own, list(free.values())))
        if most < len(found):
            begins = not self._offer.left
            self._offer = self._offer.more(found[most:], tx.now)
            if begins:
                self.begins = True
                tx.company.stand_aside(node, self._offer.until)
        return most
