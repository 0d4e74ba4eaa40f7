"""What people look at: which jobs to list, a line for each, and the store's few facts about itself."""

from collections.abc import Sequence
from typing import Literal

from paceline.core.lanes import LaneFacts
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.scheduling import QueueClass
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements

FAR = 2**62

Shelf = Literal["newest", "dead", "running", "delayed", "blocked", "staged"]
"""Where to look for jobs; `running` also holds those whose code has not stopped yet."""


class ListingRoom:
    """Read models; nothing here decides."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def find(
        self,
        shelf: Shelf,
        most: int,
        *,
        states: Sequence[State] | None = None,
        lanes: Sequence[int] | None = None,
        before: int = FAR,
    ) -> list[int]:
        """Jobs in the order of that shelf; `before` is for paging, where newer ones come first."""
        arguments: dict[str, int | str | None] = {"most": most, "lanes": None if lanes is None else as_list(lanes)}
        if shelf in ("newest", "running"):
            arguments["states"] = None if states is None else as_list([int(state) for state in states])
        if shelf in ("newest", "dead"):
            arguments["before"] = before
        return [row[0] for row in self._driver.rows(self._sql[f"listing.{shelf}"], arguments)]

    def by_ids(self, ids: Sequence[int]) -> list[JobLine]:
        """A line for each of the given jobs, in the order in which they are given."""
        rows = self._driver.rows(self._sql["listing.by_ids"], {"ids": as_list(ids)})
        lines = {row[0]: _line(row) for row in rows}
        return [lines[job] for job in ids if job in lines]

    def lanes_of(self, agent: str | None, tenant: str | None) -> list[int]:
        """The lanes of an agent's or a tenant's jobs, whatever their class and priority."""
        found = self._driver.rows(self._sql["listing.lanes_of"], {"agent": agent, "tenant": tenant})
        return [row[0] for row in found]

    def ready_lanes(self, most: int) -> list[LaneFacts]:
        """The first so many lanes that have a ready job."""
        rows = self._driver.rows(self._sql["listing.ready_lanes"], {"most": most})
        return [LaneFacts(row[0], QueueClass(row[1]), *row[2:]) for row in rows]

    def starting_with(self, digits: str, most: int) -> list[int]:
        """Ids whose decimal digits begin so; the exact one alone when it exists."""
        exact = self._driver.rows(self._sql["listing.exists"], {"id": int(digits)})
        if exact:
            return [exact[0][0]]
        found: list[int] = []
        low, high = int(digits) * 10, int(digits) * 10 + 9
        while high < FAR and len(found) < most:
            arguments = {"low": low, "high": high, "most": most - len(found)}
            found += [row[0] for row in self._driver.rows(self._sql["listing.between"], arguments)]
            low, high = low * 10, high * 10 + 9
        return found

    def nearest(self, job: int) -> list[int]:
        """The jobs whose ids stand next to one that does not exist."""
        return [row[0] for row in self._driver.rows(self._sql["listing.nearest"], {"id": job})]

    def fact(self, name: str) -> str | None:
        """One fact of the store about itself."""
        found = self._driver.rows(self._sql["listing.meta"], {"name": name})
        return str(found[0][0]) if found else None

    def add_fact(self, name: str, value: str) -> None:
        """Writes a fact down, unless somebody else has done so."""
        self._driver.write(self._sql["listing.add_meta"], {"name": name, "value": value})

    def set_fact(self, name: str, value: str) -> None:
        """Writes a fact down."""
        self._driver.write(self._sql["listing.set_meta"], {"name": name, "value": value})


def _line(row: Row) -> JobLine:
    return JobLine(row[0], State(row[1]), *row[2:])
