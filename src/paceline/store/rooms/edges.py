"""Who waits for whom, and what became of it."""

from collections.abc import Sequence

from paceline.core.model import Edge, Met, Wants
from paceline.store.driver import Driver, NamedBindings, Row, as_list
from paceline.store.statements import Statements

_WANTS, _MET = tuple(Wants), tuple(Met)


class EdgeRoom:
    """Edges are kept when they are settled, so that the graph stays visible.

    An edge is settled once: a verb that finds it settled leaves it alone.
    """

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql
        self._open_from = sql["edges.open_from"]
        self.postponements = 0

    def insert(self, edges: Sequence[Edge]) -> None:
        """New edges between jobs that exist; one that exists already stays as it is."""
        self._driver.write_many(self._sql["edges.insert"], edges)

    def open_from(self, ended: Sequence[int], most: int) -> list[Edge]:
        """Up to `most` edges of ended jobs that nobody has settled yet."""
        return [_edge(row) for row in self._driver.rows(self._open_from, {"ids": as_list(ended), "most": most})]

    def settle(self, edges: Sequence[Edge]) -> None:
        """Writes down what became of each edge that is still open."""
        rows = as_list([(edge.dependency, edge.dependent, edge.met) for edge in edges])
        self._driver.write(self._sql["edges.settle"], {"rows": rows})

    def freed(self, dependents: Sequence[int]) -> list[tuple[int, int, int | None]]:
        """(job, epoch, due_at) of those that are blocked and wait for nothing any more, by id."""
        rows = self._driver.rows(self._sql["edges.freed"], {"ids": as_list(dependents)})
        return [(row[0], row[1], row[2]) for row in rows]

    def broken(self, dependents: Sequence[int]) -> list[tuple[int, int]]:
        """(dependent, its first prerequisite that ended otherwise than the edge asked), for those that have one."""
        rows = self._driver.rows(self._sql["edges.broken"], {"ids": as_list(dependents)})
        return [(row[0], row[1]) for row in rows]

    def before(self, job: int) -> list[Edge]:
        """What a job waits or waited for, by prerequisite."""
        return [_edge(row) for row in self._driver.rows(self._sql["edges.of_dependent"], {"job": job})]

    def broken_behind(self, jobs: Sequence[int], most: int) -> list[Edge]:
        """Edges that these jobs have broken, when they did not end as asked."""
        arguments: NamedBindings = {"ids": as_list(jobs), "most": most}
        return [_edge(row) for row in self._driver.rows(self._sql["edges.broken_behind"], arguments)]

    def reopen(self, edges: Sequence[Edge]) -> None:
        """A prerequisite lives again: these broken edges are open once more; one that is not broken stays as it is."""
        rows = as_list([(edge.dependency, edge.dependent) for edge in edges])
        self._driver.write(self._sql["edges.reopen"], {"rows": rows})

    def postpone(self, ended: Sequence[int]) -> None:
        """These ended jobs have more dependents than this unit may touch; noted once, however often it is said."""
        self.postponements += 1
        self._driver.write_many(self._sql["edges.postpone"], [(job,) for job in ended])

    def postponed(self, most: int) -> list[int]:
        """Up to `most` jobs whose dependents are still to be told of what became of them, by id."""
        return [row[0] for row in self._driver.rows(self._sql["edges.postponed"], {"most": most})]

    def settled(self, ended: Sequence[int]) -> None:
        """All dependents of these have been told."""
        self._driver.write(self._sql["edges.settled"], {"ids": as_list(ended)})


def _edge(row: Row) -> Edge:
    return Edge(row[0], row[1], _WANTS[row[2]], _MET[row[3]])
