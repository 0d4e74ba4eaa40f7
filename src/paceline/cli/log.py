"""`paceline logs` and `events`: what jobs have written, and what has happened."""

import time
from collections.abc import Iterator
from typing import Annotated, Literal

from paceline.cli.arguments import Option
from paceline.cli.listings import Csv, JsonLines, JsonList, Sink
from paceline.cli.looking import JobId, at_least, clock, looking, resolve
from paceline.cli.render import Cell, Screen, moment
from paceline.cli.shell import Shell
from paceline.cli.showing import event_as_json, said_of
from paceline.client.following import WHOLE_CHAIN, Filter, LogLine, Page, cursor_at, filter_of, log_line, newest, page
from paceline.core.durations import parse_duration
from paceline.errors import UsageError
from paceline.events import Event, Kind, Severity
from paceline.opening import Opened

LOOK_EVERY = 0.2
LAST = 50
LEVELS = {"debug": "dim", "warning": "yellow", "error": "red"}
SEVERITIES = {Severity.DEBUG: "dim", Severity.WARNING: "yellow", Severity.ERROR: "red"}


def logs(
    shell: Shell,
    job: JobId,
    follow: Annotated[bool, Option("go on until the job has ended", "-f")] = False,
    number: Annotated[int | None, Option("only the last of them", "-n", "N")] = None,
) -> int:
    """What a job has written with ctx.log, with time and level.

    Examples:
      paceline logs j42
      paceline logs -f 42
    """
    most = WHOLE_CHAIN if number is None else at_least("-n", number)
    with looking(shell) as opened:
        found = resolve(opened, [job])[0]
        wanted = Filter((Kind.JOB_LOG,), found)
        written, ended, now = opened.store.look(
            lambda tx: (newest(tx, wanted, most), tx.jobs.rows([found])[0].state.ended, tx.now)
        )
        with _sink_for_lines(shell.screen, now, follow) as sink:
            sink.write([log_line(event) for event in written.events])
            if not written.events and not follow:
                shell.screen.note(f"j{found} has not written anything" + ("" if ended else " yet"), "dim")
            cursor = written.cursor
            while follow and not ended:
                time.sleep(LOOK_EVERY)
                ended, more = _look_again(opened, wanted, found, cursor)
                sink.write([log_line(event) for event in more.events])
                cursor = more.cursor
    return 0


def events(
    shell: Shell,
    follow: Annotated[bool, Option("go on until Ctrl-C", "-f")] = False,
    kind: Annotated[list[str] | None, Option("only this kind, such as job.failed or node; may be repeated")] = None,
    severity: Annotated[
        Literal["debug", "info", "warning", "error"] | None, Option("only this severity and above")
    ] = None,
    job: Annotated[str | None, Option("only this job's", metavar="JOB")] = None,
    since: Annotated[str | None, Option("only what happened in the last: 10m", metavar="TIME")] = None,
    number: Annotated[int | None, Option(f"how many of the last ones (default {LAST})", "-n", "N")] = None,
    export: Annotated[Literal["jsonl", "csv", "json"] | None, Option("write all that fit, in this format")] = None,
) -> int:
    """What has happened to jobs and nodes, in order.

    Examples:
      paceline events -f --severity warning
      paceline events --job 42
      paceline events --since 1h --export csv > events.csv
    """
    if follow and export == "json":
        raise UsageError(
            code="bad_usage",
            what="a JSON list that goes on for ever has no end",
            allowed="--export jsonl, --export csv",
        )
    period = None if since is None else parse_duration(since, field="--since")
    if number is None and export is None and period is None:
        number = LAST
    most = None if number is None else at_least("-n", number)
    with looking(shell) as opened:
        wanted = filter_of(kind or (), severity, None if job is None else resolve(opened, [job])[0])
        start = 0 if period is None else opened.store.look(lambda tx: cursor_at(tx, tx.now - period))
        now, cursor, count = opened.store.clock.now(), start, 0
        with _sink_for_events(shell.screen, now, follow, export) as sink:
            for found in _first(opened, wanted, start, most):
                sink.write(found.events)
                cursor, count = found.cursor, count + len(found.events)
            if not count and not follow and export is None:
                narrowed = kind or severity or job or since
                shell.screen.note("no event fits" if narrowed else "no events yet: nothing was submitted", "dim")
            while follow:
                time.sleep(LOOK_EVERY)
                for found in _pages(opened, wanted, cursor):
                    sink.write(found.events)
                    cursor = found.cursor
    return 0


