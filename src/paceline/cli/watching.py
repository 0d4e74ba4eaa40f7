"""The jobs of one run while they happen: a moving table on a terminal, a line per change elsewhere."""

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from paceline.cli.render import STATE_STYLES, Screen
from paceline.core.durations import format_duration
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.names import escape_for_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

MARKS = {
    State.BLOCKED: "·", State.QUEUED: "·", State.COMPLETED: "✓", State.FAILED: "✗", State.CANCELLED: "✗",
    State.TIMED_OUT: "✗",
}  # fmt: skip


class Watch(Protocol):
    """Shows jobs as they are now; a context manager for as long as it shows."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, lines: Sequence[JobLine], now: int) -> None:
        """What the store says about the jobs at store time `now`."""


def watcher(screen: Screen, title: str, names: Mapping[int, str]) -> Watch:
    """The view that fits where standard output goes."""
    if screen.as_json:
        return Silent()
    return Moving(screen, title, names) if screen.live(sys.stdout) else Plain(screen, title, names)


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to end."""

    def show(self, lines: Sequence[JobLine], now: int) -> None:
        """Nothing to show."""


class Plain(Silent):
    """One line whenever a job has changed its state."""

    def __init__(self, screen: Screen, title: str, names: Mapping[int, str]) -> None:
        self._screen = screen
        self._names = names
        self._known: dict[int, tuple[State, int]] = {}
        self._began: int | None = None
        screen.line(title, "bold")

    def show(self, lines: Sequence[JobLine], now: int) -> None:
        if self._began is None:
            self._began = min((line.created_at for line in lines), default=now)
        for line in lines:
            if self._known.get(line.id) != (line.state, line.attempt) and line.state is not State.BLOCKED:
                at = f"{(now - self._began) / 1e6:.1f} s"
                said = describe(line._replace(note=None), now)
                self._screen.line(f"{at:>7}  j{line.id:<3} {line.agent:<9} {_label(line, self._names):<12} {said}")
            self._known[line.id] = (line.state, line.attempt)


def _label(line: JobLine, names: Mapping[int, str]) -> str:
    """What the job is called here, unless its agent's name says so already."""
    name = names.get(line.id, "")
    return "" if name == line.agent else escape_for_terminal(name)


class Moving(Silent):
    """A table that is drawn again at every look."""

    def __init__(self, screen: Screen, title: str, names: Mapping[int, str]) -> None:
        from rich.console import Console  # late: only terminals need it
        from rich.live import Live
        from rich.spinner import Spinner

        self._spinner = Spinner("dots", style=STATE_STYLES["running"])
        self._title = title
        self._names = names
        self._lines: Sequence[JobLine] = ()
        self._now = 0
        self._console = Console(no_color=not screen.colored(sys.stdout), highlight=False)
        self._live = Live(console=self._console, get_renderable=self._picture, refresh_per_second=12)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, lines: Sequence[JobLine], now: int) -> None:
        self._lines, self._now = lines, now

    def _picture(self) -> "RenderableType":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for line in self._lines:
            style = STATE_STYLES[line.state.word]
            running = line.state is State.RUNNING
            done = 1.0 if line.state is State.COMPLETED else line.fraction or 0.0
            table.add_row(
                self._spinner if running else Text(MARKS.get(line.state, " "), style),
                Text(f"j{line.id}", "dim"),
                Text(escape_for_terminal(line.agent)),
                Text(_label(line, self._names), "bold"),
                ProgressBar(total=1.0, completed=done, width=20, complete_style=style, finished_style=style),
                Text(
                    describe(line, self._now), "yellow" if line.attempt and not line.state.ended else "", no_wrap=True
                ),
            )
        return Group(Text(escape_for_terminal(self._title), "bold"), Text(), table)


def describe(line: JobLine, now: int) -> str:
    """Where a job is and what it does, in a few words."""
    tries = f" (attempt {line.attempt + 1})" if line.attempt else ""
    if line.state is State.RUNNING:
        return escape_for_terminal(line.note or "running") + tries
    if line.state is State.QUEUED and line.due_at is not None:
        begins = "failed, is tried again in" if line.attempt else "starts in"
        return f"{begins} {format_duration(max(0, line.due_at - now) // 100_000 * 100_000)}"
    if line.state is State.BLOCKED:
        return "waits for other jobs"
    word = line.state.word.replace("_", " ")
    if line.state.ended and line.started_at is not None and line.ended_at is not None:
        return f"{word} in {format_duration(line.ended_at - line.started_at)}{tries}"
    return word + (f": {escape_for_terminal(line.reason)}" if line.reason else "")
