"""What has to be known to say why a job is where it is, and to show all of it."""

from collections.abc import Sequence

from paceline.core.lifecycle import State
from paceline.core.lines import Bodies, LaneAgent, Linked
from paceline.core.model import Met, NodeRow, Wants
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements


class ReasonRoom:
    """Questions about one job and what surrounds it; each is bounded, whatever the store holds."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def prerequisites(self, job: int, most: int) -> list[Linked]:
        """What a job waits or waited for; what it still waits for comes first."""
        return [_linked(row) for row in self._rows("prerequisites", job=job, most=most)]

    def dependents(self, job: int, most: int) -> list[Linked]:
        """What waits or waited for a job."""
        return [_linked(row) for row in self._rows("dependents", job=job, most=most)]

    def count_edges(self, job: int) -> tuple[int, int, int]:
        """How many prerequisites a job has, how many of them are unmet, and how many dependents."""
        prerequisites, unmet, dependents = self._rows("count_edges", job=job)[0]
        return prerequisites, unmet, dependents

    def ahead(self, borders: Sequence[tuple[int, int, int]], most: int) -> int:
        """How many ready jobs stand before a (lane, ready_at, job), over all these lanes and up to `most`."""
        return int(self._rows("ahead", rows=as_list(borders), most=most)[0][0])

    def agent_of_lane(self, lane: int) -> LaneAgent:
        """What a lane stands for."""
        return LaneAgent._make(self._rows("agent_of_lane", lane=lane)[0])

    def holders(self, agent: int, pool: str, most: int) -> list[tuple[int, int | None, State]]:
        """(job, started_at, state) of who holds the agent's own limit, or units of another pool."""
        own = pool == f"agent:{agent}"
        rows = (
            self._rows("agent_holders", agent=agent, most=most)
            if own
            else self._rows("pool_holders", pool=pool, most=most)
        )
        return [(row[0], row[1], State(row[2])) for row in rows]

    def held_by_agent(self) -> dict[int, int]:
        """How many jobs of each agent hold a place."""
        return dict(self._rows("held_by_agent"))

    def served(self) -> list[tuple[int, int, str, str]]:
        """(node, agent, its name, its origin) for every node whose life nobody has ended."""
        return [(row[0], row[1], row[2], row[3]) for row in self._rows("served")]

    def node(self, id: int) -> NodeRow | None:
        """A node, alive or not."""
        found = self._rows("node", id=id)
        return NodeRow._make(found[0]) if found else None

    def accepted(self, job: int) -> bool:
        """The submission that a staged job belongs to is complete."""
        found = self._rows("accepted", job=job)
        return bool(found and found[0][0])

    def names(self, job: int, tenant: int, agent: int) -> tuple[str | None, str | None]:
        """(key, session) of a job."""
        key, session = self._rows("names", job=job, tenant=tenant, agent=agent)[0]
        return key, session

    def bodies(self, job: int, most: int) -> Bodies:
        """Input and result, up to so many characters of each."""
        return Bodies._make(self._rows("bodies", job=job, most=most)[0])

    def _rows(self, name: str, **arguments: int | str) -> list[Row]:
        return self._driver.rows(self._sql[f"reasons.{name}"], arguments)


def _linked(row: Row) -> Linked:
    return Linked(row[0], State(row[1]), Wants(row[2]), Met(row[3]), *row[4:])
