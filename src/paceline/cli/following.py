"""Watches one job while it runs: its log lines as they come, and a moving line on a terminal."""

import json
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from paceline.app import Paceline
from paceline.cli.render import Screen
from paceline.client.job import Job
from paceline.core.lifecycle import State
from paceline.core.names import escape_for_terminal
from paceline.events import Event, Kind

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LEVEL_STYLES = {"debug": "dim", "warning": "yellow", "error": "red"}


class Following:
    """`with Following(...) as follow:` and `await follow.look()` every now and then."""

    def __init__(self, screen: Screen, app: Paceline, job: Job, name: str) -> None:
        self._screen = screen
        self._app = app
        self._job = job
        self._name = name
        self._seen = 0
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._screen.live(sys.stderr):
            self._progress = _display(self._screen)
            self._progress.start()
            self._task = self._progress.add_task("", total=None, job=self._job.id, agent=self._name, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    async def look(self) -> None:
        """Shows what has happened since the last look."""
        number, seen = self._job.number, self._seen
        lines, events = await self._app.client.store.read(
            lambda tx: (tx.listing.by_ids([number]), tx.events.of_job(number, after=seen))
        )
        for event in events:
            self._seen = max(self._seen, event.id)
            self._tell(event)
        if self._progress is not None and self._task is not None and lines:
            line = lines[0]
            said = line.note or line.reason or ""
            note = said if line.state is State.RUNNING else f"{line.state.word.replace('_', ' ')} {said}".strip()
            if line.attempt and line.state is State.RUNNING:
                note = f"attempt {line.attempt + 1}  {note}"
            total = None if line.fraction is None else 1.0
            self._progress.update(
                self._task, total=total, completed=line.fraction or 0.0, note=escape_for_terminal(note)
            )

    def _tell(self, event: Event) -> None:
        said = json.loads(event.data) if event.data else {}
        if event.kind is Kind.JOB_LOG:
            level = str(said.get("level", "info"))
            self._screen.note(f"{self._job.id}  {said.get('text', '')}", LEVEL_STYLES.get(level, ""))
        elif event.kind is Kind.JOB_RETRYING:
            why = " ".join(part for part in (said.get("type"), said.get("message")) if part)
            self._screen.note(f"{self._job.id}  failed and is tried again: {why}", "yellow")


def _display(screen: Screen) -> "Progress":
    from rich.console import Console  # late: pipes do without
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color=not screen.colored(sys.stderr))
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[job]}  {task.fields[agent]}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )
