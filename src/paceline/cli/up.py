"""`paceline up`: a node in the foreground, from its first line to its last."""

import asyncio
import os
from contextlib import suppress
from typing import Annotated

from paceline.agents.registry import registry
from paceline.app import Paceline
from paceline.cli.arguments import Option
from paceline.cli.loops import INTERRUPTED, Interrupts, hopeless, run_here, stop_at_once
from paceline.cli.render import counted
from paceline.cli.shell import Shell
from paceline.core.durations import format_duration
from paceline.errors import PacelineError, UsageError
from paceline.opening import place_shown

LOOK = 0.2
"""Seconds between two looks at how the node is."""


def up(
    shell: Shell,
    slots: Annotated[int | None, Option("how many jobs may run here at once", "-n", "N")] = None,
) -> int:
    """Runs a node: it takes jobs of the agents it knows and runs them, until it is stopped.

    Ctrl-C (or SIGTERM) stops taking jobs and lets those that run finish; again: what still runs goes back to the
    queue; a third time: the end, at once. Several nodes may share a store.

    Examples:
      paceline up --app agents.py
      paceline up --app my.agents --app more.py --slots 50
    """
    shell.load_apps()
    agents = registry.all()
    if not agents:
        raise UsageError(
            code="no_agents", what="this node would know no agent", found=", ".join(shell.apps) or "no --app",
            todo="decorate a function with @agent" if shell.apps else _suggestion(),
        )  # fmt: skip
    app = Paceline(shell.store, agents=agents, slots=slots)
    return run_here(lambda: _serve(shell, app, [one.name for one in agents]))


def _suggestion() -> str:
    there = os.path.exists("agents.py")
    return (
        "paceline up --app agents.py" if there else "paceline up --app FILE_OR_MODULE; `paceline init` makes an example"
    )


async def _serve(shell: Shell, app: Paceline, agents: list[str]) -> int:
    interrupts = Interrupts()
    await app.start()
    try:
        _announce(shell, app, agents)
        trouble = await _until_stopped(app, interrupts)
        if trouble is None:
            await _drain(shell, app, interrupts)
        else:
            await stop_at_once(app)
            raise trouble
    finally:
        interrupts.restore()
    return INTERRUPTED if interrupts.second.is_set() else 0


async def _until_stopped(app: Paceline, interrupts: Interrupts) -> PacelineError | None:
    """Waits for the first Ctrl-C; answers what makes it useless to go on, if that comes first."""
    while not interrupts.first.is_set():
        trouble = hopeless(app)
        if trouble is not None:
            return trouble
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupts.first.wait(), LOOK)
    return None


async def _drain(shell: Shell, app: Paceline, interrupts: Interrupts) -> None:
    """Lets what runs finish for as long as is set, or until Ctrl-C comes again; the rest goes back to the queue."""
    node = app.node
    assert node is not None
    node.stop_claiming()
    patience = app.settings.drain
    if node.running:
        shell.screen.note(
            f"stopping: no new jobs; {counted(node.running, 'job')} may run on for {format_duration(patience)}"
            " (Ctrl-C again gives the rest back to the queue)"
        )
    clock = asyncio.get_running_loop().time
    end = clock() + patience / 1e6
    while node.running and clock() < end and not interrupts.second.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(interrupts.second.wait(), min(LOOK, max(0.0, end - clock())))
    left = node.running
    await app.stop(drain=0)
    shell.screen.note("stopped" + (f"; {counted(left, 'job')} went back to the queue" if left else ""))


def _announce(shell: Shell, app: Paceline, agents: list[str]) -> None:
    assert app.node is not None
    shell.screen.note(
        f"node {app.node.id} serves {_listed(agents)} from {place_shown(app.settings.store)},"
        f" up to {counted(app.settings.slots, 'job')} at once; Ctrl-C stops it"
    )


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
