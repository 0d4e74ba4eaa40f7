"""Who does what only one node does at a time: a lease with terms, kept in one row for each such task."""

from paceline.core.leasing import Lead
from paceline.store.driver import Driver, NamedBindings
from paceline.store.statements import Statements


class LeaderRoom:
    """A task without a row has never had a leader."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def lead(self, name: str) -> Lead | None:
        """Who led last; whether that still holds only `hold` finds out."""
        rows = self._driver.rows(self._sql["leaders.lead"], {"name": name})
        return Lead._make(rows[0]) if rows else None

    def hold(self, name: str, held: Lead | None, wanted: Lead) -> bool:
        """Puts one lead in the place of another, for nobody else to change until this transaction ends.

        False when `held`, with its term and its expiry, is not what is there any more, or somebody is just leading.
        """
        new: NamedBindings = {"name": name, **wanted._asdict()}
        if held is None:
            return self._driver.write(self._sql["leaders.begin"], new) == 1
        old: NamedBindings = {"held_node": held.node, "held_term": held.term, "held_until": held.expires_at}
        return self._driver.write(self._sql["leaders.go_on"], {**new, **old}) == 1
