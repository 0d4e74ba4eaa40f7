"""Finishes what others left half-way: large submissions, large families of dependents, blocked jobs nobody told."""

from collections.abc import Callable
from typing import NamedTuple

from paceline.core.model import SECOND
from paceline.events import Kind
from paceline.store.protocol import Tx, Unit
from paceline.units.settle import Ends, settle, settle_postponed, unblock
from paceline.units.submit import forget, publish
from paceline.units.visit import show_committed

LOOK_EVERY = SECOND
SEARCHED_AT_ONCE = 1_000
ABANDONED_AFTER = 300 * SECOND


class Tidied(NamedTuple):
    """What one look did."""

    ended: Ends
    readied: bool
    more: bool
    searched_to: int = 0


class Janitor:
    """Every promise that takes more than one transaction is written down in the first; this loop keeps it."""

    name = "janitor"

    def __init__(self, take_in: Callable[[Tidied], None]) -> None:
        self._take_in = take_in
        self._looked_at: int | None = None
        self._cursor = 0
        self._more = False

    def call(self) -> None:
        """Somebody left something: look now."""
        self._more = True

    def unit(self, now: int) -> Unit[Tidied]:
        """One unit's worth of whatever is left to do."""
        cursor = self._cursor

        def tidy(tx: Tx) -> Tidied:
            ended, more = settle_postponed(tx)
            if more:
                return Tidied(ended, True, True)
            shown, more = show_committed(tx)
            if more:
                return Tidied([], True, True)
            unfinished = tx.submissions.unfinished_batches(tx.now - ABANDONED_AFTER)
            if not unfinished:
                found = search(tx, cursor)
                return found._replace(readied=found.readied or shown)
            batch, published_at = unfinished[0]
            readied = publish(tx, batch) if published_at else forget(tx, batch)
            return Tidied([], readied or shown, True)

        return tidy

    def done(self, result: Tidied, now: int) -> None:
        """Tells the node, and goes on at once while there is more."""
        self._looked_at = now
        self._more = result.more
        self._cursor = result.searched_to if not result.more else self._cursor
        self._take_in(result)

    def failed(self, now: int) -> None:
        """What is left to do is in the store, so nothing is lost here."""
        self._looked_at = now

    def next_at(self, now: int) -> int:
        """Every second, and at once while there is more."""
        return now if self._more or self._looked_at is None else self._looked_at + LOOK_EVERY


def search(tx: Tx, after: int) -> Tidied:
    """What must not exist: blocked jobs whose prerequisites have all ended. Mended, and said aloud."""
    blocked = tx.watch.blocked(after, SEARCHED_AT_ONCE)
    if not blocked:
        return Tidied([], False, False)
    ends = [(row.id, row.state) for row in tx.guards.rows(tx.watch.untold(blocked)) if row.state.ended]
    told = settle(tx, ends) if ends else []
    readied = unblock(tx, blocked)
    if ends or readied:
        tx.events.announce(tx.now, Kind.SWEEP_REPAIRED, f'{{"readied":{len(readied)},"untold":{len(ends)}}}')
    return Tidied(told, bool(ends or readied), False, blocked[-1])
