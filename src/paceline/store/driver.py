"""What a room needs of a database connection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

Value = int | float | str | bytes | None
Row = tuple[Any, ...]
NamedBindings = Mapping[str, Value]
Bindings = NamedBindings | Sequence[Value]
Numbered = Literal["jobs", "events"]
"""The tables whose numbers a transaction takes before it writes the rows."""


class Driver(Protocol):
    """Runs single statements inside a transaction that somebody else began."""

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""

    def write_many(self, sql: str, bindings: Iterable[Sequence[Value]]) -> None:
        """Runs one statement with `{values:...}` once per row of bindings, or its rows all at once."""

    def lock(self, sql: str, bindings: Bindings = (), *, ending: bool = False) -> None:
        """Nobody else writes the rows that a statement names until this transaction ends; none may be there.

        Where one writing transaction at a time is possible anyway, there is nothing to do. `ending`: the last rows and
        the commit follow at once, so nobody need wait for the lock by itself.
        """

    def reserve(self, table: Numbered, count: int) -> Sequence[int]:
        """`count` new numbers in rising order that belong to this transaction; those of events follow one another.

        What stays unused leaves a harmless gap.
        """


_encode = msgspec.json.Encoder().encode


def as_list(values: Iterable[object]) -> str:
    """A list parameter as it travels to the database."""
    return _encode(values if isinstance(values, list) else list(values)).decode()
