"""Listings that may be long or go on for ever, in the formats that programs read."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from paceline.cli.render import Screen, dumps
from paceline.core.names import escape_for_terminal

T = TypeVar("T")
Convert = Callable[[T], dict[str, object]]


class Sink(Generic[T]):
    """Takes items as they come; leaving the `with` block writes what has to stand at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()

    def write(self, items: Iterable[T]) -> None:
        """The next items, in order."""
        for item in items:
            self.write_one(item)

    def write_one(self, item: T) -> None:
        """The next item."""

    def end(self) -> None:
        """There are no more."""


class JsonLines(Sink[T]):
    """One JSON document on each line."""

    def __init__(self, screen: Screen, convert: Convert[T]) -> None:
        self._screen = screen
        self._convert = convert

    def write_one(self, item: T) -> None:
        """One line."""
        self._screen.json_line(self._convert(item))


class JsonList(Sink[T]):
    """One JSON list, written as it grows."""

    def __init__(self, screen: Screen, convert: Convert[T]) -> None:
        self._convert = convert
        self._begun = False

    def write_one(self, item: T) -> None:
        """One element."""
        sys.stdout.write((",\n  " if self._begun else "[\n  ") + dumps(self._convert(item)))
        self._begun = True

    def end(self) -> None:
        """The closing bracket."""
        sys.stdout.write("\n]\n" if self._begun else "[]\n")


class Csv(Sink[T]):
    """Comma-separated values with a heading; what is itself a list or an object stands there as JSON."""

    def __init__(self, screen: Screen, columns: Sequence[str], convert: Convert[T]) -> None:
        self._columns = columns
        self._convert = convert
        self._write_row(columns)

    def write_one(self, item: T) -> None:
        """One row."""
        values = self._convert(item)
        self._write_row([_csv_cell(values[column]) for column in self._columns])

    def _write_row(self, cells: Sequence[str]) -> None:
        row = io.StringIO()
        csv.writer(row, lineterminator="\n").writerow(cells)
        sys.stdout.write(row.getvalue())


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    return escape_for_terminal(value if isinstance(value, str) else dumps(value))
