"""Limits and leases: usage is the sum over rows that say who holds."""

from collections.abc import Mapping, Sequence

from paceline.store.driver import Driver, as_list
from paceline.store.statements import Statements


class PoolRoom:
    """Job rows hold their standard pools by themselves; lease rows hold everything else."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def seed(self, limits: Mapping[str, int]) -> None:
        """Limits for pools that have none yet; the store stays the truth for the others."""
        self._driver.write_many(self._sql["pools.seed"], list(limits.items()))

    def limits(self) -> dict[str, int]:
        """Every declared limit."""
        return dict(self._driver.rows(self._sql["pools.limits"]))

    def held(self) -> dict[str, int]:
        """Units held, by pool."""
        return dict(self._driver.rows(self._sql["pools.held"]))

    def take(self, leases: Sequence[tuple[int, str, int, int]]) -> None:
        """Leases for (job, pool, epoch, units) that this transaction has admitted and claimed.

        A job that still holds a unit of that pool from an earlier epoch is an error and undoes the unit.
        """
        self._driver.write_many(self._sql["pools.take"], leases)

    def release(self, held: Sequence[tuple[int, int]]) -> None:
        """What these (job, epoch) held is free; releasing twice is fine, and another epoch's leases stay."""
        self._driver.write(self._sql["pools.release"], {"rows": as_list(held)})

    def holders(self, pool: str) -> list[tuple[int, int]]:
        """(job, units) of who holds a pool."""
        return [(row[0], row[1]) for row in self._driver.rows(self._sql["pools.holders"], {"pool": pool})]
