"""`paceline ps`, `show` and `explain`: where jobs are, and why."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated

from paceline.cli.arguments import Option
from paceline.cli.looking import (
    Agent,
    JobId,
    Tenant,
    at_least,
    clock,
    explanation_as_json,
    line_as_json,
    looking,
    progress_cell,
    rank_of,
    resolve,
    time_of,
    why_cell,
)
from paceline.cli.render import Cell, ago, state_cell, terminal_width
from paceline.cli.shell import Shell
from paceline.client.explaining import Explainer
from paceline.client.reading import Screenful, parse_state, screenful
from paceline.client.reading import show as read_all
from paceline.core.explanation import Explanation
from paceline.opening import Opened

FEW = 5
COLUMNS = ("id", "state", "agent", "tenant", "rank", "try", "time", "progress", "")
DISPENSABLE = ("tenant", "try", "rank")
WHY_WIDTH = 30
WATCH_EVERY = 0.5


def ps(
    shell: Shell,
    state: Annotated[list[str] | None, Option("only jobs in this state; may be repeated", metavar="STATE")] = None,
    agent: Agent = None,
    tenant: Tenant = None,
    all: Annotated[bool, Option("all jobs, the newest first", "-a")] = False,
    number: Annotated[int, Option("how many", "-n", "N")] = 20,
    watch: Annotated[bool, Option("look again twice a second, until Ctrl-C", "-w")] = False,
) -> int:
    """Lists jobs: what is open in the order in which it runs, then the few that ended last.

    Examples:
      paceline ps
      paceline ps --state failed --state timed_out
      paceline ps --agent writer --all -n 100 -o json
    """
    states = [parse_state(word) for word in state or []]
    at_least("-n", number)

    with looking(shell) as opened:
        while True:
            seen = opened.store.look(
                lambda tx: screenful(tx, states, every=all, agent=agent, tenant=tenant, limit=number, ended=FEW)
            )
            if watch and shell.screen.live(sys.stdout):
                sys.stdout.write("\x1b[H\x1b[2J")
            _print_list(shell, seen, narrowed=bool(states or agent or tenant))
            _say_more(shell, seen.more, number)
            if not watch:
                return 0
            time.sleep(WATCH_EVERY)


def show(shell: Shell, job: JobId) -> int:
    """Everything about one job: its state and why, input and result, error, neighbours, starts and events.

    Examples:
      paceline show j42
      paceline show 42 -o json
    """
    from paceline.cli.showing import as_json, print_all  # late: `ps` does without

    with looking(shell) as opened:
        number = resolve(opened, [job])[0]
        whole = 20_000_000 if shell.screen.as_json else 2_000
        detail, now = opened.store.look(lambda tx: (read_all(tx, number, preview=whole), tx.now))
    if shell.screen.as_json:
        shell.screen.json(as_json(detail))
    else:
        print_all(shell.screen, detail, now)
    return 0


def explain(shell: Shell, job: JobId) -> int:
    """Says why a job is where it is: what it waits for, who holds it, since when, and what to do.

    Examples:
      paceline explain j42
      paceline explain 42 -o json
    """
    with looking(shell) as opened:
        why, now = _explained(opened, job)
    if shell.screen.as_json:
        shell.screen.json(explanation_as_json(why))
        return 0
    screen = shell.screen
    screen.cells(Cell(f"j{why.job}", "bold"), state_cell(why.state.word), _code(why))
    for line in why.text.split("\n"):
        screen.line(f"  {line}")
    for note in why.notes:
        screen.line(f"  {note}")
    facts = [("since", f"{clock(why.since, now)} ({ago(now, why.since)})" if why.since is not None else "")]
    if why.until is not None:
        facts.append(("until", f"{clock(why.until, now)} ({ago(now, why.until)})"))
    facts.append(("in line", _place(why)))
    screen.facts((f"  {name}", value) for name, value in facts)
    if why.todo:
        screen.cells(Cell("  do:", "dim"), why.todo)
    return 0


def _explained(opened: Opened, word: str) -> tuple[Explanation, int]:
    number = resolve(opened, [word])[0]
    return opened.store.look(lambda tx: (Explainer(tx).explain(number), tx.now))


def _code(why: Explanation) -> Cell:
    return Cell("" if why.code.value == why.state.word else f"({why.code.value})", "dim")


def _place(why: Explanation) -> str:
    if why.position is None:
        return ""
    overall = "" if why.ahead is None else f", number {why.ahead + 1:,} of all ready jobs"
    return f"number {why.position:,} in its lane{overall}"


def _print_list(shell: Shell, seen: Screenful, *, narrowed: bool) -> None:
    screen, lines, now = shell.screen, seen.lines, seen.now
    if screen.as_json:
        screen.json([line_as_json(line, why) for line, why in lines])
        return
    if not lines:
        todo = "no job fits" if narrowed else "no jobs yet: paceline submit AGENT INPUT, or see paceline demo"
        screen.note(todo)
        return
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell(line.name, "bold"),
            state_cell(line.state.word),
            line.agent,
            "" if line.tenant == "default" else line.tenant,
            rank_of(line),
            str(line.attempt + 1) if line.attempt else "",
            time_of(line, now),
            progress_cell(line),
            why_cell(line, why),
        )
        for line, why in lines
    ]
    used = _columns(rows, terminal_width() if sys.stdout.isatty() else None)
    screen.table([COLUMNS[place] for place in used], [[row[place] for place in used] for row in rows])


def _columns(rows: Sequence[Sequence[str | Cell]], room: int | None) -> list[int]:
    """Columns that say something; on a narrow terminal the reason is worth more than what `show` tells as well."""
    places = range(len(COLUMNS))
    widths = [
        max(len(cell.text if isinstance(cell, Cell) else cell) for cell in column) for column in zip(*rows, strict=True)
    ]
    used = [place for place in places if widths[place]]
    for name in DISPENSABLE:
        taken = sum(max(widths[place], len(COLUMNS[place])) + 2 for place in used if place != places[-1])
        if room is not None and room - taken < min(WHY_WIDTH, widths[-1]) and COLUMNS.index(name) in used:
            used.remove(COLUMNS.index(name))
    return used


def _say_more(shell: Shell, more: int | None, number: int) -> None:
    if shell.screen.as_json or more == 0:
        return
    count = "more jobs are" if more is None else "one more job is" if more == 1 else f"{more:,} more jobs are"
    shell.screen.note(f"{count} not shown: -n {max(100, 2 * number)} shows more", "dim")
