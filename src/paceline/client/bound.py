"""How many jobs may wait to start: counted at most once a second far from the bound, exactly near it."""

from paceline.core.model import SECOND
from paceline.core.submission import refuse_when_full
from paceline.store.protocol import Tx

FRESH = SECOND
FAR = 0.9


class Bound:
    """Remembers the last count and what this process has submitted since."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._count = 0
        self._counted_at = -FRESH

    def check(self, tx: Tx, asked: int) -> None:
        """Raises when there is no room for that many more root jobs."""
        if not asked:
            return
        if tx.now - self._counted_at >= FRESH:
            self._count, self._counted_at = sum(tx.outcomes.pending()), tx.now
        if self._count + asked > self.most * FAR:
            self._count, self._counted_at = tx.outcomes.pending_roots(), tx.now
            refuse_when_full(self._count, asked, self.most)
        self._count += asked
