"""`paceline nodes`: who works on the store, and whether all agree."""

import sys
import time
from typing import Annotated

from paceline.cli.arguments import Option
from paceline.cli.looking import at_least, clock, looking
from paceline.cli.render import Cell, ago, counted, moment
from paceline.cli.shell import Shell
from paceline.client.cluster import cluster
from paceline.core.cluster import Cluster, NodeLine, Standing

COLUMNS = ("id", "name", "host", "version", "state", "load", "agents", "since", "beat", "lease")
STYLES = {Standing.LIVE: "green", Standing.SILENT: "yellow", Standing.ENDED: "dim"}
WATCH_EVERY = 0.5
FEW_AGENTS = 4


def nodes(
    shell: Shell,
    all: Annotated[bool, Option("those that have ended too, the last first", "-a")] = False,
    number: Annotated[int, Option("how many of those", "-n", "N")] = 20,
    watch: Annotated[bool, Option("look again twice a second, until Ctrl-C", "-w")] = False,
) -> int:
    """Lists the nodes of the store: what they run, what they have code for, when they were last heard of.

    A silent node has let its lease run out; the next sweep of another returns its jobs to the queue. The last line says
    where versions differ, and which limits of the settings here are not those of the store, which count.

    Examples:
      paceline nodes
      paceline nodes --all -o json
      paceline nodes --watch
    """
    at_least("-n", number)
    said = shell.settings().limits
    with looking(shell) as opened:
        while True:
            seen = opened.store.look(lambda tx: cluster(tx, said, ended=number if all else 0))
            if watch and shell.screen.live(sys.stdout):
                sys.stdout.write("\x1b[H\x1b[2J")
            _print(shell, seen)
            if not watch:
                return 0
            time.sleep(WATCH_EVERY)


def _print(shell: Shell, seen: Cluster) -> None:
    if shell.screen.as_json:
        shell.screen.json(_as_json(seen))
        return
    if seen.nodes:
        shell.screen.table(COLUMNS, [_row(node, seen.now) for node in seen.nodes])
    _sum_up(shell, seen)


def _row(node: NodeLine, now: int) -> list[str | Cell]:
    row, ended = node.row, node.standing is Standing.ENDED
    state = f"{row.ending or 'ended'} {ago(now, row.ended_at)}" if ended else node.standing.value
    more = len(node.agents) - FEW_AGENTS
    agents = ", ".join(node.agents[:FEW_AGENTS]) + (f" and {more} more" if more > 0 else "")
    return [
        str(row.id),
        Cell(row.name, "bold"),
        node.host,
        row.version,
        Cell(state.replace("_", " "), STYLES[node.standing]),
        f"{node.running:,}/{row.slots:,}" if node.running or not ended else "",
        agents,
        clock(row.started_at, now),
        ago(now, row.beat_at),
        "" if ended else ago(now, row.expires_at),
    ]


def _sum_up(shell: Shell, seen: Cluster) -> None:
    """One line: how many there are and how much they do, then where they do not agree."""
    open_ones = seen.open
    if not open_ones:
        shell.screen.note("no node runs: paceline up --app FILE")
    else:
        live = [node for node in open_ones if node.standing is Standing.LIVE]
        hosts = {node.host for node in live if node.host}
        slots, running = sum(node.row.slots for node in live), sum(node.running for node in live)
        parts = [f"{counted(len(live), 'node')} live" + (f" on {counted(len(hosts), 'host')}" if hosts else "")]
        if len(live) < len(open_ones):
            parts.append(f"{len(open_ones) - len(live)} silent")
        parts.append(f"{running:,} of {counted(slots, 'slot')} in use")
        if len(seen.versions) > 1:
            parts.append("versions differ: " + ", ".join(f"{name} × {many}" for name, many in seen.versions.items()))
        shell.screen.line("; ".join(parts))
    if drift := [one for one in seen.limits if one.drifts]:
        said = ", ".join(
            f"{one.pool} {'none' if one.units is None else one.units} (settings: {one.said})" for one in drift
        )
        shell.screen.note(f"the store's limits count, and differ from the settings here: {said}", "yellow")


def _as_json(seen: Cluster) -> dict[str, object]:
    return {
        "nodes": [_node_as_json(node) for node in seen.nodes],
        "versions": seen.versions,
        "limits": {
            one.pool: {"units": one.units, "settings": one.said, "held": one.held, "drift": one.drifts}
            for one in seen.limits
        },
    }


def _node_as_json(node: NodeLine) -> dict[str, object]:
    row = node.row
    return {
        "id": row.id,
        "name": row.name,
        "host": node.host or None,
        "version": row.version,
        "state": node.standing.value,
        "ending": row.ending,
        "running": node.running,
        "slots": row.slots,
        "agents": list(node.agents),
        "started_at": moment(row.started_at),
        "beat_at": moment(row.beat_at),
        "expires_at": moment(row.expires_at),
        "ended_at": moment(row.ended_at),
    }
