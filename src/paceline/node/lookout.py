"""Looks for transactions that somebody has left open: while one lasts, the database can clear nothing away."""

import msgspec

from paceline.core.model import SECOND
from paceline.events import Kind
from paceline.store.protocol import Tx, Unit

LOOK_EVERY = 30 * SECOND
LEFT_OPEN_AFTER = 60 * SECOND


class Lookout:
    """Says once of each such transaction that it is there, whichever node sees it first."""

    name = "lookout"

    def __init__(self) -> None:
        self._looked_at: int | None = None

    def unit(self, now: int) -> Unit[int]:
        """One look; answers how many were announced."""
        return announce

    def done(self, result: int, now: int) -> None:
        """That was that."""
        self._looked_at = now

    def failed(self, now: int) -> None:
        """They are still open at the next look, or it does not matter any more."""
        self._looked_at = now

    def next_at(self, now: int) -> int:
        """At the start and every half minute."""
        return now if self._looked_at is None else self._looked_at + LOOK_EVERY


def announce(tx: Tx) -> int:
    """A warning for each transaction that has been open for a minute and that nobody has spoken of."""
    bound = LEFT_OPEN_AFTER // SECOND
    found = tx.visits.left_open(bound // 2)  # and so those that another node, a moment later, finds old enough
    tx.visits.forget_warnings([one.name for one in found])
    new = [one for one in found if one.seconds >= bound and tx.visits.warn(one.name)]
    for one in new:
        facts = {"pid": one.pid, "user": one.user, "application": one.application, "state": one.state}
        data = msgspec.json.encode({**facts, "seconds": one.seconds}).decode()
        tx.events.announce(tx.now, Kind.STORE_TRANSACTION_OPEN, data)
    return len(new)
