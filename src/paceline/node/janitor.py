"""Finishes what others left half-way: large submissions, large families of dependents, blocked jobs nobody told."""

from typing import NamedTuple

from paceline.core.model import SECOND, UNIT_ROWS
from paceline.events import Kind
from paceline.store.protocol import Tx, Unit
from paceline.units.settle import Ends, settle, settle_postponed, unblock
from paceline.units.submit import forget, publish

LOOK_EVERY = SECOND
SEARCH_EVERY = 60 * SECOND
ABANDONED_AFTER = 300 * SECOND


class Tidied(NamedTuple):
    """What one look did."""

    ended: Ends
    readied: bool
    more: bool


class Janitor:
    """Every promise that takes more than one transaction is written down in the first; this loop keeps it."""

    name = "janitor"

    def __init__(self) -> None:
        self._looked_at: int | None = None
        self._searched_at: int | None = None
        self._more = False
        self._searching = False
        self.last = Tidied([], False, False)

    def call(self) -> None:
        """Somebody left something: look now."""
        self._more = True

    def unit(self, now: int) -> Unit[Tidied]:
        """One unit's worth of whatever is left to do."""
        self._searching = self._searched_at is None or now >= self._searched_at + SEARCH_EVERY
        searching = self._searching

        def tidy(tx: Tx) -> Tidied:
            ended, more = settle_postponed(tx)
            if more:
                return Tidied(ended, True, True)
            for batch, published_at in tx.submissions.unfinished_batches(tx.now - ABANDONED_AFTER):
                more = publish(tx, batch) if published_at is not None else forget(tx, batch)
                return Tidied([], more, True)
            return self._search(tx) if searching else Tidied([], False, False)

        return tidy

    def done(self, result: Tidied, now: int) -> None:
        """Goes on at once while there is more."""
        self._looked_at = now
        self._more = result.more
        self.last = result
        if self._searching and not result.more:
            self._searched_at = now

    def failed(self, now: int) -> None:
        """What is left to do is in the store, so nothing is lost here."""
        self._looked_at = now

    def next_at(self, now: int) -> int:
        """Every second, and at once while there is more."""
        return now if self._more or self._looked_at is None else self._looked_at + LOOK_EVERY

    @staticmethod
    def _search(tx: Tx) -> Tidied:
        """What must not exist: blocked jobs whose prerequisites have all ended. Mended, and said aloud."""
        freed, ends = tx.edges.left_behind(0, UNIT_ROWS)
        if not freed and not ends:
            return Tidied([], False, False)
        told = settle(tx, ends)
        readied = unblock(tx, freed)
        tx.events.announce(tx.now, Kind.SWEEP_REPAIRED, f'{{"freed":{len(readied)},"ends":{len(ends)}}}')
        return Tidied(told, True, False)
