"""What running agents say: log lines in order, and the latest progress of each job."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from paceline.events import Kind
from paceline.store.protocol import Tx

_encode = msgspec.json.Encoder().encode


class LogLine(NamedTuple):
    """One `ctx.log` of an epoch."""

    job: int
    epoch: int
    level: str
    text: str


class Progress(NamedTuple):
    """The latest `ctx.progress` of an epoch."""

    epoch: int
    fraction: float | None
    note: str


class Reports:
    """Gathered between two units of the pump; only the newest progress of a job is kept."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.progress: dict[int, Progress] = {}

    def __bool__(self) -> bool:
        return bool(self.lines or self.progress)

    def then(self, later: "Reports") -> "Reports":
        """Both, in order."""
        both = Reports()
        both.lines = self.lines + later.lines
        both.progress = self.progress | later.progress
        return both

    def write(self, tx: Tx) -> None:
        """Into the log, as far as the epochs still hold their jobs."""
        waiting = self.lines
        while waiting:
            later: list[LogLine] = []
            notes: dict[int, tuple[int, int, Kind, str | None]] = {}
            for line in waiting:
                if line.job in notes:
                    later.append(line)
                else:
                    data = _encode({"level": line.level, "text": line.text}).decode()
                    notes[line.job] = (line.job, line.epoch, Kind.JOB_LOG, data)
            tx.jobs.note(list(notes.values()), tx.now)
            waiting = later
        if self.progress:
            notes_of_progress = [
                (job, it.epoch, Kind.JOB_PROGRESS, _encode({"fraction": it.fraction, "note": it.note}).decode())
                for job, it in self.progress.items()
            ]
            holding = tx.jobs.note(notes_of_progress, tx.now)
            tx.outcomes.keep_progress([(job, self.progress[job].fraction, self.progress[job].note) for job in holding])


class Reporter:
    """Takes what agent code says, from whichever thread it runs on, to the reports that the pump writes next."""

    def __init__(self, reports: Callable[[], Reports], said: Callable[[], None]) -> None:
        self._reports = reports
        self._said = said
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def start(self) -> None:
        """From now on the running event loop's thread is the one that gathers."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def log(self, job: int, epoch: int, level: str, text: str) -> None:
        """One line, in order."""
        self._report(lambda reports: reports.lines.append(LogLine(job, epoch, level, text)))

    def progress(self, job: int, epoch: int, fraction: float | None, note: str) -> None:
        """The newest word counts."""
        self._report(lambda reports: reports.progress.__setitem__(job, Progress(epoch, fraction, note)))

    def _report(self, add: Callable[[Reports], None]) -> None:
        if threading.get_ident() == self._thread:
            self._add(add)  # at once: code that never awaits would be over before its turn came
        elif self._loop is not None:
            with suppress(RuntimeError):  # a loop that has ended writes nothing any more
                self._loop.call_soon_threadsafe(self._add, add)

    def _add(self, add: Callable[[Reports], None]) -> None:
        add(self._reports())
        self._said()
