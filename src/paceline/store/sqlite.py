"""SQLite as the product uses it: one connection, write-ahead log, every write begun as one, in turn with other processes."""

import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path

import apsw
import apsw.ext

from paceline.errors import StoreError
from paceline.store.driver import Bindings, Row
from paceline.store.trouble import explain

APPLICATION_ID = 0x50414345
"""`PACE`: tells our files from other people's."""

WAL_PAGES = 1_000
LOOK_SECONDS = 1.0


class SqliteConnection:
    """A driver over one apsw connection; `begin` to `commit` is one transaction and one turn at the lock file."""

    def __init__(self, path: Path | None, *, synchronous: str = "full", readonly: bool = False) -> None:
        self.path = path
        self._pid = os.getpid()
        self._turn: int | None = None
        self._looked = 0.0
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path) if path else ":memory:", flags=flags, statementcachesize=256)
            self._db.set_busy_timeout(10_000)
            self._set_up(synchronous, readonly)
        except apsw.Error as error:
            raise explain(error, path) from None
        self._file = os.stat(path) if path else None
        if path and not readonly:
            self._turn = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _set_up(self, synchronous: str, readonly: bool) -> None:
        db = self._db
        if self.path:
            mode = db.pragma("journal_mode", "wal")
            if mode != "wal":
                raise StoreError(
                    code="store_no_wal", what="the database cannot use a write-ahead log", where=str(self.path),
                    found=f"journal mode {mode}", todo="put it on a local disk, or use Postgres",
                )
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.wal_autocheckpoint(0 if readonly else WAL_PAGES)
        db.pragma("synchronous", synchronous)
        db.pragma("foreign_keys", "on")
        db.pragma("trusted_schema", "off")
        db.pragma("cache_size", -65_536)
        db.pragma("temp_store", "memory")
        if readonly:
            db.pragma("query_only", "on")

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        return self._db.execute(sql, bindings).fetchall()

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        self._db.execute(sql, bindings)
        return self._db.changes()

    def write_many(self, sql: str, bindings: Iterable[Bindings]) -> None:
        """Runs one statement once per set of bindings."""
        self._db.executemany(sql, bindings)

    def script(self, sql: str) -> None:
        """Runs several statements."""
        self._db.execute(sql)

    def begin(self) -> None:
        """Waits for this process's turn and begins a writing transaction."""
        self._look()
        if self._turn is not None:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            self._db.execute("begin immediate")
        except BaseException:
            self._end_turn()
            raise

    def commit(self) -> None:
        """Makes everything since `begin` durable, or nothing of it."""
        try:
            self._db.execute("commit")
        finally:
            self._undo_if_open()
            self._end_turn()

    def rollback(self) -> None:
        """Undoes everything since `begin`; fine when the database has done so itself."""
        try:
            self._undo_if_open()
        finally:
            self._end_turn()

    def read(self) -> None:
        """Begins a transaction that only reads."""
        self._look()
        self._db.execute("begin")

    def close(self) -> None:
        """Closes the connection; closing twice is fine."""
        self._db.close()
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def copy_to(self, target: Path) -> None:
        """Writes a consistent copy of the whole database."""
        with apsw.Connection(str(target)) as copy, copy.backup("main", self._db, "main") as backup:
            while not backup.done:
                backup.step(1_000)

    def _undo_if_open(self) -> None:
        if self._db.in_transaction:
            self._db.execute("rollback")

    def _end_turn(self) -> None:
        if self._turn is not None:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _look(self) -> None:
        """A deleted or replaced file keeps answering as if nothing had happened, so look for ourselves."""
        if self._pid != os.getpid():
            raise StoreError(
                code="store_after_fork", what="a database connection was carried across a fork", where=str(self.path),
                todo="open the store again in the child",
            )
        if self._file is None or self.path is None or time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            now = None
        if now is None or (now.st_ino, now.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise StoreError(
                code="store_gone", what="the database file was deleted or replaced while it was in use",
                where=str(self.path), todo="stop every process that uses it, restore the file, start again",
            )
