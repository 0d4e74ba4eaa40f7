"""What loops and waiting callers look for: what is due, overdue, held, ended."""

from collections.abc import Sequence

from paceline.store.driver import Driver, as_list
from paceline.store.statements import Statements


class WatchRoom:
    """Questions about jobs that change nothing."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def due(self, now: int, most: int) -> list[tuple[int, int]]:
        """(job, epoch) of up to `most` delayed jobs whose time has come, the longest due first."""
        return [(row[0], row[1]) for row in self._driver.rows(self._sql["jobs.due"], {"now": now, "most": most})]

    def next_due(self) -> int | None:
        """When the next delayed job becomes ready."""
        return self._number("jobs.next_due")

    def overdue(self, now: int, most: int) -> list[int]:
        """Up to `most` visible open jobs whose deadline has passed, the longest overdue first."""
        return [row[0] for row in self._driver.rows(self._sql["jobs.overdue"], {"now": now, "most": most})]

    def next_deadline(self) -> int | None:
        """When the next deadline passes."""
        return self._number("jobs.next_deadline")

    def held_by_node(self, node: int, most: int) -> list[int]:
        """Up to `most` jobs that a node holds, by id."""
        return [row[0] for row in self._driver.rows(self._sql["jobs.held_by_node"], {"node": node, "most": most})]

    def held_by_lane(self) -> list[tuple[int, int]]:
        """(lane, jobs held) over all nodes."""
        return [(row[0], row[1]) for row in self._driver.rows(self._sql["jobs.held"])]

    def ended_but_held(self, node: int, most: int) -> list[tuple[int, int]]:
        """(job, epoch) whose end somebody has written while the node's code still runs."""
        rows = self._driver.rows(self._sql["jobs.ended_but_held"], {"node": node, "most": most})
        return [(row[0], row[1]) for row in rows]

    def children(self, parents: Sequence[int], most: int) -> list[int]:
        """The direct children of the given jobs."""
        rows = self._driver.rows(self._sql["jobs.children"], {"ids": as_list(parents), "most": most})
        return [row[0] for row in rows]

    def open_children(self, parents: Sequence[int], most: int) -> list[int]:
        """Up to `most` direct children that can be seen and have not ended, by id."""
        rows = self._driver.rows(self._sql["jobs.open_children"], {"ids": as_list(parents), "most": most})
        return [row[0] for row in rows]

    def orphans(self, ids: Sequence[int]) -> list[int]:
        """Those of the given jobs whose parent was cancelled."""
        return [row[0] for row in self._driver.rows(self._sql["jobs.orphans"], {"ids": as_list(ids)})]

    def blocked(self, after: int, most: int) -> list[int]:
        """Blocked jobs behind an id."""
        return [row[0] for row in self._driver.rows(self._sql["watch.blocked"], {"after": after, "most": most})]

    def untold(self, blocked: Sequence[int]) -> list[int]:
        """What should not exist: ended jobs that hold these back and that nobody is going to settle, by id."""
        return [row[0] for row in self._driver.rows(self._sql["watch.untold"], {"ids": as_list(blocked)})]

    def _number(self, name: str) -> int | None:
        value = self._driver.rows(self._sql[name])[0][0]
        return None if value is None else int(value)
