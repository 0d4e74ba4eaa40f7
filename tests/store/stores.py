"""The databases that the tests run over: a third one is one more entry here, and nothing else."""

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import psycopg

from paceline.clock import Clock
from paceline.store.dialect import SQLITE
from paceline.store.doors import postgres_store, sqlite_store
from paceline.store.migrate import create
from paceline.store.postgres import PostgresConnection
from paceline.store.postgres_place import place_of
from paceline.store.postgres_session import Session, numbered
from paceline.store.protocol import Tx
from paceline.store.sql import Store
from paceline.store.sqlite import SqliteConnection
from paceline.testing.clock import ManualClock
from postgres_server import fresh_database

Watcher = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Database:
    """How tests open a database, and what they must know of it."""

    open: Callable[[Path, Clock], Store]
    """A store in that folder; a second call opens the same one over another connection."""
    url: Callable[[Path], str]
    """The same store as programs name it."""
    shared: bool
    """Two connections see the same data."""
    interleaves: bool
    """Two writing transactions may be open at once; where not, the second waits for its turn."""
    watch: Callable[[Store, Watcher | None], None]
    """Calls back before each statement that the store's writing connection executes, until told to stop."""
    check: Callable[[Store, str], None]
    """Has the database read a statement without carrying it out; inside a unit of work."""
    full: Exception
    """What its driver raises when the disk is full."""


def sqlite_of(store: Store) -> SqliteConnection:
    """The connection of a store that is kept in SQLite, for what only SQLite has."""
    assert isinstance(store._connection, SqliteConnection)
    return store._connection


def _watch_sqlite(store: Store, watcher: Watcher | None) -> None:
    def before_statement(*_: object) -> bool:
        if watcher is not None:
            watcher()
        return True

    sqlite_of(store)._db.exec_trace = None if watcher is None else before_statement


def _check_sqlite(store: Store, statement: str) -> None:
    sqlite_of(store)._db.execute(f"explain {statement}", _Anything()).fetchall()


class _Anything(dict[str, None]):
    """A value for every parameter there is."""

    def __missing__(self, key: str) -> None:
        return None


SQLITE_FULL = apsw.FullError("database or disk is full")


@cache
def _blank() -> bytes:
    """A new, empty store; making one waits for the disk, and tests need hundreds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "blank.db"
        create(path, SQLITE)
        return path.read_bytes()


def _open_file(folder: Path, clock: Clock) -> Store:
    path = folder / "work.db"
    if not path.exists():
        path.write_bytes(_blank())
        path.chmod(0o600)
    return sqlite_store(path, clock, synchronous="off")


class PostgresDatabases:
    """One database for all tests of this process, emptied for each folder that a test brings."""

    def __init__(self) -> None:
        self._url = ""
        self._folder: Path | None = None

    def open(self, folder: Path, clock: Clock) -> Store:
        """The store of that folder; another folder is another, empty store."""
        if not self._url:
            until = ExitStack()
            self._url = until.enter_context(fresh_database())
            atexit.register(until.close)
        store = postgres_store(place_of(self._url), clock)
        if folder != self._folder:
            self._folder = folder
            empty(store)
        return store

    def url(self, folder: Path) -> str:
        """The URL of that folder's store."""
        self.open(folder, ManualClock()).close()
        return self._url


def empty(store: Store) -> None:
    """As good as new: numbers begin at one again."""

    def delete(tx: Tx) -> None:
        rows = postgres_of(store).rows
        tables = [row[0] for row in rows("select tablename from pg_tables where schemaname = current_schema()")]
        for table in sorted(set(tables) - {"meta"}):
            postgres_of(store).write(f"delete from {table}")
        postgres_of(store).write("delete from meta where name <> 'schema' and name not like 'migration %'")
        for (name,) in rows("select sequencename from pg_sequences where schemaname = current_schema()"):
            if name != "connections":
                rows(f"select setval('{name}', 1, false)")

    store.execute(delete)


def postgres_of(store: Store) -> PostgresConnection:
    """The connection of a store that is kept in Postgres, for what only Postgres has."""
    assert isinstance(store._connection, PostgresConnection)
    return store._connection


def _watch_postgres(store: Store, watcher: Watcher | None) -> None:
    connection = postgres_of(store)
    vars(connection).pop("_alive", None)
    if watcher is not None:
        alive = connection._alive

        def watched() -> Session:
            watcher()
            return alive()

        vars(connection)["_alive"] = watched


def _check_postgres(store: Store, statement: str) -> None:
    connection = postgres_of(store)
    connection.script(f"prepare checked as {numbered(statement)[0]}; deallocate checked")


POSTGRES_DATABASES = PostgresDatabases()
DATABASES = {
    "sqlite-memory": Database(
        open=lambda folder, clock: sqlite_store(None, clock), url=lambda folder: "sqlite://:memory:",
        shared=False, interleaves=False, watch=_watch_sqlite, check=_check_sqlite, full=SQLITE_FULL,
    ),
    "sqlite-file": Database(
        open=_open_file, url=lambda folder: f"sqlite:///{folder / 'work.db'}",
        shared=True, interleaves=False, watch=_watch_sqlite, check=_check_sqlite, full=SQLITE_FULL,
    ),
    "postgres": Database(
        open=POSTGRES_DATABASES.open, url=POSTGRES_DATABASES.url,
        shared=True, interleaves=True, watch=_watch_postgres, check=_check_postgres,
        full=psycopg.errors.DiskFull("could not extend file"),
    ),
}  # fmt: skip
