"""Questions about dependencies, answered without recursion and in time proportional to the number of edges.

`edges` maps each node to the nodes that it depends on. Dependencies that are not keys belong to somebody else's
graph: they order nothing and close no cycle here, and `unknown_dependencies` finds those that exist nowhere.
"""

from collections.abc import Container, Hashable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

from paceline.core.names import escape_for_terminal
from paceline.core.problem import Problem

K = TypeVar("K", bound=Hashable)

_PATIENCE = 200_000
"""Edges looked at in search of the shortest cycle; after that a longer one will do."""

_SHORTEST = 3
"""The length of the path `[a, b, a]`; a node that depends on itself is looked for first."""

_SHOWN_NODES = 10


def find_cycle(edges: Mapping[K, Sequence[K]]) -> list[K] | None:
    """A cycle as the path `[a, b, a]`, each depending on the next, or None.

    It is a shortest one, unless what is left after removing all that is in order is so large that looking for
    it would take too long; and always the same for the same graph.
    """
    inside = _turned(_tangle(_turned(_tangle(edges))))
    if not inside:
        return None
    for node, targets in inside.items():
        if node in targets:
            return [node, node]
    best, patience = _some_cycle(inside), _PATIENCE
    for node in inside:
        if patience <= 0 or len(best) == _SHORTEST:
            break
        shorter, looked_at = _cycle_through(node, inside, shorter_than=len(best), patience=patience)
        best, patience = shorter or best, patience - looked_at
    return best


def _tangle(edges: Mapping[K, Sequence[K]]) -> dict[K, list[K]]:
    """What remains of the graph after taking away, again and again, each node on which nothing depends."""
    wanted = dict.fromkeys(edges, 0)
    for targets in edges.values():
        for target in targets:
            if target in wanted:
                wanted[target] += 1
    free = [node for node, count in wanted.items() if not count]
    while free:
        for target in edges[free.pop()]:
            if target in wanted:
                wanted[target] -= 1
                if not wanted[target]:
                    free.append(target)
    return {node: [target for target in edges[node] if wanted.get(target)] for node, count in wanted.items() if count}


def _turned(edges: Mapping[K, Sequence[K]]) -> dict[K, list[K]]:
    """The same nodes with every edge the other way round."""
    turned: dict[K, list[K]] = {node: [] for node in edges}
    for node, targets in edges.items():
        for target in targets:
            turned[target].append(node)
    return turned


def _some_cycle(inside: Mapping[K, Sequence[K]]) -> list[K]:
    """The cycle met by walking on and on, which is possible where every node has a dependency."""
    node = next(iter(inside))
    walked: dict[K, None] = {}
    while node not in walked:
        walked[node] = None
        node = inside[node][0]
    path = list(walked)
    path = path[path.index(node) :]
    members = set(path)
    start = path.index(next(key for key in inside if key in members))
    return [*path[start:], *path[: start + 1]]


def _cycle_through(
    start: K, inside: Mapping[K, Sequence[K]], *, shorter_than: int, patience: int
) -> tuple[list[K] | None, int]:
    """The shortest cycle through `start` if it is short enough, and how many edges were looked at."""
    came_from: dict[K, K] = {}
    layer, looked_at, length = [start], 0, 1
    while layer and length + 1 < shorter_than and looked_at < patience:
        following: list[K] = []
        for node in layer:
            looked_at += len(inside[node])
            for target in inside[node]:
                if target == start:
                    return _path_back(start, node, came_from), looked_at
                if target not in came_from:
                    came_from[target] = node
                    following.append(target)
        layer, length = following, length + 1
    return None, looked_at


def _path_back(start: K, last: K, came_from: Mapping[K, K]) -> list[K]:
    path = [start]
    while last != start:
        path.append(last)
        last = came_from[last]
    path.append(start)
    return path[::-1]


def topological(edges: Mapping[K, Sequence[K]]) -> list[K]:
    """All nodes, dependencies first; of those that may come next, always the one that stands first in `edges`.

    A graph that is already in order is therefore returned as it is. A cycle is a Problem that shows its path.
    """
    nodes = list(edges)
    place = {node: number for number, node in enumerate(nodes)}
    missing = [0] * len(nodes)
    # Edges as chained lists of numbers: a list per node would cost a second and 100 MB on a million nodes.
    newest = [-1] * len(nodes)
    dependent: list[int] = []
    older: list[int] = []
    for number, node in enumerate(nodes):
        for target in edges[node]:
            if (needed := place.get(target)) is not None:
                missing[number] += 1
                dependent.append(number)
                older.append(newest[needed])
                newest[needed] = len(older) - 1
    ready = [number for number, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[K] = []
    while ready:
        done = heappop(ready)
        order.append(nodes[done])
        edge = newest[done]
        while edge >= 0:
            missing[dependent[edge]] -= 1
            if not missing[dependent[edge]]:
                heappush(ready, dependent[edge])
            edge = older[edge]
    if len(order) < len(nodes):
        refuse_cycle(edges)
    return order


def refuse_cycle(edges: Mapping[K, Sequence[K]]) -> None:
    """A Problem that shows the path when the graph has a cycle."""
    cycle = find_cycle(edges)
    if cycle is not None:
        raise Problem(
            code="dependency_cycle",
            what="these depend on each other in a circle",
            found=path_text(cycle),
            allowed="dependencies without circles",
            todo="remove one of the dependencies on the path",
        )


def path_text(path: Sequence[object]) -> str:
    """A path as people read it: `a -> b -> a`, with the middle of a long one left out."""
    shown = [escape_for_terminal(str(node)) for node in (*path[:_SHOWN_NODES], *path[_SHOWN_NODES:][-1:])]
    left_out = len(path) - len(shown)
    if left_out:
        shown.insert(-1, f"({left_out} more)")
    return " -> ".join(shown)


def unknown_dependencies(edges: Mapping[K, Sequence[K]], known: Container[K] = ()) -> list[tuple[K, K]]:
    """Each (node, dependency) whose dependency is neither in the graph nor among `known`, in order."""
    return [
        (node, target)
        for node, targets in edges.items()
        for target in targets
        if target not in edges and target not in known
    ]
