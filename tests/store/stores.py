"""The databases that the conformance suite runs over: a third one is one more entry here, and nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from paceline.clock import Clock
from paceline.store.dialect import SQLITE
from paceline.store.doors import sqlite_store
from paceline.store.migrate import create
from paceline.store.sql import Store
from paceline.store.sqlite import SqliteConnection

Watcher = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Database:
    """How tests open a database, and what they must know of it."""

    open: Callable[[Path, Clock], Store]
    """A store in that folder; a second call opens the same one over another connection."""
    shared: bool
    """Two connections see the same data."""
    interleaves: bool
    """Two writing transactions may be open at once; where not, the second waits for its turn."""
    watch: Callable[[Store, Watcher | None], None]
    """Calls back before each statement that the store's writing connection executes, until told to stop."""


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


DATABASES = {
    "sqlite-memory": Database(
        open=lambda folder, clock: sqlite_store(None, clock), shared=False, interleaves=False, watch=_watch_sqlite
    ),
    "sqlite-file": Database(
        open=_open_file,
        shared=True,
        interleaves=False,
        watch=_watch_sqlite,
    ),
}
