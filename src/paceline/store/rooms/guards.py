"""Guard rows: who decides over a set of rows first holds the row that stands for the set (law 10)."""

from collections.abc import Collection, Iterable, Sequence

from paceline.core.lifecycle import State
from paceline.core.model import JobRow
from paceline.store.driver import Driver, NamedBindings, as_list
from paceline.store.statements import Statements


class GuardRoom:
    """What is held here is held until the transaction ends; ask about the set in a statement after it.

    Rows are locked in the order of their ids, and kinds in the order of the verbs here. Where only one transaction
    writes at a time there is nothing to hold.
    """

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def limits(self, agents: Iterable[int]) -> None:
        """Nobody else counts what the limited ones of these agents hold."""
        self._driver.lock(self._sql["guards.limits"], {"ids": as_list(sorted(agents))})

    def pools(self, pools: Collection[str]) -> None:
        """Nobody else counts what is held of these pools."""
        names: NamedBindings = {"names": as_list(sorted(pools))}
        if len(self._driver.rows(self._sql["guards.pools"], names)) < len(pools):
            self._driver.write_many(self._sql["guards.add_pool"], [(name,) for name in sorted(pools)])
            self._driver.lock(self._sql["guards.pools"], names)

    def rows(self, jobs: Sequence[int]) -> list[JobRow]:
        """The rows of these jobs, which stay as they are; others may read them too."""
        found = self._driver.rows(self._sql["guards.rows"], {"ids": as_list(jobs)})
        return [JobRow(row[0], State(row[1]), *row[2:]) for row in found]

    def jobs(self, jobs: Iterable[int]) -> None:
        """Nobody else decides what becomes of these jobs: what they wait for is settled or not, and stays so."""
        self._driver.lock(self._sql["guards.jobs"], {"ids": as_list(sorted(jobs))})

    def prerequisites(self, dependents: Sequence[int]) -> None:
        """Nobody ends what these jobs still wait for: who ends a job looks for its dependents, and must see these."""
        self._driver.lock(self._sql["guards.prerequisites"], {"ids": as_list(dependents)})

    def parents(self, children: Sequence[int]) -> None:
        """Nobody ends the parents of these jobs: who ends one looks for its children, and must not miss these."""
        self._driver.lock(self._sql["guards.parents"], {"ids": as_list(children)})

    def open_before(self, ended: int) -> None:
        """What an ended job still waited for in its session stays open."""
        self._driver.lock(self._sql["sessions.open_before"], {"job": ended})
