"""What a room needs of a database connection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

Value = int | float | str | bytes | None
Row = tuple[Any, ...]
NamedBindings = Mapping[str, Value]
Bindings = NamedBindings | Sequence[Value]


class Driver(Protocol):
    """Runs single statements inside a transaction that somebody else began."""

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""

    def write_many(self, sql: str, bindings: Iterable[Bindings]) -> None:
        """Runs one statement once per set of bindings."""


_encode = msgspec.json.Encoder().encode


def as_list(values: Iterable[object]) -> str:
    """A list parameter as it travels to the database."""
    return _encode(values if isinstance(values, list) else list(values)).decode()
