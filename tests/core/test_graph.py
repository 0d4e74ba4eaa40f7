"""Graphs of dependencies, compared with the slow and obvious way on small ones and run on long ones."""

from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.graph import find_cycle, path_text, refuse_cycle, topological, unknown_dependencies
from paceline.core.problem import Problem

Graph = dict[int, list[int]]

LONG = 50_000
WIDE = 10_000

small_graphs = st.dictionaries(st.integers(0, 4), st.lists(st.integers(0, 5), max_size=3), max_size=5)


def shortest_cycle_by_trying_all(graph: Graph) -> int | None:
    """The number of nodes in the shortest cycle."""
    for length in range(1, len(graph) + 1):
        for nodes in permutations(graph, length):
            if all(after in graph[node] for node, after in zip(nodes, (*nodes[1:], nodes[0]), strict=True)):
                return length
    return None


def order_by_looking_again_each_time(graph: Graph) -> list[int]:
    """Always the first node whose dependencies are placed; stops when there is none."""
    order: list[int] = []
    while True:
        ready = (n for n in graph if n not in order and all(d in order or d not in graph for d in graph[n]))
        node = next(ready, None)
        if node is None:
            return order
        order.append(node)


@settings(max_examples=50, deadline=None)
@given(small_graphs)
def test_a_cycle_is_found_exactly_when_there_is_one_and_it_is_a_shortest(graph: Graph) -> None:
    cycle = find_cycle(graph)
    expected = shortest_cycle_by_trying_all(graph)
    if cycle is None:
        assert expected is None
        return
    assert len(cycle) - 1 == expected
    assert cycle[0] == cycle[-1]
    assert all(after in graph[node] for node, after in pairwise(cycle))


def test_all_graphs_of_three_nodes_agree_with_trying_all() -> None:
    choices = [[], [0], [1], [2], [0, 1], [1, 2], [2, 0], [0, 1, 2]]
    for first, second, third in product(choices, repeat=3):
        graph = {0: first, 1: second, 2: third}
        cycle = find_cycle(graph)
        assert (None if cycle is None else len(cycle) - 1) == shortest_cycle_by_trying_all(graph)


@settings(max_examples=50, deadline=None)
@given(small_graphs)
def test_the_order_is_the_first_ready_node_again_and_again(graph: Graph) -> None:
    expected = order_by_looking_again_each_time(graph)
    if len(expected) == len(graph):
        assert topological(graph) == expected
    else:
        with pytest.raises(Problem) as caught:
            topological(graph)
        assert caught.value.code == "dependency_cycle"


def test_a_graph_that_is_in_order_stays_as_it_is() -> None:
    assert topological({"a": [], "b": ["a"], "c": [], "d": ["b", "b"]}) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "graph,path",
    [
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"b": ["a"], "a": ["b"]}, ["b", "a", "b"]),
        ({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a", "y"], "y": []}, ["a", "b", "c", "a"]),
        ({"a": ["b"], "b": ["c"], "c": ["d", "b"], "d": ["a"]}, ["b", "c", "b"]),
        ({"a": ["b"], "b": ["a"], "c": ["c"]}, ["c", "c"]),
    ],
)
def test_a_cycle_is_shown_as_a_path_from_its_first_node(graph: dict[str, list[str]], path: list[str]) -> None:
    assert find_cycle(graph) == path


def test_a_dependency_outside_the_graph_closes_no_cycle_and_orders_nothing() -> None:
    graph = {"a": ["elsewhere"], "b": ["a", "elsewhere"]}
    assert find_cycle(graph) is None
    assert topological(graph) == ["a", "b"]


def test_dependencies_that_exist_nowhere_are_named_with_who_asked() -> None:
    graph = {"a": ["b", "x"], "b": ["y", "old"]}
    assert unknown_dependencies(graph, known={"old"}) == [("a", "x"), ("b", "y")]
    assert unknown_dependencies({"a": [], "b": ["a"]}) == []


def test_a_long_chain_is_ordered_without_recursion_however_it_is_given() -> None:
    chain = {node: [node - 1] if node else [] for node in range(LONG)}
    backwards = {node: chain[node] for node in reversed(range(LONG))}
    assert find_cycle(backwards) is None
    assert topological(backwards) == topological(chain) == list(range(LONG))


def test_a_node_with_many_dependencies_is_no_burden() -> None:
    fan = {0: list(range(1, WIDE)), **{node: [] for node in range(1, WIDE)}}
    assert find_cycle(fan) is None
    assert topological(fan)[-1] == 0


def test_a_ring_is_found_however_long_it_is() -> None:
    ring = {node: [(node + 1) % WIDE] for node in range(WIDE)}
    assert find_cycle(ring) == [*range(WIDE), 0]


def test_a_short_cycle_is_found_at_the_far_end_of_a_long_chain() -> None:
    chain = {node: [node - 1] if node else [] for node in range(WIDE)}
    chain[WIDE - 3] += [WIDE - 1]
    chain[WIDE - 2] += [WIDE - 1]
    assert find_cycle(chain) == [WIDE - 2, WIDE - 1, WIDE - 2]


def test_a_cycle_is_refused_with_its_path() -> None:
    with pytest.raises(Problem) as caught:
        refuse_cycle({"a": ["b"], "b": ["a"]})
    assert str(caught.value) == (
        "dependency_cycle: these depend on each other in a circle (found: a -> b -> a, "
        "allowed: dependencies without circles) -> remove one of the dependencies on the path"
    )
    refuse_cycle({"a": ["b"], "b": []})


@pytest.mark.parametrize(
    "path,text",
    [
        (["a", "a"], "a -> a"),
        ([*range(10), 0], "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> 0"),
        ([*range(1000), 0], "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> (990 more) -> 0"),
        (["\x1b[2J", "b"], "\\x1b[2J -> b"),
    ],
)
def test_a_path_is_written_in_one_short_line(path: list[object], text: str) -> None:
    assert path_text(path) == text
