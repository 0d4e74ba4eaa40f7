"""The store: carries out units of work, one by one on the caller's thread or many in one commit on the writer's."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from paceline.clock import Clock
from paceline.store.dialect import SQLITE
from paceline.store.migrate import connect
from paceline.store.sqlite import SqliteConnection
from paceline.store.statements import Statements
from paceline.store.trouble import explain
from paceline.store.tx import Tx, Unit
from paceline.store.writer import Done, Waiting, Writer

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Store:
    """One database; every write is a unit of work, a function of a transaction."""

    def __init__(self, path: Path | None, clock: Clock, *, synchronous: str = "full") -> None:
        self.path = path
        self.clock = clock
        self._sql = Statements(SQLITE)
        self._connection = connect(path, SQLITE, synchronous=synchronous)
        self._tx = Tx(self._connection, self._sql)
        self._lock = threading.Lock()
        self._writer = Writer(self.commit)
        self._reader: tuple[SqliteConnection, Tx] | None = None
        self._reading = threading.Lock()

    @property
    def commits(self) -> int:
        """How many commits the writer thread has made."""
        return self._writer.commits

    def start(self) -> None:
        """Starts the writer thread."""
        self._writer.start()

    def close(self) -> None:
        """Finishes what is waiting and closes the database; closing twice is fine, a forked child closes nothing."""
        if self._connection.forked:
            return
        self._writer.stop()
        with self._reading:
            if self._reader:
                self._reader[0].close()
                self._reader = None
        with self._lock:
            self._connection.close()

    def execute(self, unit: Unit[T]) -> T:
        """Carries out one unit on this thread, in a transaction of its own."""
        done = self.commit([unit])[0]
        if done.error is not None:
            raise done.error
        value: T = done.value
        return value

    async def transact(self, unit: Unit[T]) -> T:
        """Carries out one unit, together with whatever else is waiting."""
        return await self.enqueue(unit)

    def enqueue(self, unit: Unit[T]) -> "asyncio.Future[T]":
        """Like `transact`, but the unit is in line as soon as this returns."""
        self._connection.check_usable()
        loop = _running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._writer.put(Waiting(unit, loop, partial(_resolve, future)))
        return future

    def hand_over(self, unit: Unit[Any], tell: Callable[[Done], None]) -> None:
        """Puts a unit in line; `tell` is called on the running event loop once it was committed or rolled back."""
        self._connection.check_usable()
        self._writer.put(Waiting(unit, _running_loop(), tell))

    def look(self, question: Unit[T]) -> T:
        """Answers a question that writes nothing, beside whatever is being written."""
        if self.path is None:
            return self.execute(question)
        self._connection.check_usable()
        with self._reading:
            connection, tx = self._open_reader()
            return self._guarded(lambda: self._ask(connection, tx, question))

    async def read(self, question: Unit[T]) -> T:
        """Like `look`, without holding up the event loop."""
        return await _running_loop().run_in_executor(None, self.look, question)

    def commit(self, units: list[Callable[[Any], Any]]) -> list[Done]:
        """Carries out units in one transaction; one that raises is rolled back alone."""
        self._connection.check_usable()
        with self._lock:
            try:
                self._guarded(self._begin)
            except BaseException as error:
                return [Done(None, error)] * len(units)
            try:
                results = [self._run(unit, alone=len(units) == 1) for unit in units]
                if len(units) == 1 and results[0].error is not None:
                    self._roll_back()
                    return results
                self._guarded(self._finish)
                return results
            except BaseException as error:
                self._roll_back()
                return [Done(None, error)] * len(units)

    def _begin(self) -> None:
        self._connection.begin()
        self._tx.now = self.clock.now()
        self._tx.events.begin()

    def _finish(self) -> None:
        self._tx.events.flush()
        self._connection.commit()

    def _roll_back(self) -> None:
        self._tx.events.discard()
        self._tx.lanes.forget()
        self._connection.rollback()

    def _run(self, unit: Callable[[Any], Any], alone: bool) -> Done:
        try:
            if alone:
                return Done(unit(self._tx), None)
            return self._run_in_savepoint(unit)
        except apsw.Error as error:
            if not self._connection.in_transaction:  # the database has undone everything, other units' work too
                raise explain(error, self.path) from None
            return Done(None, explain(error, self.path))
        except Exception as error:
            return Done(None, error)

    def _run_in_savepoint(self, unit: Callable[[Any], Any]) -> Done:
        self._tx.events.flush()
        self._connection.script("savepoint unit")
        try:
            value = unit(self._tx)
        except BaseException:
            self._tx.events.discard()
            self._tx.lanes.forget()
            if self._connection.in_transaction:
                self._connection.script("rollback to unit")
                self._connection.script("release unit")
            raise
        self._connection.script("release unit")
        return Done(value, None)

    def _open_reader(self) -> tuple[SqliteConnection, Tx]:
        if self._reader is None:
            connection = self._connection.reader()
            self._reader = (connection, Tx(connection, self._sql))
        return self._reader

    def _ask(self, connection: SqliteConnection, tx: Tx, question: Unit[T]) -> T:
        connection.read()
        try:
            tx.now = self.clock.now()
            tx.events.begin()
            return question(tx)
        finally:
            connection.rollback()

    def _guarded(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except apsw.Error as error:
            raise explain(error, self.path) from None


def _running_loop() -> "asyncio.AbstractEventLoop":
    """Imported late: commands that only look never need an event loop, and importing one costs them 20 ms."""
    from asyncio import get_running_loop

    return get_running_loop()


def _resolve(future: "asyncio.Future[Any]", done: Done) -> None:
    if future.done():
        return
    if done.error is None:
        future.set_result(done.value)
    else:
        future.set_exception(done.error)
