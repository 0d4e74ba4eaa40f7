"""One store, whatever it is kept in: the only place that puts connection, dialect and store together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.clock import Clock
from paceline.core.problem import Problem
from paceline.errors import StoreError, UsageError
from paceline.store.connection import TryAgain
from paceline.store.dialect import POSTGRES, SQLITE
from paceline.store.migrate import bring, connect
from paceline.store.postgres_place import Place
from paceline.store.protocol import Visits
from paceline.store.sql import Store
from paceline.store.statements import Statements

if TYPE_CHECKING:
    from paceline.store.postgres import PostgresConnection

LEAST_SERVER = 14
"""The first major version of Postgres whose statements ours are."""
ENCODING = "UTF8"
_SERVER = "select current_setting('server_version_num')::int / 10000, current_setting('server_encoding')"


def sqlite_store(path: Path | None, clock: Clock, *, synchronous: str = "full", grow: bool = True) -> Store:
    """The store in a file, None: in memory, for as long as it is open.

    With `grow` it is made when there is none, and brought to this program's schema; else both are refused.
    """
    return Store(connect(path, SQLITE, synchronous=synchronous, grow=grow), Statements(SQLITE), clock)


def postgres_visits(place: Place, notice: tuple[str, str] | None = None) -> Visits:
    """The way into transactions of the application in the database of a store.

    `notice` is a channel and what those who listen there hear when such a transaction commits.
    """
    from paceline.store import postgres_visit  # late: its package is there once the store is open

    return postgres_visit.Visits(place, Statements(POSTGRES), notice)


def postgres_store(place: Place, clock: Clock, *, grow: bool = True) -> Store:
    """The store in a schema of a Postgres database; `grow` as above."""
    return Store(connect_postgres(place, grow=grow), Statements(POSTGRES), clock)


def connect_postgres(place: Place, *, grow: bool = True, readonly: bool = False) -> "PostgresConnection":
    """A session with a server that will do, and with a schema that is this program's."""
    connection = postgres_connection(place, readonly=readonly)
    try:
        with said_plainly(connection):
            refuse_server(connection)
            bring(connection, POSTGRES, grow=grow)
            connection.rollback()  # what was only asked was asked in a transaction that nobody had begun
    except BaseException:
        connection.close()
        raise
    return connection


def postgres_connection(place: Place, *, readonly: bool = False) -> "PostgresConnection":
    """A session with the server, whatever is or is not in the schema."""
    try:
        from paceline.store.postgres import PostgresConnection
    except ImportError as error:
        raise UsageError(
            code="no_driver", what="a store on Postgres needs a package that is not installed", found=str(error),
            todo="pip install 'paceline[postgres]'",
        ) from None  # fmt: skip
    return PostgresConnection(place, readonly=readonly)


@contextmanager
def said_plainly(connection: "PostgresConnection") -> Iterator[None]:
    """Errors of the database leave here in the common form."""
    try:
        yield
    except connection.errors as error:
        meant = connection.explain(error)
        raise _error_of(meant) from None
    except TryAgain as lost:
        raise _error_of(lost) from None


def refuse_server(connection: "PostgresConnection") -> None:
    """A server that is too old, or a database that cannot keep every text, is told at the door."""
    major, encoding = connection.rows(_SERVER)[0]
    if major < LEAST_SERVER:
        raise StoreError(
            code="store_old_server", what="the server is too old for Paceline", where=connection.where,
            found=f"PostgreSQL {major}", allowed=f"PostgreSQL {LEAST_SERVER} or newer", todo="upgrade the server",
        )  # fmt: skip
    if encoding != ENCODING:
        raise StoreError(
            code="store_encoding", what="the database cannot keep every text", where=connection.where,
            found=f"encoding {encoding}", allowed=ENCODING,
            todo="create database … encoding 'UTF8' template template0, and name that one",
        )  # fmt: skip


def _error_of(meant: StoreError | TryAgain) -> BaseException:
    return meant if isinstance(meant, Problem) else meant.error
