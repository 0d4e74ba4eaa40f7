"""How much of the ready work a node takes at once while others have room for it, too.

A node that refills its own slots would take everything before others have looked. So it leaves them their share, for
a moment; what they have not taken by then it takes itself, and when they took nothing it leaves nothing for a while.
"""

from collections.abc import Sequence
from typing import NamedTuple

from paceline.core.model import SECOND

PAUSE = SECOND // 50
"""For so long others may take what was left for them."""
UNHEEDED = SECOND
"""For so long nothing is left for others who took nothing."""


class Offer(NamedTuple):
    """The jobs that were left for others, until when; none left: until when none will be."""

    left: tuple[int, ...] = ()
    until: int = 0

    def over(self, now: int) -> bool:
        """Others have had their time: what they left is looked at again."""
        return bool(self.left) and now >= self.until

    def more(self, jobs: Sequence[int], now: int) -> "Offer":
        """Leaves these jobs too; nobody waits longer because of that."""
        return Offer((*self.left, *jobs), self.until if self.left else now + PAUSE)

    def taken_back(self, ready: int, now: int) -> "Offer":
        """So many of the jobs left are still ready; when nobody took any, nothing is left for a while."""
        return Offer(until=now + UNHEEDED) if ready >= len(self.left) else Offer()


def share(supply: int, own_free: int, others_free: Sequence[int]) -> int:
    """A node's part of so many jobs: those with most free slots are filled first, then all alike; one at least."""
    frees = sorted((own_free, *others_free), reverse=True)
    total = level = 0
    for count, free in enumerate(frees, 1):
        total += free
        level = max(0, (total - supply) // count)
        if count == len(frees) or level >= frees[count]:
            break
    return min(supply, max(1, own_free - level))
