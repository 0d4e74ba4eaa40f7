"""What nodes must know of each other to share the work."""

from collections.abc import Collection

from paceline.core.model import Company
from paceline.store.driver import Driver, NamedBindings, as_list
from paceline.store.statements import Statements


class CompanyRoom:
    """A node that has taken its share stands aside for a moment: what it has left is not left for it once more."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def look(self, node: int) -> Company:
        """How things stand for a node that is about to claim; its life cannot be ended before this transaction has."""
        rows = self._driver.rows(self._sql["company.look"], {"id": node})
        return Company(bool(rows[0][0]), *rows[0][1:]) if rows else Company(False, 0, 0, None)

    def free(self, node: int, agents: Collection[int], now: int, *, for_anybody: bool) -> dict[int, int]:
        """Free slots of this node and of all that do not stand aside, where they have code for one of the agents.

        Nodes that do not share work count when the work is `for_anybody`: submitted without a node.
        """
        arguments: NamedBindings = {"node": node, "agents": as_list(agents), "now": now}
        return dict(self._driver.rows(self._sql["company.free"], {**arguments, "for_anybody": int(for_anybody)}))

    def stand_aside(self, node: int, until: int) -> None:
        """Until then others count without this node; one whose life was ended stands nowhere."""
        self._driver.write(self._sql["company.stand_aside"], {"id": node, "until": until})
