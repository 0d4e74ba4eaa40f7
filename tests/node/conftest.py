"""One node over each database; after every test the tables must still agree with each other."""

import pytest

from node.stage import Bench
from paceline.agents.registry import registry
from store.conftest import clock, database, store, world
from store.world import World

__all__ = ["bench", "clock", "database", "own_agents", "store", "world"]


@pytest.fixture(autouse=True)
def own_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined in a test is forgotten after it."""
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))


@pytest.fixture
def bench(world: World) -> Bench:
    """A node that has begun its life, with ten slots."""
    return Bench(world)
