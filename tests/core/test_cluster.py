"""Nodes taken together: how each stands, on which host, and where they do not agree."""

import pytest

from paceline.core.cluster import Cluster, Standing, limits_of, lines_of, standing_of
from paceline.core.model import SECOND, NodeRow

NOW = 1_000 * SECOND


def node(id: int, *, name: str = "n", version: str = "1", expires: int = 1, ended: int | None = None) -> NodeRow:
    ending = None if ended is None else "stopped"
    return NodeRow(id, name, "who", version, 10, 0, 0, NOW + expires, ended, ending)


@pytest.mark.parametrize(
    ("row", "standing"),
    [
        (node(1), Standing.LIVE),
        (node(1, expires=0), Standing.SILENT),
        (node(1, expires=-SECOND), Standing.SILENT),
        (node(1, ended=NOW), Standing.ENDED),
    ],
)
def test_a_node_lives_until_its_lease_runs_out_and_is_silent_until_somebody_ends_it(
    row: NodeRow, standing: Standing
) -> None:
    assert standing_of(row, NOW) is standing


@pytest.mark.parametrize(
    ("name", "host"), [("db-7.example-4711-ab12", "db-7.example"), ("vm-1-ff00", "vm"), ("n1", ""), ("a-b-c", "")]
)
def test_the_host_is_read_from_a_name_that_a_node_gave_itself(name: str, host: str) -> None:
    assert lines_of([node(1, name=name)], NOW, {}, [])[0].host == host


def test_open_nodes_stand_first_and_then_those_that_ended_last() -> None:
    rows = [node(4, ended=5), node(3), node(2, ended=9), node(1, expires=-1)]
    assert [line.row.id for line in lines_of(rows, NOW, {}, [])] == [1, 3, 2, 4]


def test_each_node_knows_what_it_runs_and_what_it_has_code_for() -> None:
    first, second = lines_of([node(1), node(2)], NOW, {2: 7}, [(1, "writer"), (1, "critic"), (1, "writer")])
    assert (first.running, first.agents) == (0, ("critic", "writer"))
    assert (second.running, second.agents) == (7, ())


def test_only_limits_that_the_settings_name_can_drift() -> None:
    limits = limits_of({"llm": 3, "gpu": 1}, {"llm": 9, "cpu": 2}, {"gpu": 1})
    assert [(one.pool, one.units, one.said, one.held, one.drifts) for one in limits] == [
        ("cpu", None, 2, 0, True), ("gpu", 1, None, 1, False), ("llm", 3, 9, 0, True),
    ]  # fmt: skip


def test_versions_are_those_of_nodes_that_have_not_ended() -> None:
    rows = [node(1, version="1"), node(2, version="2", expires=-1), node(3, version="3", ended=1)]
    assert Cluster(lines_of(rows, NOW, {}, []), (), NOW).versions == {"1": 1, "2": 1}
