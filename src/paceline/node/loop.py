"""The one shape of every loop: look at memory, do one unit of work, take in what came of it, say when to come again.

A loop never waits and never knows who drives it: the product drives it with an event loop and the writer thread, the
simulation with a virtual clock and crashes between any two steps.
"""

from typing import Any, Protocol

from paceline.store.protocol import Unit


class Loop(Protocol):
    """Something a node does again and again."""

    name: str

    def unit(self, now: int) -> Unit[Any] | None:
        """The transaction to carry out now; None when there is nothing to do."""

    def done(self, result: Any, now: int) -> None:
        """The unit was committed with this result."""

    def failed(self, now: int) -> None:
        """The unit was not committed, or nobody knows: what it took from memory goes back."""

    def next_at(self, now: int) -> int:
        """When to come again, at the latest."""
