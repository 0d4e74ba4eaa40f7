"""The append-only log, and the change feed that dispatchers read."""

from paceline.core.model import Moved
from paceline.events import MAKES_READY, Event, Kind
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements

_KINDS = as_list([int(kind) for kind in MAKES_READY])


class EventRoom:
    """Events are gathered in memory and written in one statement, at the latest before the commit."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql
        self._insert = sql["events.insert"]
        self._gathered: list[tuple[int, int | None, int, int | None, int, int, int, str | None]] = []
        self._next: int | None = None

    def begin(self) -> None:
        """A new transaction: others may have written meanwhile."""
        self._gathered.clear()
        self._next = None

    def reserve(self, count: int) -> int:
        """The first of `count` ids that belong to this transaction; unused ones leave a harmless gap."""
        if self._next is None:
            self._next = int(self._driver.rows(self._sql["events.next_id"])[0][0])
        first = self._next
        self._next += count
        return first

    def append(self, id: int, moved: Moved, at: int, kind: Kind, epoch: int, data: str | None = None) -> None:
        """One event of a job, under the id that the job row already names as its last."""
        self._gathered.append((id, moved.id, moved.seq, moved.prev_event, at, int(kind), epoch, data))

    def append_rows(self, rows: list[tuple[int, int | None, int, int | None, int, int, int, str | None]]) -> None:
        """Many events at once, in column order: id, job, seq, prev, at, kind, epoch, data."""
        self._gathered += rows

    def announce(self, at: int, kind: Kind, data: str | None = None) -> None:
        """One event that belongs to no job."""
        self._gathered.append((self.reserve(1), None, 0, None, at, int(kind), 0, data))

    def discard(self) -> None:
        """Forgets what the failed unit gathered; what it had flushed goes with its savepoint."""
        self._gathered.clear()

    def flush(self) -> None:
        """Writes what was gathered."""
        if self._gathered:
            self._driver.write_many(self._insert, self._gathered)
            self._gathered.clear()

    def last(self) -> int:
        """The highest id written so far; reserved ids that stay unused are given again by a later transaction."""
        if self._gathered:
            return max(row[0] for row in self._gathered)
        return int(self._driver.rows(self._sql["events.next_id"])[0][0]) - 1

    def gained(self, after: int, upto: int) -> list[Row]:
        """(lane, ready_at, job) of the jobs that became ready in that stretch of the log and still are."""
        self.flush()
        return self._driver.rows(self._sql["events.gained"], {"after": after, "upto": upto, "kinds": _KINDS})

    def after(self, after: int, most: int) -> list[Event]:
        """The log from a cursor on."""
        return [_event(row) for row in self._driver.rows(self._sql["events.after"], {"after": after, "most": most})]

    def newest(self, most: int) -> list[Event]:
        """The end of the log, oldest first."""
        return [_event(row) for row in reversed(self._driver.rows(self._sql["events.newest"], {"most": most}))]

    def of_job(self, job: int, after: int = 0, most: int = 1_000) -> list[Event]:
        """The newest events of one job, oldest first."""
        rows = self._driver.rows(self._sql["events.of_job"], {"job": job, "after": after, "most": most})
        return [_event(row) for row in reversed(rows)]


def _event(row: Row) -> Event:
    return Event(row[0], row[1], row[2], row[3], Kind(row[4]), row[5], row[6])
