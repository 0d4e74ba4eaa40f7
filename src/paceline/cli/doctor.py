"""`paceline doctor`: what may be wrong here, and what to do about it."""

import os
from pathlib import Path

from paceline.cli.render import Cell
from paceline.cli.shell import Shell
from paceline.health import Grade, Origin, Verdict, examine, origins

MARKS = {Grade.OK: Cell("✓", "green"), Grade.WARN: Cell("!", "yellow"), Grade.FAIL: Cell("✗", "red")}


def doctor(shell: Shell) -> int:
    """Checks Python, this host, the settings and the store, and says what to do; ends with 1 when something fails.

    With --app it looks at those agents too.

    Examples:
      paceline doctor
      paceline doctor --app agents.py -o json
    """
    shell.load_apps()
    here, said = Path.cwd(), {"store": shell.store}
    verdicts = []
    for verdict in examine(here, os.environ, said):
        verdicts.append(verdict)
        if not shell.screen.as_json:
            _tell(shell, verdict)
    failed = any(verdict.grade is Grade.FAIL for verdict in verdicts)
    settings = (
        []
        if any(one.name == "settings" and one.grade is Grade.FAIL for one in verdicts)
        else origins(here, os.environ, said)
    )
    if shell.screen.as_json:
        shell.screen.json(_as_json(verdicts, settings, not failed))
    else:
        _sum_up(shell, verdicts, settings)
    return 1 if failed else 0


def _tell(shell: Shell, verdict: Verdict) -> None:
    mark = MARKS[verdict.grade]
    shell.screen.cells(
        mark, verdict.name.ljust(16), Cell(verdict.found, "" if verdict.grade is Grade.OK else mark.style)
    )
    if verdict.todo:
        shell.screen.line(f"{'':18} {verdict.todo}")


def _sum_up(shell: Shell, verdicts: list[Verdict], settings: list[Origin]) -> None:
    screen = shell.screen
    screen.line()
    if settings:
        screen.table(["setting", "value", "from"], [[one.name, _shown(one.value), one.source] for one in settings])
        screen.line()
    counts = {grade: sum(verdict.grade is grade for verdict in verdicts) for grade in Grade}
    if not counts[Grade.WARN] + counts[Grade.FAIL]:
        screen.line("All is well.", "green")
    else:
        screen.line(f"{counts[Grade.OK]} ok, {counts[Grade.WARN]} to know about, {counts[Grade.FAIL]} failed")


def _shown(value: object) -> str:
    return ", ".join(f"{name} {units}" for name, units in value.items()) if isinstance(value, dict) else str(value)


def _as_json(verdicts: list[Verdict], settings: list[Origin], sound: bool) -> dict[str, object]:
    checks = [{"name": one.name, "verdict": one.grade.value, "found": one.found, "do": one.todo} for one in verdicts]
    return {
        "ok": sound,
        "checks": checks,
        "settings": {one.name: {"value": one.value, "from": one.source} for one in settings},
    }
