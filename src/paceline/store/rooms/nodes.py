"""Nodes and what they serve: a node's row is the one lease under which all its jobs are held."""

from paceline.core.model import NodeRow
from paceline.store.driver import Driver, NamedBindings
from paceline.store.statements import Statements


class NodeRoom:
    """A job is held as long as its node's row is live; renewing that row renews all of them."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def add(
        self, name: str, identity: str, version: str, slots: int, now: int, expires_at: int, work_sharing: bool = True
    ) -> int:
        """A new life of a node; each life has a number of its own."""
        facts: NamedBindings = {"name": name, "identity": identity, "version": version, "slots": slots}
        times: NamedBindings = {"now": now, "expires_at": expires_at, "work_sharing": int(work_sharing)}
        rows = self._driver.rows(self._sql["nodes.insert"], {**facts, **times})
        return int(rows[0][0])

    def beat(self, node: int, now: int, expires_at: int) -> bool:
        """Renews the node's lease; False when somebody has ended it meanwhile."""
        arguments = {"id": node, "now": now, "expires_at": expires_at}
        return self._driver.write(self._sql["nodes.beat"], arguments) == 1

    def end(self, node: int, now: int, ending: str, expired_by: int | None = None) -> bool:
        """Ends a node's life; False when it had ended before, or has a lease that goes on behind `expired_by`.

        Of two who try, one is answered True.
        """
        arguments: NamedBindings = {"id": node, "now": now, "ending": ending, "expired_by": expired_by}
        return self._driver.write(self._sql["nodes.end"], arguments) == 1

    def live(self) -> list[NodeRow]:
        """Nodes whose life nobody has ended."""
        return [NodeRow._make(row) for row in self._driver.rows(self._sql["nodes.live"])]

    def newest(self, most: int) -> list[NodeRow]:
        """Live and ended nodes, newest first."""
        return [NodeRow._make(row) for row in self._driver.rows(self._sql["nodes.rows"], {"most": most})]

    def ended_holding(self) -> list[int]:
        """Ended nodes that jobs still name as their holder."""
        return [row[0] for row in self._driver.rows(self._sql["nodes.ended_holding"])]

    def serve(self, node: int, agents: list[int]) -> None:
        """The node has code for these agents; saying it again changes nothing."""
        self._driver.write_many(self._sql["nodes.serve"], [(node, agent) for agent in agents])

    def serving(self, agent: int) -> list[int]:
        """Live nodes that have code for an agent."""
        return [row[0] for row in self._driver.rows(self._sql["nodes.serving"], {"agent": agent})]

    def load(self) -> dict[int, int]:
        """How many jobs each node holds."""
        return dict(self._driver.rows(self._sql["nodes.load"]))
