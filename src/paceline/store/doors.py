"""One store, whatever it is kept in: the only place that puts connection, dialect and store together."""

from pathlib import Path

from paceline.clock import Clock
from paceline.errors import UsageError
from paceline.store.dialect import POSTGRES, SQLITE
from paceline.store.migrate import connect, migrate
from paceline.store.postgres_place import Place
from paceline.store.sql import Store
from paceline.store.statements import Statements


def sqlite_store(path: Path | None, clock: Clock, *, synchronous: str = "full") -> Store:
    """The store in a file, made when there is none; None: in memory, for as long as it is open."""
    return Store(connect(path, SQLITE, synchronous=synchronous), Statements(SQLITE), clock)


def postgres_store(place: Place, clock: Clock) -> Store:
    """The store in a schema of a Postgres database, made when there is none."""
    try:
        from paceline.store.postgres import PostgresConnection
    except ImportError as error:
        raise UsageError(
            code="no_driver", what="a store on Postgres needs a package that is not installed", found=str(error),
            todo="pip install 'paceline[postgres]'",
        ) from None  # fmt: skip
    connection = PostgresConnection(place)
    try:
        migrate(connection, POSTGRES)
    except BaseException:
        connection.close()
        raise
    return Store(connection, Statements(POSTGRES), clock)
