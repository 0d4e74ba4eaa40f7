"""The append-only log, and the change feed that dispatchers read."""

from operator import itemgetter

from paceline.events import MAKES_READY, Event, Kind
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements

MOST_OWN = 20_000
"""Behind so many events nobody who wants to follow is served by memory any more."""
_KINDS = as_list([int(kind) for kind in (*MAKES_READY, Kind.JOB_STARTED)])


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
        self._flushed = False
        self._since, self._own = -1, 0
        self._fresh: dict[int, None] = {}

    def begin(self) -> None:
        """A new transaction: the one before was committed, unless what it had gathered was discarded."""
        if self._flushed and self._own <= MOST_OWN:
            self._own += len(self._gathered)
            self._follow(self._fresh)
        self._flushed = False
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
        self._flushed = False

    def flush(self) -> int | None:
        """Writes what was gathered at the end of the log, in the order of the ids; answers one of them."""
        if not self._gathered:
            return None
        rows = sorted(self._gathered, key=_by_id)
        self._flushed = True
        self._driver.lock(self._sql["events.lock_end"], ending=True)
        self._driver.write_many(self._insert, rows)
        return rows[0][0]

    def last(self) -> int:
        """The last place of the log; what this transaction has gathered comes behind it."""
        return int(self._driver.rows(self._sql["events.last"])[0][0])

    def gained(self, after: int, upto: int) -> list[Row]:
        """(lane, ready_at, job, ready) of the jobs that became ready or were taken in that stretch of the log."""
        return self._driver.rows(self._sql["events.gained"], {"after": after, "upto": upto, "kinds": _KINDS})

    def gained_here(self, after: int | None, upto: int) -> tuple[list[int], bool]:
        """The jobs that this connection has made ready, in this transaction too; and whether that is all there is.

        It is, when everything in that stretch of the log was written here, since somebody asked as far as `after`.
        """
        complete = after == self._since and upto - self._since == self._own
        fresh, self._fresh = self._fresh, {}
        self._since, self._own = upto, 0
        self._follow(fresh)
        return list(fresh), complete

    def _follow(self, fresh: dict[int, None]) -> None:
        """What was gathered makes jobs ready, and whatever else happens to a ready job takes it away again."""
        for _, job, _, _, _, kind, _, _ in self._gathered:
            if kind in MAKES_READY:
                fresh[job] = None  # type: ignore[index]
            elif job in fresh:
                del fresh[job]

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
