"""What the client's tests share: a store in memory with an agent, a node and a clock of its own."""

from collections.abc import Iterator

import pytest

from paceline.store.doors import sqlite_store
from paceline.testing.clock import ManualClock
from store.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """Lawful to the end."""
    clock = ManualClock()
    store = sqlite_store(None, clock)
    made = World(store, clock)
    yield made
    assert made.broken() == []
    store.close()
