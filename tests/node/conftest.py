"""One node over a store in memory; after every test the tables must still agree with each other."""

from collections.abc import Iterator

import pytest

from node.stage import Bench
from paceline.agents.registry import registry
from paceline.store.doors import sqlite_store
from paceline.testing.clock import ManualClock
from store.world import World


@pytest.fixture
def clock() -> ManualClock:
    """Moves only when told to."""
    return ManualClock()


@pytest.fixture
def world(clock: ManualClock) -> Iterator[World]:
    """A store with an agent, lawful to the end."""
    store = sqlite_store(None, clock)
    made = World(store, clock)
    yield made
    assert made.broken() == []
    store.close()


@pytest.fixture(autouse=True)
def own_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined in a test is forgotten after it."""
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))


@pytest.fixture
def bench(world: World) -> Bench:
    """A node that has begun its life, with ten slots."""
    return Bench(world)
