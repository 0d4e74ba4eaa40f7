"""`paceline nodes`: who works on the store, whether all agree, and what to do when nobody does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Enter
from cli.scenes import HOSTILE, after_looks, assert_harmless
from paceline.config import current
from paceline.core.model import SECOND
from paceline.opening import open_store
from paceline.testing.clock import ManualClock
from paceline.units.reap import end_node
from store.world import World


@pytest.fixture
def world(anywhere: str, folder: Path) -> Iterator[World]:
    """A store with a node `n1` that serves the agent `worker`, in each kind of database."""
    opened = open_store(current())
    yield World(opened.store, ManualClock())
    opened.store.close()


def test_a_store_without_nodes_says_what_to_do(anywhere: str, enter: Enter) -> None:
    assert enter("init").code == 0
    typed = enter("nodes")
    assert (typed.code, typed.out) == (0, "")
    assert "paceline up --app FILE" in typed.err
    assert json.loads(enter("nodes", "-o", "json").out) == {"nodes": [], "versions": {}, "limits": {}}


def test_a_live_node_is_shown_with_its_load_its_agents_and_its_lease(world: World, enter: Enter) -> None:
    world.running()
    typed = enter("nodes")
    assert (typed.code, typed.err) == (0, "")
    head, line, total = typed.out.splitlines()
    assert head.split() == ["ID", "NAME", "HOST", "VERSION", "STATE", "LOAD", "AGENTS", "SINCE", "BEAT", "LEASE"]
    assert line.split()[:6] == ["1", "n1", "1", "live", "1/10", "worker"]
    assert total == "1 node live; 1 of 10 slots in use"


def test_a_program_reads_the_same(world: World, enter: Enter) -> None:
    said = json.loads(enter("nodes", "-o", "json").out)
    assert said["versions"] == {"1": 1}
    node = said["nodes"][0]
    assert {name: node[name] for name in ("id", "name", "host", "state", "running", "slots", "agents")} == {
        "id": 1, "name": "n1", "host": None, "state": "live", "running": 0, "slots": 10, "agents": ["worker"],
    }  # fmt: skip
    assert node["expires_at"] > node["beat_at"]


def test_a_node_whose_lease_ran_out_is_silent_until_it_is_ended(world: World, enter: Enter) -> None:
    world.do(lambda tx: tx.nodes.beat(world.node, tx.now, tx.now - SECOND))
    assert json.loads(enter("nodes", "-o", "json").out)["nodes"][0]["state"] == "silent"
    assert "0 nodes live; 1 silent" in enter("nodes").out
    world.do(lambda tx: end_node(tx, world.node, "lease_expired"))
    assert json.loads(enter("nodes", "-o", "json").out)["nodes"] == []
    ended = json.loads(enter("nodes", "--all", "-o", "json").out)["nodes"][0]
    assert (ended["state"], ended["ending"]) == ("ended", "lease_expired")
    assert "lease expired" in enter("nodes", "-a").out


def test_only_so_many_ended_nodes_are_listed_the_last_first(world: World, enter: Enter) -> None:
    for _ in range(3):
        world.do(lambda tx: end_node(tx, world.node, "stopped"))
        world.renew_node()
    seen = json.loads(enter("nodes", "--all", "-n", "2", "-o", "json").out)["nodes"]
    assert [node["id"] for node in seen] == [4, 3, 2]
    assert enter("nodes", "-n", "0").code == 2


def test_versions_and_limits_that_differ_are_said(world: World, enter: Enter, folder: Path) -> None:
    world.do(lambda tx: tx.nodes.add("n2", "p2", "2", 5, tx.now, tx.now + SECOND * 60))
    world.do(lambda tx: tx.pools.seed({"llm": 3}))
    (folder / "paceline.toml").write_text("[limits]\nllm = 9\n")
    typed = enter("nodes")
    assert "2 nodes live; 0 of 15 slots in use; versions differ: 1 × 1, 2 × 1" in typed.out
    assert "llm 3 (settings: 9)" in typed.err
    assert json.loads(enter("nodes", "-o", "json").out)["limits"]["llm"]["drift"] is True


def test_names_of_nodes_and_agents_do_nothing_to_a_terminal(world: World, enter: Enter) -> None:
    world.do(lambda tx: tx.nodes.add(HOSTILE, "p", HOSTILE, 1, tx.now, tx.now + SECOND * 60))
    agent = world.do(lambda tx: tx.lanes.register(HOSTILE, "tests", "d", None))
    world.do(lambda tx: tx.nodes.serve(world.node, [agent]))
    assert_harmless(enter("nodes").out)
    assert_harmless(enter("nodes", "-o", "json").out)


def test_watching_looks_again_until_it_is_interrupted(
    world: World, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_looks(monkeypatch, "paceline.cli.nodes", world.running)
    typed = enter("nodes", "--watch")
    assert typed.code == 130
    assert [line for line in typed.out.splitlines() if "slots" in line] == [
        "1 node live; 0 of 10 slots in use",
        "1 node live; 1 of 10 slots in use",
    ]


def test_without_a_store_nothing_is_made(anywhere: str, enter: Enter, folder: Path) -> None:
    typed = enter("nodes")
    assert (typed.code, typed.out) == (2, "")
    assert "no_store" in typed.err
    assert list(folder.iterdir()) == []
