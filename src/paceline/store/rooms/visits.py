"""Transactions of others: submissions that are written in one, and those that somebody has left open."""

from collections.abc import Sequence
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import Edge, Met, Wants
from paceline.store.driver import Driver, NamedBindings, as_list
from paceline.store.statements import Statements

_FIRST = -(1 << 62)
"""Numbers of these submissions rise from here and stay below zero; those of others are times."""


class LeftOpen(NamedTuple):
    """A transaction that somebody began and has not ended; `name` tells it from all others."""

    name: str
    pid: int
    user: str
    application: str
    state: str
    seconds: int


class VisitRoom:
    """What is written in a visit is new rows only, so that whoever else writes has nothing to wait for."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def home(self) -> str:
        """Which store this is; the same over every connection to it, and over none to another."""
        return str(self._driver.rows(self._sql["visits.home"])[0][0])

    def may_write(self) -> bool:
        """Nothing forbids to write here."""
        return bool(self._driver.rows(self._sql["visits.may_write"])[0][0])

    def key_is_free(self, tenant: int, agent: int, key: str) -> bool:
        """No open transaction of somebody else is about to take this key; none does before this one ends."""
        return self._try("visits.key_is_free", tenant, agent, key)

    def hold_key(self, tenant: int, agent: int, key: str) -> bool:
        """This transaction alone may take the key; False, without waiting, when another may."""
        return self._try("visits.hold_key", tenant, agent, key)

    def open(self, first: int, now: int) -> int:
        """A submission that is accepted as soon as it can be seen; its number is made of that of its first job."""
        batch = _FIRST + first
        self._driver.write(self._sql["visits.open"], {"id": batch, "now": now})
        return batch

    def committed(self, most: int) -> list[int]:
        """Up to `most` of these submissions that are not all visible yet, the oldest first, and nobody else's work."""
        return [row[0] for row in self._driver.rows(self._sql["visits.committed"], {"most": most})]

    def staged(self, batches: Sequence[int], most: int) -> list[int]:
        """Up to `most` of their jobs that nobody can see yet, by id."""
        arguments: NamedBindings = {"batches": as_list(batches), "most": most}
        return [row[0] for row in self._driver.rows(self._sql["visits.staged"], arguments)]

    def close(self, batches: Sequence[int]) -> None:
        """Every job of these submissions is visible."""
        self._driver.write(self._sql["visits.close"], {"batches": as_list(batches)})

    def overlooked(self, staged: Sequence[int]) -> list[tuple[Edge, State]]:
        """Edges whose prerequisite ended while nobody could see them; those that are open stay so, if they are held."""
        rows = self._driver.rows(self._sql["visits.overlooked"], {"ids": as_list(staged)})
        return [(Edge(row[0], row[1], Wants(row[2]), Met(row[3])), State(row[4])) for row in rows]

    def left_open(self, seconds: int) -> list[LeftOpen]:
        """Transactions of whoever uses the database that began longer ago; none where the database need not care."""
        return [LeftOpen._make(row) for row in self._driver.rows(self._sql["visits.left_open"], {"seconds": seconds})]

    def warn(self, name: str) -> bool:
        """Notes that a transaction is spoken of; False when somebody has done so before."""
        return self._driver.write(self._sql["visits.warn"], {"name": name}) == 1

    def forget_warnings(self, others: Sequence[str]) -> None:
        """All transactions but these have ended."""
        self._driver.write(self._sql["visits.forget_warnings"], {"names": as_list(others)})

    def _try(self, name: str, tenant: int, agent: int, key: str) -> bool:
        return bool(self._driver.rows(self._sql[name], {"tenant": tenant, "agent": agent, "key": key})[0][0])
