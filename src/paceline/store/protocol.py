"""The contract of the store, for those who only use it.

`Store` carries out units of work. What a unit may do stands in the rooms of its `Tx`, whose classes are the contract
themselves: there is one implementation of each verb for all databases, and what differs is below, in the driver and the
dialect. A verb's docstring says what must be true before, what guards the write, and what the answer to a lost race is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from paceline.clock import Clock
from paceline.store.driver import Row
from paceline.store.tx import Tx, Unit
from paceline.store.writer import Done

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
D = TypeVar("D")

__all__ = ["Done", "Row", "Store", "Tx", "Unit", "Visits"]


class Store(Protocol):
    """A database of jobs: every write is a unit of work, a function of a transaction."""

    clock: Clock

    @property
    def near(self) -> bool:
        """A question costs less than handing it to another thread, so an event loop may ask it itself."""

    def execute(self, unit: Callable[[Tx], T]) -> T:
        """Carries out one unit on this thread; what it raises rolls it back."""

    def enqueue(self, unit: Callable[[Tx], T]) -> "asyncio.Future[T]":
        """Puts a unit in line for the next group commit."""

    def hand_over(self, unit: Callable[[Tx], Any], tell: Callable[[Done], None]) -> None:
        """Puts a unit in line and calls back on the event loop when it was committed or rolled back."""

    async def transact(self, unit: Callable[[Tx], T]) -> T:
        """Carries out one unit together with whatever else waits; returns after the commit."""

    def look(self, question: Callable[[Tx], T]) -> T:
        """Answers a question that writes nothing."""

    async def read(self, question: Callable[[Tx], T]) -> T:
        """Like `look`, without holding up the event loop."""


class Visits(Protocol):
    """Units of work in open transactions of the application, which commits them or not."""

    def check(self, connection: object) -> None:
        """Refuses what has no transaction in which anything could be written."""

    async def carry_out(self, connection: object, ask: Callable[[Tx], D], write: Callable[[Tx, D], T]) -> T:
        """Asks there, which may raise and changes nothing, then writes, which only the database can hinder."""
