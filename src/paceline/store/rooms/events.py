"""The append-only log, and the change feed that dispatchers read."""

from operator import itemgetter

from paceline.events import MAKES_READY, Event, Kind
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements

_KINDS = as_list([int(kind) for kind in MAKES_READY])


class EventRoom:
    """Events are gathered in memory and written in one statement, right before the commit.

    So the end of the log belongs to one transaction for no longer than that, and places in the log rise in the order
    of commits: a cursor never skips an event, whoever commits late.
    """

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql
        self._insert = sql["events.insert"]
        self._gathered: list[tuple[int, int | None, int, int | None, int, int, int, str | None]] = []

    def begin(self) -> None:
        """A new transaction: nothing of an earlier one is left."""
        self._gathered.clear()

    def reserve(self, count: int) -> int:
        """The first of `count` ids that belong to this transaction; unused ones leave a harmless gap."""
        return self._driver.reserve("events", max(count, 1))[0]

    def append(self, rows: list[tuple[int, int | None, int, int | None, int, int, int, str | None]]) -> None:
        """Many events at once, in column order: id, job, seq, prev, at, kind, epoch, data."""
        self._gathered += rows

    def announce(self, at: int, kind: Kind, data: str | None = None) -> None:
        """One event that belongs to no job."""
        self._gathered.append((self.reserve(1), None, 0, None, at, int(kind), 0, data))

    def mark(self) -> int:
        """How far has been gathered, for `discard`."""
        return len(self._gathered)

    def discard(self, mark: int = 0) -> None:
        """Forgets what a failed unit has gathered behind the mark."""
        del self._gathered[mark:]

    def flush(self) -> int | None:
        """Writes what was gathered at the end of the log, in the order of the ids; answers one of them."""
        if not self._gathered:
            return None
        rows = sorted(self._gathered, key=_by_id)
        self._gathered.clear()
        self._driver.lock(self._sql["events.lock_end"])
        self._driver.write_many(self._insert, rows)
        return rows[0][0]

    def last(self) -> int:
        """The last place of the log; what this transaction has gathered comes behind it."""
        return int(self._driver.rows(self._sql["events.last"])[0][0])

    def gained(self, after: int, upto: int) -> list[Row]:
        """(lane, ready_at, job) of the jobs that became ready in that stretch of the log and still are."""
        return self._driver.rows(self._sql["events.gained"], {"after": after, "upto": upto, "kinds": _KINDS})

    def gained_here(self) -> list[int]:
        """The jobs that became ready in this very transaction, and perhaps are no more."""
        return [row[1] for row in self._gathered if row[1] is not None and row[5] in MAKES_READY]

    def after(self, after: int, most: int) -> list[Event]:
        """The log from a cursor on."""
        return [_event(row) for row in self._driver.rows(self._sql["events.after"], {"after": after, "most": most})]

    def of_job(self, job: int, after: int = 0, most: int = 1_000) -> list[Event]:
        """The newest events of one job, oldest first."""
        rows = self._driver.rows(self._sql["events.of_job"], {"job": job, "after": after, "most": most})
        return [_event(row) for row in reversed(rows)]


_by_id = itemgetter(0)


def _event(row: Row) -> Event:
    return Event(row[0], row[1], row[2], row[3], Kind(row[4]), row[5], row[6])
