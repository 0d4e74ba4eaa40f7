"""What people look at: lines about jobs, and the store's few facts about itself."""

from collections.abc import Sequence
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements

FAR = 2**62


class JobLine(NamedTuple):
    """One job with the words that belong to its numbers."""

    id: int
    state: State
    queue_class: int
    priority: int
    tenant: str
    agent: str
    epoch: int
    attempt: int
    node: int | None
    ready_at: int | None
    due_at: int | None
    created_at: int
    started_at: int | None
    ended_at: int | None
    reason: str | None
    fraction: float | None
    note: str | None
    parent: int | None
    root: int


class ListingRoom:
    """Read models; nothing here decides."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def jobs(
        self, *, state: State | None, agent: str | None, tenant: str | None, before: int = FAR, most: int = 50
    ) -> list[JobLine]:
        """The newest jobs that fit the filter, newest first."""
        arguments = {"before": before, "state": state, "agent": agent, "tenant": tenant, "most": most}
        return self._lines("listing.jobs", arguments)

    def dead(self, *, agent: str | None, tenant: str | None, before: int = FAR, most: int = 50) -> list[JobLine]:
        """Jobs that failed or timed out, newest first."""
        return self._lines("listing.dead", {"before": before, "agent": agent, "tenant": tenant, "most": most})

    def by_ids(self, ids: Sequence[int]) -> list[JobLine]:
        """The given jobs."""
        return self._lines("listing.by_ids", {"ids": as_list(ids)})

    def running(self, *, agent: str | None = None, most: int = 50) -> list[JobLine]:
        """Jobs that hold a slot on some node."""
        return self._lines("listing.running", {"agent": agent, "most": most})

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

    def ahead(self, lane: int, ready_at: int, job: int) -> int:
        """How many ready jobs stand before a job in its lane."""
        arguments = {"lane": lane, "ready_at": ready_at, "job": job}
        return int(self._driver.rows(self._sql["listing.ahead"], arguments)[0][0])

    def fact(self, name: str) -> str | None:
        """One fact of the store about itself."""
        found = self._driver.rows(self._sql["listing.meta"], {"name": name})
        return str(found[0][0]) if found else None

    def set_fact(self, name: str, value: str) -> None:
        """Writes a fact down."""
        self._driver.write(self._sql["listing.set_meta"], {"name": name, "value": value})

    def _lines(self, name: str, arguments: dict[str, str | int | None]) -> list[JobLine]:
        return [_line(row) for row in self._driver.rows(self._sql[name], arguments)]


def _line(row: Row) -> JobLine:
    return JobLine(row[0], State(row[1]), *row[2:])
