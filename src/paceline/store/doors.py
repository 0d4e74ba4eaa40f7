"""One store, whatever it is kept in: the only place that puts connection, dialect and store together."""

from pathlib import Path

from paceline.clock import Clock
from paceline.store.dialect import SQLITE
from paceline.store.migrate import connect
from paceline.store.sql import Store
from paceline.store.statements import Statements


def sqlite_store(path: Path | None, clock: Clock, *, synchronous: str = "full") -> Store:
    """The store in a file, made when there is none; None: in memory, for as long as it is open."""
    return Store(connect(path, SQLITE, synchronous=synchronous), Statements(SQLITE), clock)
