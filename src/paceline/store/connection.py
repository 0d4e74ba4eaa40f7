"""What the store needs of a database: transactions over a driver, and what its errors mean."""

from typing import Protocol

from paceline.clock import Clock
from paceline.errors import StoreError
from paceline.store.driver import Driver


class TryAgain(Exception):
    """Nothing of the transaction was committed, and it may well be when it runs once more."""

    def __init__(self, error: BaseException, *, race: bool) -> None:
        """`race`: somebody else was quicker or stood in the way, so whoever comes next may be let through."""
        super().__init__(str(error))
        self.error = error
        self.race = race


class Connection(Driver, Protocol):
    """One connection: `begin` to `commit` or `rollback` is one transaction."""

    @property
    def errors(self) -> type[Exception]:
        """What the database raises; `explain` says what it means."""

    @property
    def savepoints(self) -> bool:
        """A savepoint costs next to nothing, so each unit may have one."""

    @property
    def near(self) -> bool:
        """A question costs less than handing it to another thread."""

    @property
    def closed(self) -> bool:
        """Nothing can be asked any more."""

    @property
    def in_transaction(self) -> bool:
        """What was begun is neither committed nor undone; some errors make the database undo it by itself."""

    @property
    def forked(self) -> bool:
        """This process is a child of the one that opened the connection."""

    def check_usable(self) -> None:
        """Refuses a connection of a parent process, and one that was closed."""

    def begin(self, clock: Clock) -> int:
        """Begins a writing transaction and answers its `now`: the database's, where hosts share it."""

    def commit(self, proof: int | None = None) -> None:
        """Makes everything since `begin` durable; raises `TryAgain` when it is certain that nothing was.

        `proof` is an event that the transaction has written: whoever finds it knows that the commit happened.
        """

    def rollback(self) -> None:
        """Undoes everything since `begin`; fine when there is nothing to undo."""

    def savepoint(self) -> None:
        """What follows can be undone by itself."""

    def keep(self) -> None:
        """What followed the savepoint stays."""

    def undo(self) -> None:
        """What followed the savepoint is undone."""

    def read(self, clock: Clock) -> int:
        """Begins a transaction that only reads, at one moment; answers its `now`."""

    def reader(self) -> "Connection | None":
        """Another connection that only reads; None where there is no other."""

    def hurry(self) -> None:
        """From any thread: who waits for a server that is away waits no longer."""

    def close(self) -> None:
        """Closes the connection; closing twice is fine, and a forked child leaves its parent's alone."""

    def explain(self, error: Exception) -> StoreError | TryAgain:
        """The database's error in the common form, or that the same may go well next time."""
