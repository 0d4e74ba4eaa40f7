"""What can be said of the nodes of a store, all taken together."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from paceline.core.leasing import lease_expired
from paceline.core.model import NodeRow


class Standing(Enum):
    """How a node stands: it lives, its lease has run out and nobody has ended it yet, or it has ended."""

    LIVE = "live"
    SILENT = "silent"
    ENDED = "ended"


class NodeLine(NamedTuple):
    """One node of a listing."""

    row: NodeRow
    standing: Standing
    running: int
    agents: tuple[str, ...]

    @property
    def host(self) -> str:
        """The host that a node gave itself a name after; empty where its name was given otherwise."""
        parts = self.row.name.rsplit("-", 2)
        return parts[0] if len(parts) == 3 and parts[1].isdigit() else ""


class Limit(NamedTuple):
    """A pool: what the store allows, what the settings say where they say it, and what is held."""

    pool: str
    units: int | None
    said: int | None
    held: int

    @property
    def drifts(self) -> bool:
        """The settings say otherwise; the store counts."""
        return self.said is not None and self.said != self.units


class Cluster(NamedTuple):
    """All nodes that were asked for, and what they share."""

    nodes: tuple[NodeLine, ...]
    limits: tuple[Limit, ...]
    now: int

    @property
    def versions(self) -> dict[str, int]:
        """How many of the nodes that have not ended run which version."""
        found: dict[str, int] = {}
        for node in self.open:
            found[node.row.version] = found.get(node.row.version, 0) + 1
        return found

    @property
    def open(self) -> list[NodeLine]:
        """The nodes that have not ended."""
        return [node for node in self.nodes if node.standing is not Standing.ENDED]


def standing_of(node: NodeRow, now: int) -> Standing:
    """How a node stands at `now`."""
    if node.ended_at is not None:
        return Standing.ENDED
    return Standing.SILENT if lease_expired(node.expires_at, now) else Standing.LIVE


def limits_of(store: Mapping[str, int], said: Mapping[str, int], held: Mapping[str, int]) -> tuple[Limit, ...]:
    """Every pool that the store or the settings name, by name."""
    pools = sorted({*store, *said})
    return tuple(Limit(pool, store.get(pool), said.get(pool), held.get(pool, 0)) for pool in pools)


def lines_of(
    nodes: Iterable[NodeRow], now: int, running: Mapping[int, int], served: Iterable[tuple[int, str]]
) -> tuple[NodeLine, ...]:
    """The nodes with what they run and (node, agent) they have code for; those that have ended stand behind."""
    agents: dict[int, set[str]] = {}
    for node, agent in served:
        agents.setdefault(node, set()).add(agent)
    lines = [
        NodeLine(row, standing_of(row, now), running.get(row.id, 0), tuple(sorted(agents.get(row.id, ()))))
        for row in nodes
    ]
    return tuple(sorted(lines, key=lambda line: (line.standing is Standing.ENDED, _order(line))))


def _order(line: NodeLine) -> int:
    """Open nodes in the order in which they began, ended ones the last first."""
    return line.row.id if line.row.ended_at is None else -line.row.ended_at
