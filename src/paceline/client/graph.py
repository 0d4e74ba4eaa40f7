"""Jobs that depend on each other by name before any of them exists."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from paceline.client.options import edges_of, names_of, terms_of
from paceline.core.graph import topological, unknown_dependencies
from paceline.core.names import closest, shown
from paceline.core.problem import Problem
from paceline.core.submission import Terms, Wish

if TYPE_CHECKING:
    from paceline.client.client import Target


def agent_of(name: str, call: object) -> object:
    """The agent of one node; whatever is not a call by name is refused."""
    if isinstance(name, str) and isinstance(call, Call):
        return call.agent
    raise Problem(
        code="bad_graph", what="a graph is calls by name", where=shown(name), found=shown(call),
        allowed="{'a': call(f, 1), 'b': call(f, 2, after=['a'])}",
    )  # fmt: skip


class Call:
    """One node of a graph: an agent, its input, and what it waits for - names in the graph or jobs outside it."""

    __slots__ = ("after", "agent", "input", "options")

    def __init__(self, agent: object, input: object = None, *, after: Iterable[object] = (), **options: object) -> None:
        self.agent = agent
        self.input = input
        self.after = tuple(after)
        self.options = options


def wishes_of(calls: Mapping[str, "tuple[Target, Call]"], now: int, home: int = 0) -> tuple[list[str], list[Wish]]:
    """The graph in an order in which every prerequisite comes first; dangling names and cycles are refused."""
    waits = {name: names_of(call.after) for name, (_, call) in calls.items()}
    edges = {name: [target for target, _ in inside] for name, (inside, _) in waits.items()}
    dangling = unknown_dependencies(edges)
    if dangling:
        name, wanted = dangling[0]
        guesses = closest(wanted, calls)
        raise Problem(
            code="unknown_dependency", what=f"{name!r} depends on {wanted!r}, which is not in the graph",
            found=f"{len(dangling)} such dependencies", todo=f"did you mean {guesses[0]!r}?" if guesses else "add it",
        )  # fmt: skip
    order = topological(edges)
    places = {name: place for place, name in enumerate(order)}
    wishes = []
    plain: dict[int, Terms] = {}
    for name in order:
        target, call = calls[name]
        inside, outside = waits[name]
        terms = None if call.options else plain.get(target.number)
        if terms is None:
            terms = terms_of(target.number, target.defaults, call.options, now, home)
            if not call.options:
                plain[target.number] = terms
        inner = tuple((places[other], wants) for other, wants in inside)
        wishes.append(Wish(terms, target.check(call.input), edges_of(outside), inner))
    return order, wishes
