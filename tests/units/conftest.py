"""A store in memory; after every test the tables must still agree with each other."""

from collections.abc import Iterator

import pytest

from paceline.store.doors import sqlite_store
from paceline.testing.clock import ManualClock
from store.world import World


@pytest.fixture
def clock() -> ManualClock:
    """Moves only when told to."""
    return ManualClock()


@pytest.fixture
def world(clock: ManualClock) -> Iterator[World]:
    """A store with an agent and a node, lawful to the end."""
    store = sqlite_store(None, clock)
    made = World(store, clock)
    yield made
    assert made.broken() == []
    store.close()
