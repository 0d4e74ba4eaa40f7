"""How jobs stand, in bulk: states, results, inputs, and how many wait."""

from collections.abc import Sequence

from paceline.core.lifecycle import State
from paceline.store.driver import Driver, as_list
from paceline.store.statements import Statements


class OutcomeRoom:
    """What those who wait and those who count ask for."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def states(self, ids: Sequence[int]) -> list[tuple[int, State]]:
        """Where the given jobs are; unknown ids are left out."""
        return [(row[0], State(row[1])) for row in self._driver.rows(self._sql["jobs.states"], {"ids": as_list(ids)})]

    def pending(self) -> tuple[int, int, int]:
        """How many jobs are ready, delayed and blocked."""
        names = ("jobs.count_ready", "jobs.count_due", "jobs.count_blocked")
        ready, due, blocked = (int(self._driver.rows(self._sql[name])[0][0]) for name in names)
        return ready, due, blocked

    def pending_roots(self) -> int:
        """How many root jobs have not started yet, exactly."""
        return int(self._driver.rows(self._sql["jobs.pending_roots"])[0][0])

    def results(self, ids: Sequence[int]) -> dict[int, tuple[State, str | None, str | None]]:
        """(state, reason, body) of the given jobs; the body of one that lives again is that of its last end."""
        rows = self._driver.rows(self._sql["jobs.results"], {"ids": as_list(ids)})
        return {row[0]: (State(row[1]), row[2], row[3]) for row in rows}

    def input(self, job: int) -> str:
        """The input of one job."""
        return str(self._driver.rows(self._sql["jobs.input"], {"job": job})[0][0])

    def set_input(self, job: int, body: str) -> None:
        """A person gives a dead job another input."""
        self._driver.write(self._sql["jobs.set_input"], {"job": job, "body": body})

    def keep_progress(self, progress: Sequence[tuple[int, float | None, str]]) -> None:
        """The latest word of (job, fraction, note)."""
        self._driver.write_many(self._sql["jobs.set_progress"], progress)

    def lift_deadline(self, job: int) -> None:
        """A job that is tried again by hand is not bound by a deadline that has passed."""
        self._driver.write(self._sql["jobs.lift_deadline"], {"job": job})
