"""`paceline db`: bring the store up to date, copy it, look for damage."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from paceline.cli.arguments import Argument, Option
from paceline.cli.render import Cell, counted
from paceline.cli.shell import Shell
from paceline.errors import UsageError
from paceline.opening import path_of
from paceline.store import maintenance


def migrate(
    shell: Shell,
    plan: Annotated[bool, Option("only say what would be done")] = False,
) -> int:
    """Brings the store to the schema of this version, all of it or nothing; a copy of the old one is kept beside it.

    Examples:
      paceline db migrate --plan
      paceline db migrate
    """
    path = _path(shell)
    if plan:
        found = maintenance.plan(path)
        names = [step.name for step in found.steps]
        if shell.screen.as_json:
            shell.screen.json({"store": str(path), "schema": found.schema, "newest": found.newest, "steps": names})
            return 0
        if not names:
            shell.screen.line(f"{path} has schema {found.schema}, the newest; nothing to do")
        for name in names:
            shell.screen.cells(Cell("would apply", "yellow"), name)
        return 0
    done = maintenance.migrate(path)
    names = [step.name for step in done.steps]
    if shell.screen.as_json:
        versions = {"before": done.before, "schema": done.schema, "steps": names}
        shell.screen.json({"store": str(path), **versions, "backup": str(done.backup) if done.backup else None})
        return 0
    for name in names:
        shell.screen.cells(Cell("applied", "green"), name)
    if done.backup:
        shell.screen.line(f"the store as it was: {done.backup}")
    shell.screen.line(f"{path} has schema {done.schema}" + ("" if names else ", the newest; nothing to do"))
    return 0


def backup(
    shell: Shell,
    target: Annotated[str, Argument("the new file; nothing is overwritten", "TARGET")],
) -> int:
    """Copies the store while it is in use, and reads the copy again. Never copy the file by other means while it is.

    Examples:
      paceline db backup before-upgrade.db
    """
    made = maintenance.backup(_path(shell), Path(target))
    if shell.screen.as_json:
        shell.screen.json({"store": str(made.path), "backup": str(made.target), "schema": made.schema,
                           "bytes": made.size, "jobs": made.jobs})  # fmt: skip
    else:
        shell.screen.line(f"{made.target}: {counted(made.jobs, 'job')}, {made.size:,} bytes, read again and sound")
    return 0


def check(shell: Shell) -> int:
    """Reads every page of the store and compares its tables; nothing is changed. Ends with 1 when something is broken.

    Examples:
      paceline db check
      paceline db check -o json
    """
    report = maintenance.check(_path(shell))
    if shell.screen.as_json:
        shell.screen.json(_as_json(report))
        return 0 if report.sound else 1
    for one in report.findings:
        mark = Cell("broken", "red") if one.broken else Cell("to know", "yellow")
        shell.screen.cells(mark, f"{one.count:,} × {one.what}: {', '.join(one.examples)}")
    counts = f"{counted(report.jobs, 'job')}, {counted(report.events, 'event')}, schema {report.schema}"
    shell.screen.line(f"{report.path}: {counts}; {'sound' if report.sound else 'NOT sound'}")
    if not report.sound:
        shell.screen.note("stop every node, then put a backup in the place of the file; keep the damaged one")
    return 0 if report.sound else 1


def _as_json(report: maintenance.Report) -> dict[str, object]:
    return {
        "store": str(report.path),
        "sound": report.sound,
        "schema": report.schema,
        "bytes": report.size,
        "jobs": report.jobs,
        "events": report.events,
        "findings": [{**asdict(one), "examples": list(one.examples)} for one in report.findings],
    }


def _path(shell: Shell) -> Path:
    path = path_of(shell.settings().store)
    if path is None:
        raise UsageError(code="bad_store", what="a store in memory has no file", todo="name a file with --store")
    return path.absolute()
