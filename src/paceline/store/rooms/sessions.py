"""The order of a session's jobs: each waits for the one before it, whatever becomes of those in between."""

from paceline.store.driver import Driver
from paceline.store.statements import Statements


class SessionRoom:
    """Edges keep a session in order; a job that ends before its turn must not let those behind it pass."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def hand_on(self, ended: int) -> None:
        """Those behind this ended job now wait for what it still waited for, which is held open meanwhile."""
        self._driver.write(self._sql["sessions.hand_on"], {"job": ended})

    def open_before(self, ended: int) -> list[int]:
        """Open jobs of its session that an ended job still waited for: whoever comes behind it waits for them."""
        return [row[0] for row in self._driver.rows(self._sql["sessions.open_before"], {"job": ended})]
