"""What commands write: tables, JSON, notes and errors; all foreign text is escaped on its way to a terminal."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from paceline.core.durations import format_duration
from paceline.core.names import escape_for_terminal
from paceline.core.problem import Problem

STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip
STATE_STYLES = {
    "created": "dim", "blocked": "dim", "queued": "blue", "running": "cyan", "waiting": "magenta",
    "completed": "green", "failed": "red", "cancelled": "yellow", "timed_out": "red",
}  # fmt: skip
GAP = "  "
_NARROWEST = 8


class Cell(NamedTuple):
    """A text with a style; a plain `str` is a cell without one."""

    text: str
    style: str = ""


class Screen:
    """Standard output for answers, standard error for everything else."""

    def __init__(self, *, as_json: bool = False, color: bool = True) -> None:
        self.as_json = as_json
        self._color = color

    def line(self, text: str = "", style: str = "") -> None:
        """One line of the answer; control characters in it are made visible."""
        _write(sys.stdout, self.paint(escape_for_terminal(text), style, sys.stdout) + "\n")

    def lines(self, text: str) -> None:
        """Text of several lines as the answer, every line escaped."""
        _write(sys.stdout, escape_for_terminal(text, keep_lines=True) + ("" if text.endswith("\n") else "\n"))

    def note(self, text: str, style: str = "") -> None:
        """One line beside the answer: what happens, what to do next."""
        _write(sys.stderr, self.paint(escape_for_terminal(text), style, sys.stderr) + "\n")

    def cells(self, *cells: str | Cell) -> None:
        """One line of the answer made of parts with styles, a blank between them."""
        _write(sys.stdout, " ".join(self._drawn(_cell(one)) for one in cells if _cell(one).text) + "\n")

    def json(self, value: object) -> None:
        """The answer as one JSON document over several lines."""
        self._json(value, indent=2)

    def json_line(self, value: object) -> None:
        """One JSON document on one line, for listings that go on."""
        self._json(value, indent=None)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str | Cell]], *, empty: str = "nothing") -> None:
        """Rows under headings, cut to the terminal's width; into a pipe nothing is cut."""
        body = [[_escaped(_cell(one)) for one in row] for row in rows]
        if not body:
            self.note(empty)
            return
        head = [Cell(column.upper(), "dim") for column in columns]
        widths = [max(width_of(row[place].text) for row in [head, *body]) for place in range(len(columns))]
        if sys.stdout.isatty():
            widths = _fitted(widths, terminal_width())
        _write(sys.stdout, "".join(self._row(row, widths) for row in [head, *body]))

    def facts(self, facts: Iterable[tuple[str, str | Cell]]) -> None:
        """Names and values, one pair a line; pairs without a value are left out."""
        said = [(name, _escaped(_cell(value))) for name, value in facts if _cell(value).text]
        widest = max((len(name) for name, _ in said), default=0)
        for name, value in said:
            _write(sys.stdout, f"{self.paint(name.ljust(widest), 'dim', sys.stdout)}{GAP}{self._drawn(value)}\n")

    def problem(self, problem: Problem) -> None:
        """An error in the one form: over a few lines, or as JSON when that is what was asked for."""
        if self.as_json:
            _write(sys.stderr, dumps({"error": problem_as_json(problem)}, None) + "\n")
            return
        head = self.paint("error:", "red", sys.stderr) + f" {escape_for_terminal(problem.what)}"
        _write(sys.stderr, f"{head} {self.paint(f'[{problem.code}]', 'dim', sys.stderr)}\n")
        for name in ("where", "found", "allowed", "todo"):
            lines = escape_for_terminal(getattr(problem, name), keep_lines=True).splitlines()
            label = "do:" if name == "todo" else f"{name}:"
            for place, line in enumerate(lines):
                margin = self.paint(label.ljust(9), "dim", sys.stderr) if place == 0 else " " * 9
                _write(sys.stderr, f"  {margin}{line}\n")

    def paint(self, text: str, style: str, stream: TextIO) -> str:
        """`text` in a style where the stream shows styles."""
        if not style or not text or not self.colored(stream):
            return text
        return f"\x1b[{';'.join(STYLES[one] for one in style.split())}m{text}\x1b[0m"

    def colored(self, stream: TextIO) -> bool:
        """Colours on a terminal, unless NO_COLOR, TERM=dumb or --no-color says otherwise."""
        if not self._color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return stream.isatty()

    def live(self, stream: TextIO) -> bool:
        """Whether a moving display on a stream would be seen."""
        return not self.as_json and stream.isatty() and os.environ.get("TERM") != "dumb"

    def _drawn(self, cell: Cell) -> str:
        return self.paint(escape_for_terminal(cell.text), cell.style, sys.stdout)

    def _row(self, row: Sequence[Cell], widths: Sequence[int]) -> str:
        parts = []
        for cell, width in zip(row, widths, strict=True):
            text = cut(cell.text, width)
            parts.append(self.paint(text, cell.style, sys.stdout) + " " * (width - width_of(text)))
        return GAP.join(parts).rstrip() + "\n"

    def _json(self, value: object, indent: int | None) -> None:
        _write(sys.stdout, dumps(value, indent) + "\n")


def dumps(value: object, indent: int | None = None) -> str:
    """JSON that no terminal acts upon; letters of all languages stay readable where that is safe."""
    import json  # late: tables do without

    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text if escape_for_terminal(text, keep_lines=True) == text else json.dumps(value, indent=indent, default=str)


def problem_as_json(problem: Problem) -> dict[str, str]:
    """The fields of an error that say something."""
    names = ("code", "what", "where", "found", "allowed", "todo")
    return {name: getattr(problem, name) for name in names if getattr(problem, name)}


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    return Cell(state.replace("_", " "), STATE_STYLES.get(state, ""))


def counted(count: int, noun: str) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def ago(now: int, then: int | None) -> str:
    """How long before `now` something was: `3m 20s ago`; nothing for what has not been."""
    if then is None:
        return ""
    away = format_duration(_rounded(abs(now - then)))
    return f"{away} ago" if then <= now else f"in {away}"


def lasted(start: int | None, end: int | None) -> str:
    """The time between two moments; nothing when one of them has not been."""
    return "" if start is None or end is None else format_duration(max(0, end - start))


def moment(microseconds: int | None) -> str | None:
    """A time of the store as ISO 8601 in UTC, for JSON."""
    if microseconds is None:
        return None
    from datetime import UTC, datetime, timedelta  # late: most listings do without

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat(timespec="milliseconds")


def terminal_width() -> int:
    """Columns of the terminal, 100 where nobody knows."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said) > 0:
        return int(said)
    for stream in (sys.stdout, sys.stderr):
        try:
            return os.get_terminal_size(stream.fileno()).columns or 100
        except (OSError, ValueError):
            continue
    return 100


def width_of(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # late: most tables are ASCII

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def cut(text: str, width: int) -> str:
    """`text` within `width` columns, with an ellipsis where something is missing."""
    if width_of(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while width_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def _rounded(duration: int) -> int:
    """Nobody reads the milliseconds of an age."""
    return duration // 1_000_000 * 1_000_000 if duration >= 1_000_000 else 0


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widest columns give way until all fit."""
    widths = list(widths)
    while sum(widths) + len(GAP) * (len(widths) - 1) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cell(value: str | Cell) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def _escaped(cell: Cell) -> Cell:
    return cell._replace(text=escape_for_terminal(cell.text))


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
