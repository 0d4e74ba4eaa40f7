"""A unit of work in a transaction that belongs to somebody else: on their connection, for them to commit."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.adapt import AdaptersMap
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper, IntLoader
from psycopg.types.string import StrDumper, TextLoader

from paceline.errors import UsageError
from paceline.store.connection import TryAgain
from paceline.store.driver import Bindings, Numbered, Row, Value, as_list
from paceline.store.postgres_place import Place
from paceline.store.postgres_session import bound
from paceline.store.postgres_trouble import explain
from paceline.store.statements import Statements
from paceline.store.tx import Tx, Unit

T = TypeVar("T")
D = TypeVar("D")
Run = Callable[[str, Sequence[Value]], tuple[list[Row], int]]
"""Carries out one statement: its rows, and how many it touched."""
_MOVE = "select set_config('search_path', $1, true)"
"""Names mean the tables of that schema, until they are told to mean what they meant before."""
Theirs = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


class Visitor:
    """A driver over a connection of somebody else, in whatever transaction it has open."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        return self._run(*bound(sql, bindings))[0]

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        return self._run(*bound(sql, bindings))[1]

    def write_many(self, sql: str, bindings: Iterable[Sequence[Value]]) -> None:
        """Runs one statement for all rows at once: each column travels as one list."""
        rows = list(bindings)
        if rows:
            self._run(*bound(sql, [as_list(column) for column in zip(*rows, strict=True)]))

    def lock(self, sql: str, bindings: Bindings = (), *, ending: bool = False) -> None:
        """Never in a visit: who knows when it ends."""
        raise AssertionError("nothing is held for the length of somebody else's transaction")

    def reserve(self, table: Numbered, count: int) -> Sequence[int]:
        """New numbers of jobs; what happens in a visit is told when its transaction has committed."""
        sql = "select nextval('jobs_id_seq') from generate_series(1, :count)"
        return sorted(row[0] for row in self.rows(sql, {"count": count}))


class Visits:
    """Units of work inside transactions of the application, in the database that a store is kept in.

    `notice` is a channel and what to say there: whoever listens hears it when, and only if, such a transaction commits.
    """

    def __init__(self, place: Place, sql: Statements, notice: tuple[str, str] | None = None) -> None:
        self._place = place
        self._sql = sql
        self._notice = notice

    def check(self, connection: object) -> None:
        """Refuses a connection that has no transaction in which anything could be written."""
        _checked(connection)

    async def carry_out(self, connection: object, ask: Unit[D], write: Callable[[Tx, D], T]) -> T:
        """Asks, which leaves no trace when it raises, then writes; only the database itself may hinder that.

        There is no savepoint around what is written: with more than a few dozen such in one open transaction, Postgres
        makes everybody look up on disk to which transaction each change belongs.
        """
        theirs, unwanted = _checked(connection), threading.Event()
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(None, self._within, theirs, loop, ask, write, unwanted)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # Whoever gave up gets the connection back when nobody uses it any more.
            unwanted.set()
            while not work.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([work])
            raise

    def _within(
        self,
        theirs: Theirs,
        loop: asyncio.AbstractEventLoop,
        ask: Unit[D],
        write: Callable[[Tx, D], T],
        unwanted: threading.Event,
    ) -> T:
        run = _runs_async(theirs, loop) if isinstance(theirs, psycopg.AsyncConnection) else _runs(theirs)
        tx = Tx(Visitor(run), self._sql)
        try:
            run("savepoint paceline", ())
            try:
                path = run("select current_setting('search_path')", ())[0][0][0]
                run(_MOVE, [self._place.schema])
                asked = ask(tx)
                if unwanted.is_set():
                    raise asyncio.CancelledError
            except BaseException:
                with suppress(psycopg.Error):
                    run("rollback to savepoint paceline", ())
                    run("release savepoint paceline", ())
                raise
            run("release savepoint paceline", ())
            value = write(tx, asked)
            run(_MOVE, [path])
            if self._notice is not None:
                run("select pg_notify($1, $2)", self._notice)
            return value
        except psycopg.Error as error:
            found = explain(error, self._place, theirs.closed)
            raise found.error if isinstance(found, TryAgain) else found from None


def _checked(connection: object) -> Theirs:
    """The connection, if something can be written in its transaction right now."""
    if not isinstance(connection, psycopg.Connection | psycopg.AsyncConnection):
        raise _bad("this is not a connection of psycopg", type(connection).__name__, "a connection of psycopg 3")
    status = connection.info.transaction_status
    if connection.closed:
        raise _bad("the connection is closed", "a closed connection", "open one and begin a transaction")
    if status == pq.TransactionStatus.INERROR:
        raise _bad("the connection's transaction has failed", "a failed transaction", "roll it back first")
    if status == pq.TransactionStatus.ACTIVE or connection.pgconn.pipeline_status != pq.PipelineStatus.OFF:
        raise _bad("the connection is busy", "a statement under way", "wait for its end; leave pipeline mode")
    if status == pq.TransactionStatus.IDLE and connection.autocommit:
        raise _bad(
            "the connection has no open transaction", "autocommit", "submit inside `with connection.transaction():`"
        )
    bound_to = getattr(connection.lock, "_loop", None)
    if bound_to is not None and bound_to is not asyncio.get_running_loop():
        raise _bad("the connection belongs to another event loop", "another loop", "use a connection of this one")
    return connection


def _bad(what: str, found: str, todo: str) -> UsageError:
    return UsageError(code="bad_connection", what=what, where="connection", found=found, todo=todo)


def _runs(connection: psycopg.Connection[Any]) -> Run:
    cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
    _speak_plainly(cursor.adapters)

    def run(sql: str, values: Sequence[Value]) -> tuple[list[Row], int]:
        cursor.execute(sql, values, prepare=False)
        return (cursor.fetchall() if cursor.description else []), cursor.rowcount

    return run


def _runs_async(connection: psycopg.AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> Run:
    """Each statement on the event loop that the connection belongs to, waited for on this thread."""
    cursor = psycopg.AsyncRawCursor(connection, row_factory=tuple_row)
    _speak_plainly(cursor.adapters)

    async def once(sql: str, values: Sequence[Value]) -> tuple[list[Row], int]:
        await cursor.execute(sql, values, prepare=False)
        return (await cursor.fetchall() if cursor.description else []), cursor.rowcount

    return lambda sql, values: asyncio.run_coroutine_threadsafe(once(sql, values), loop).result()


def _speak_plainly(adapters: AdaptersMap) -> None:
    """Numbers and text as we mean them, whatever else the application has taught its connection."""
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(str, StrDumper)
    adapters.register_loader("int8", IntLoader)
    adapters.register_loader("int4", IntLoader)
    adapters.register_loader("text", TextLoader)
