"""`paceline db`: bring the store up to date, back it up, look for damage, move it elsewhere."""

import sys
import time
from dataclasses import asdict
from typing import Annotated, Self

from paceline import care
from paceline.cli.arguments import Argument, Option
from paceline.cli.render import Cell, Screen, counted
from paceline.cli.shell import Shell
from paceline.store.maintenance import Report

TELL_EVERY = 0.2
MANY = 10_000


def migrate(
    shell: Shell,
    plan: Annotated[bool, Option("only say what would be done")] = False,
) -> int:
    """Brings the store to the schema of this version, all of it or nothing; a copy of an old file is kept beside it.

    Examples:
      paceline db migrate --plan
      paceline db migrate
    """
    home = care.home_of(shell.settings().store)
    if plan:
        found = care.plan(home)
        names = [step.name for step in found.steps]
        if shell.screen.as_json:
            shell.screen.json({"store": found.where, "schema": found.schema, "newest": found.newest, "steps": names})
            return 0
        if not names:
            shell.screen.line(f"{found.where} has schema {found.schema}, the newest; nothing to do")
        for name in names:
            shell.screen.cells(Cell("would apply", "yellow"), name)
        return 0
    done = care.migrate(home)
    names = [step.name for step in done.steps]
    if shell.screen.as_json:
        versions = {"before": done.before, "schema": done.schema, "steps": names}
        shell.screen.json({"store": done.where, **versions, "backup": str(done.backup) if done.backup else None})
        return 0
    for name in names:
        shell.screen.cells(Cell("applied", "green"), name)
    if done.backup:
        shell.screen.line(f"the store as it was: {done.backup}")
    shell.screen.line(f"{done.where} has schema {done.schema}" + ("" if names else ", the newest; nothing to do"))
    return 0


def backup(
    shell: Shell,
    target: Annotated[str, Argument("the new file; nothing is overwritten", "TARGET")],
) -> int:
    """Copies the store while it is in use, and reads the copy again. Never copy the file by other means while it is.

    A store on Postgres is backed up by Postgres; this names the command that does it.

    Examples:
      paceline db backup before-upgrade.db
    """
    made = care.backup(care.home_of(shell.settings().store), target)
    if shell.screen.as_json:
        shell.screen.json({"store": str(made.path), "backup": str(made.target), "schema": made.schema,
                           "bytes": made.size, "jobs": made.jobs})  # fmt: skip
    else:
        shell.screen.line(f"{made.target}: {counted(made.jobs, 'job')}, {made.size:,} bytes, read again and sound")
    return 0


def check(shell: Shell) -> int:
    """Reads all of the store and compares its tables; nothing is changed. Ends with 1 when something is broken.

    Of a file every page is read; the pages of a server are its own affair.

    Examples:
      paceline db check
      paceline db check -o json
    """
    report = care.check(care.home_of(shell.settings().store))
    if shell.screen.as_json:
        shell.screen.json(_as_json(report))
        return 0 if report.sound else 1
    for one in report.findings:
        mark = Cell("broken", "red") if one.broken else Cell("to know", "yellow")
        shell.screen.cells(mark, f"{one.count:,} × {one.what}: {', '.join(one.examples)}")
    counts = f"{counted(report.jobs, 'job')}, {counted(report.events, 'event')}, schema {report.schema}"
    shell.screen.line(f"{report.where}: {counts}; {'sound' if report.sound else 'NOT sound'}")
    if not report.sound:
        shell.screen.note("stop every node, then put a backup in the place of the store; keep the damaged one")
    return 0 if report.sound else 1


def copy(
    shell: Shell,
    source: Annotated[str, Argument("the store to copy; nothing in it is changed", "FROM")],
    target: Annotated[str, Argument("where to; it is made, and must hold no jobs", "TO")],
) -> int:
    """Moves a store: copies all of it into another, between a file and Postgres or between two of a kind.

    Ids, events and their order stay. No node may run on either. It happens in one transaction: the copy is counted and
    checked, and is whole or not there at all. Jobs that dead nodes held return to the queue. Afterwards use the new one
    alone, for both would do the same work.

    Examples:
      paceline db copy sqlite:///.paceline/paceline.db postgresql://me@server/work
      paceline db copy postgresql://me@server/work sqlite:///copy.db
    """
    with Progress(shell.screen) as progress:
        done = care.copy(care.home_of(source), care.home_of(target), progress.tell)
    if shell.screen.as_json:
        shell.screen.json({"from": done.source, "to": done.target, "rows": done.rows, "returned": done.returned})
        return 0
    jobs, events = counted(done.rows["jobs"], "job"), counted(done.rows["events"], "event")
    shell.screen.line(f"{done.target}: {jobs}, {events}, {len(done.rows)} tables, counted and sound")
    if done.returned:
        shell.screen.line(f"{counted(done.returned, 'job')} of dead nodes returned to the queue")
    shell.screen.note(f"set store to the new one everywhere: {done.source} is as it was, and must not be used any more")
    return 0


class Progress:
    """How far a copy is: a moving line on a terminal, one line for each table with many rows elsewhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._moving = screen.live(sys.stderr)
        self._told = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def tell(self, table: str, done: int, total: int) -> None:
        """So many rows of that table are written."""
        now = time.monotonic()
        if self._moving and (done == total or now - self._told >= TELL_EVERY):
            self._told = now
            self._clear()
            sys.stderr.write(f"copying {table}: {done:,} of {total:,}")
            sys.stderr.flush()
        elif not self._moving and not self._screen.as_json and done >= total >= MANY:
            self._screen.note(f"copied {table}: {counted(total, 'row')}")

    def _clear(self) -> None:
        if self._moving:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _as_json(report: Report) -> dict[str, object]:
    return {
        "store": report.where,
        "sound": report.sound,
        "schema": report.schema,
        "bytes": report.size,
        "jobs": report.jobs,
        "events": report.events,
        "findings": [{**asdict(one), "examples": list(one.examples)} for one in report.findings],
    }