def _look_again(opened: Opened, wanted: Filter, job: int, cursor: int) -> tuple[bool, Page]:
    return opened.store.look(lambda tx: (tx.jobs.rows([job])[0].state.ended, page(tx, wanted, cursor, WHOLE_CHAIN)))


def _first(opened: Opened, wanted: Filter, start: int, most: int | None) -> Iterator[Page]:
    if most is None:
        return _pages(opened, wanted, start)
    return iter([opened.store.look(lambda tx: newest(tx, wanted, most, start))])


def _pages(opened: Opened, wanted: Filter, cursor: int) -> Iterator[Page]:
    """Everything behind a cursor, a page at a time, so that a long log needs little memory."""
    more = True
    while more:
        found = _page(opened, wanted, cursor)
        yield found
        cursor, more = found.cursor, found.more


def _page(opened: Opened, wanted: Filter, cursor: int) -> Page:
    return opened.store.look(lambda tx: page(tx, wanted, cursor))


def _sink_for_lines(screen: Screen, now: int, follow: bool) -> Sink[LogLine]:
    if screen.as_json:
        return JsonLines(screen, _line_as_json) if follow else JsonList(screen, _line_as_json)
    return _LogLines(screen, now)


def _sink_for_events(screen: Screen, now: int, follow: bool, export: str | None) -> Sink[Event]:
    if export == "csv":
        return Csv(screen, ("id", "job", "seq", "at", "kind", "severity", "epoch", "data"), event_as_json)
    if export == "jsonl" or (follow and screen.as_json):
        return JsonLines(screen, event_as_json)
    if export == "json" or screen.as_json:
        return JsonList(screen, event_as_json)
    return _EventLines(screen, now)


class _LogLines(Sink[LogLine]):
    """Time, level unless it is the usual one, and text; a new start of the job is announced."""

    def __init__(self, screen: Screen, now: int) -> None:
        self._screen = screen
        self._now = now
        self._epoch: int | None = None

    def write_one(self, item: LogLine) -> None:
        if self._epoch not in (None, item.epoch):
            self._screen.line(f"--- start {item.epoch}", "dim")
        self._epoch = item.epoch
        first, *rest = item.text.split("\n")
        level = "" if item.level == "info" else item.level
        style = LEVELS.get(item.level, "")
        self._screen.cells(Cell(clock(item.at, self._now, exact=True), "dim"), Cell(level, style), Cell(first, style))
        for line in rest:
            self._screen.line(f"    {line}", style)


class _EventLines(Sink[Event]):
    """Time, job, kind and what it says."""

    def __init__(self, screen: Screen, now: int) -> None:
        self._screen = screen
        self._now = now

    def write_one(self, item: Event) -> None:
        job = f"j{item.job}" if item.job is not None else "-"
        said = said_of(item)
        kind = Cell(f"{item.kind.word:<15}" if said else item.kind.word, SEVERITIES.get(item.kind.severity, ""))
        time = Cell(clock(item.at, self._now, exact=True), "dim")
        self._screen.cells(time, Cell(f"{job:<7}", "bold"), kind, said)


def _line_as_json(line: LogLine) -> dict[str, object]:
    return {"at": moment(line.at), "epoch": line.epoch, "level": line.level, "text": line.text}
