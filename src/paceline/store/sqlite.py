"""SQLite as the product uses it: a write-ahead log, every write begun as one, in turn with other processes."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

import apsw

from paceline.clock import Clock, SystemClock
from paceline.errors import StoreError
from paceline.store.driver import Bindings, Numbered, Row, Value
from paceline.store.places import check_file, check_folder, create_file
from paceline.store.trouble import BUSY, CLOSED, carried, complaint, explain, explained, newer
from paceline.store.turn import Turn

APPLICATION_ID = 0x50414345
"""`PACE`: tells our files from other people's."""

WAL_PAGES = 1_000
LOOK_SECONDS = 1.0
TURN_SECONDS = 30.0
BUSY_MILLISECONDS = 10_000


class SqliteConnection:
    """A driver over one apsw connection to an existing store; `begin` to `commit` is one transaction and one turn."""

    errors: type[Exception] = apsw.Error
    savepoints = near = True

    def __init__(self, path: Path | None, *, synchronous: str = "full", readonly: bool = False) -> None:
        self.path = path
        self.schema: int | None = None
        """The schema this program works with; once it is known, a write finds out when others have changed it."""
        self.closed = False
        self._pid = os.getpid()
        self._turn: Turn | None = None
        self._looked: float | None = None
        self._file: os.stat_result | None = None
        self._next: dict[Numbered, int] = {}
        if path is not None:
            check_folder(path.parent)
            check_file(path)
        with explained(path):
            self._db = _open(path)
            try:
                self._set_up(synchronous, readonly)
            except BaseException:
                self.close()
                raise

    def _set_up(self, synchronous: str, readonly: bool) -> None:
        db = self._db
        db.set_busy_timeout(BUSY_MILLISECONDS)
        db.pragma("trusted_schema", "off")
        if self.path is not None:
            self._refuse_others(self.path)
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            if not readonly:
                self._use_log(self.path)
            db.wal_autocheckpoint(0 if readonly else WAL_PAGES)
            self._file = os.stat(self.path)
        db.pragma("synchronous", synchronous)
        db.pragma("foreign_keys", "on")
        db.pragma("cache_size", -65_536)
        db.pragma("temp_store", "memory")
        if readonly:
            db.pragma("query_only", "on")
        elif self.path is not None:
            self._turn = Turn(self.path.with_name(f"{self.path.name}.lock"))

    def _refuse_others(self, path: Path) -> None:
        """Looks before anything is changed: even the choice of a log is written into the file."""
        application = self._db.pragma("application_id")
        if application != APPLICATION_ID:
            raise StoreError(
                code="store_foreign", what="the database belongs to another program", where=str(path),
                found=f"application id {application:#x}", allowed=f"{APPLICATION_ID:#x}", todo="name another file",
            )  # fmt: skip

    def _use_log(self, path: Path) -> None:
        mode = self._db.pragma("journal_mode", "wal")
        if mode != "wal":
            raise StoreError(
                code="store_no_wal", what="the database cannot use a write-ahead log", where=str(path),
                found=f"journal mode {mode}", todo="put it on a local disk, or use Postgres",
            )  # fmt: skip

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        return self._db.execute(sql, bindings).fetchall()

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        self._db.execute(sql, bindings)
        return self._db.changes()

    def write_many(self, sql: str, bindings: Iterable[Sequence[Value]]) -> None:
        """Runs one statement once per row of bindings."""
        self._db.executemany(sql, bindings)

    def lock(self, sql: str, bindings: Bindings = (), *, ending: bool = False) -> None:
        """Nothing to do: `begin` has locked the whole file."""

    def reserve(self, table: Numbered, count: int) -> Sequence[int]:
        """The numbers behind the highest; the newest job is never pruned, so that is the highest ever given."""
        first = self._next.get(table)
        if first is None:
            first = int(self.rows(f"select coalesce(max(id), 0) + 1 from {table}")[0][0])
        self._next[table] = first + count
        return range(first, first + count)

    def script(self, sql: str) -> None:
        """Runs several statements."""
        self._db.execute(sql)

    def savepoint(self) -> None:
        """What follows can be undone by itself."""
        self._db.execute("savepoint unit")

    def keep(self) -> None:
        """What followed the savepoint stays."""
        self._db.execute("release unit")

    def undo(self) -> None:
        """What followed the savepoint is undone; fine when the database has undone everything by itself."""
        if self._db.in_transaction:
            self._db.execute("rollback to unit; release unit")

    def explain(self, error: Exception) -> StoreError:
        """The database's error in the common form."""
        return explain(error, self.path)

    @property
    def in_transaction(self) -> bool:
        """What was begun is neither committed nor undone; some errors make the database undo it by itself."""
        return self._db.in_transaction

    @property
    def forked(self) -> bool:
        """This process is a child of the one that opened the connection."""
        return self._pid != os.getpid()

    def check_usable(self) -> None:
        """Refuses a connection of a parent process, and one that was closed."""
        if self.forked:
            raise carried(self.where)
        if self.closed:
            raise complaint(CLOSED, self.path, "")

    @property
    def where(self) -> str:
        """Where the store is, for people."""
        return str(self.path or "memory")

    def begin_alone(self) -> None:
        """Begins a transaction in which nobody else changes the schema."""
        self.begin(SystemClock(0))

    def begin(self, clock: Clock) -> int:
        """Waits for this process's turn and begins a writing transaction; answers its `now`."""
        self._look()
        self._next.clear()
        if self._turn is not None and not self._turn.take(TURN_SECONDS):
            raise complaint(BUSY, self.path, f"waited {TURN_SECONDS:g} s for our turn to write")
        try:
            self._db.execute("begin immediate")
            self._refuse_other_schema()
        except BaseException:
            self.rollback()
            raise
        return clock.now()

    def commit(self, proof: int | None = None) -> None:
        """Makes everything since `begin` durable, or nothing of it, which its answer always says."""
        try:
            self._db.execute("commit")
        finally:
            self.rollback()

    def rollback(self) -> None:
        """Undoes everything since `begin`; fine when the database has done so itself, or has committed."""
        try:
            if self._db.in_transaction:
                self._db.execute("rollback")
        finally:
            if self._turn is not None:
                self._turn.give()

    def read(self, clock: Clock) -> int:
        """Begins a transaction that only reads; answers its `now`."""
        self._look()
        self._db.execute("begin")
        return clock.now()

    def reader(self) -> "SqliteConnection | None":
        """Another connection to the same file that only reads; a database in memory has no other."""
        if self.path is None:
            return None
        self._looked = None
        self._look()
        return SqliteConnection(self.path, readonly=True)

    def close(self) -> None:
        """Closes the connection; closing twice is fine, and a forked child leaves its parent's alone."""
        if self.forked:
            return
        self.closed = True
        self._db.close()
        if self._turn is not None:
            self._turn.close()
            self._turn = None

    def hurry(self) -> None:
        """A file is never away."""

    def version(self) -> int:
        """The number of the last step applied; 0 when there was none yet."""
        return int(self.rows("pragma user_version")[0][0])

    def applied(self) -> dict[str, str]:
        """The checksums of the steps that were applied, by the name of the fact."""
        return dict(self.rows("select name, value from meta where name like 'migration %'"))

    def stamp(self, version: int) -> None:
        """From now on the store has this version."""
        self.script(f"pragma user_version = {version}; pragma application_id = {APPLICATION_ID}")

    def back_up(self) -> Path | None:
        """A copy of the store as it is before the first step; made by a reader, for a writer cannot copy itself."""
        path, version = self.path, self.version()
        if path is None or not version:
            return None
        names = (path.with_name(f"{path.name}.schema-{version}{more}.backup") for more in _endings())
        target = next(name for name in names if not os.path.lexists(name))
        with closing(SqliteConnection(path, readonly=True)) as reader:
            try:
                reader.copy_to(target)
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        return target

    def copy_to(self, target: Path) -> None:
        """Writes a consistent copy of the whole database into a new file, in one step that no writer can prolong."""
        create_file(target)
        with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as copy:
            with copy.backup("main", self._db, "main") as backup:
                backup.step(-1)
            copy.pragma("journal_mode", "delete")

    def _refuse_other_schema(self) -> None:
        if self.schema is not None and (found := self._db.pragma("user_version")) > self.schema:
            raise newer(self.where, found, self.schema)

    def _look(self) -> None:
        """A deleted or replaced file keeps answering as if nothing had happened, so look for ourselves."""
        self.check_usable()
        if self._file is None or self.path is None:
            return
        if self._looked is not None and time.monotonic() - self._looked < LOOK_SECONDS:
            return
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            now = None
        if now is None or (now.st_ino, now.st_dev) != (self._file.st_ino, self._file.st_dev):
            self._looked = None
            raise StoreError(
                code="store_gone", what="the database file was deleted or replaced while it was in use",
                where=str(self.path), todo="stop every process that uses it, restore the file, start again",
            )  # fmt: skip
        self._looked = time.monotonic()


def _endings() -> Iterator[str]:
    yield ""
    yield from (f"-{number}" for number in count(2))


def _open(path: Path | None) -> apsw.Connection:
    """Opens, never creates, and follows no link in place of the file."""
    if path is None:
        return apsw.Connection(":memory:", statementcachesize=256)
    real = os.path.join(os.path.realpath(path.parent), path.name)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    return apsw.Connection(real, flags=flags, statementcachesize=256)
