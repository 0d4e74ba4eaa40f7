"""The store: carries out units of work, one by one on the caller's thread or many in one commit on the writer's."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from paceline.clock import Clock
from paceline.store.connection import Connection, TryAgain
from paceline.store.statements import Statements
from paceline.store.tx import Tx, Unit
from paceline.store.writer import Done, Waiting, Writer

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

MOST_TRIES = 10
"""How often a transaction of which nothing was committed begins anew."""


class Store:
    """One database; every write is a unit of work, a function of a transaction."""

    def __init__(self, connection: Connection, sql: Statements, clock: Clock) -> None:
        self.clock = clock
        self._sql = sql
        self._connection = connection
        self._tx = Tx(self._connection, self._sql)
        self._lock = threading.Lock()
        self._writer = Writer(self.commit)
        self._reader: tuple[Connection, Tx] | None = None
        self._reading = threading.Lock()

    @property
    def near(self) -> bool:
        """A question costs less than handing it to another thread."""
        return self._connection.near

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
        self._connection.hurry()
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
        self._connection.check_usable()
        with self._reading:
            reader = self._open_reader()
            if reader is not None:
                return self._ask(*reader, question)
        return self.execute(question)

    async def read(self, question: Unit[T]) -> T:
        """Like `look`, without holding up the event loop."""
        return await _running_loop().run_in_executor(None, self.look, question)

    def commit(self, units: list[Callable[[Any], Any]]) -> list[Done]:
        """Carries out units in one transaction; one that raises is rolled back alone."""
        self._connection.check_usable()
        with self._lock:
            self._tx.again = False
            return self._insist(units)

    def _insist(self, units: list[Callable[[Any], Any]]) -> list[Done]:
        """Begins anew as long as nothing was committed; a unit that lost a race comes once more, alone."""
        apart, error = self._connection.savepoints, None
        for _ in range(MOST_TRIES):
            try:
                done = self._attempt(units, apart)
            except TryAgain as lost:
                self._tx.again, apart, error = True, apart or lost.race, lost.error
                continue
            pairs = zip(units, done, strict=True)
            return [self._insist([unit])[0] if isinstance(one.error, TryAgain) else one for unit, one in pairs]
        return [Done(None, error)] * len(units)

    def _attempt(self, units: list[Callable[[Any], Any]], apart: bool) -> list[Done]:
        """One transaction; raises `TryAgain` when nothing of it was committed and that may change."""
        run = self._run_alone if len(units) == 1 else self._run_apart if apart else self._run_together
        try:
            self._begin()
            done = [run(unit) for unit in units]
            if len(units) == 1 and done[0].error is not None:
                self._roll_back()
            else:
                self._finish()
            return done
        except BaseException as error:
            found = self._explained(error)
            self._roll_back()
            if isinstance(found, TryAgain):
                raise found from None
            if len(units) > 1 and not apart and isinstance(error, self._connection.errors):
                raise TryAgain(found, race=True) from None  # whose fault it was shows when each has a savepoint
            return [Done(None, found)] * len(units)

    def _begin(self) -> None:
        self._tx.events.begin()
        self._tx.now = self._connection.begin(self.clock)

    def _finish(self) -> None:
        self._connection.commit(self._tx.events.flush())

    def _roll_back(self) -> None:
        self._tx.events.discard()
        self._tx.lanes.forget()
        self._connection.rollback()

    def _run_alone(self, unit: Callable[[Any], Any]) -> Done:
        try:
            return Done(unit(self._tx), None)
        except self._connection.errors:
            raise
        except Exception as error:
            return Done(None, error)

    def _run_together(self, unit: Callable[[Any], Any]) -> Done:
        """Without a savepoint of its own: when it raises, all begin anew with one."""
        try:
            return Done(unit(self._tx), None)
        except Exception as error:
            found = self._explained(error)
            raise found if isinstance(found, TryAgain) else TryAgain(found, race=True) from None

    def _run_apart(self, unit: Callable[[Any], Any]) -> Done:
        mark = self._tx.events.mark()
        self._connection.savepoint()
        try:
            value = unit(self._tx)
            self._connection.keep()
        except Exception as error:
            self._tx.events.discard(mark)
            self._tx.lanes.forget()
            self._connection.undo()
            if not self._connection.in_transaction:  # the database has undone everything, other units' work too
                raise
            return Done(None, self._explained(error))
        return Done(value, None)

    def _open_reader(self) -> tuple[Connection, Tx] | None:
        if self._reader is None:
            connection = self._connection.reader()
            if connection is not None:
                self._reader = (connection, Tx(connection, self._sql))
        return self._reader

    def _ask(self, connection: Connection, tx: Tx, question: Unit[T]) -> T:
        """A question that was interrupted is asked again: it changes nothing."""
        error: BaseException | None = None
        for _ in range(MOST_TRIES):
            try:
                tx.now = connection.read(self.clock)
                return question(tx)
            except (connection.errors, TryAgain) as raised:
                found = self._explained(raised, connection)
                if not isinstance(found, TryAgain):
                    raise found from None
                error = found.error
            finally:
                connection.rollback()
        assert error is not None
        raise error

    def _explained(self, error: BaseException, connection: Connection | None = None) -> BaseException:
        """What an error of the writing or of another connection means."""
        asked = connection or self._connection
        return asked.explain(error) if isinstance(error, asked.errors) else error


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
