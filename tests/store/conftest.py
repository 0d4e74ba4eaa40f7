"""Stores and worlds; after every test the tables must still agree with each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from store.stores import DATABASES, Database
from store.world import World


@pytest.fixture
def clock() -> ManualClock:
    """Moves only when told to."""
    return ManualClock()


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest) -> Database:
    """Each database in turn."""
    return DATABASES[request.param]


@pytest.fixture(params=[name for name, database in DATABASES.items() if database.shared])
def shared(request: pytest.FixtureRequest) -> Database:
    """Each database that two connections can share."""
    return DATABASES[request.param]


@pytest.fixture
def store(database: Database, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    """An empty store."""
    opened = database.open(tmp_path, clock)
    yield opened
    opened.close()


@pytest.fixture
def world(store: Store, clock: ManualClock) -> Iterator[World]:
    """A store with an agent and a node, lawful to the end."""
    made = World(store, clock)
    yield made
    assert store._connection.closed or made.broken() == []


@pytest.fixture
def pair(shared: Database, tmp_path: Path, clock: ManualClock) -> Iterator[tuple[World, World]]:
    """Two worlds over one store, each with a connection and a node of its own."""
    stores = [shared.open(tmp_path, clock) for _ in range(2)]
    one, other = (World(store, clock) for store in stores)
    yield one, other
    assert one.broken() == []
    for store in stores:
        store.close()
