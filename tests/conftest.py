"""What holds for every test: properties ignore the clock, a public run tries the same examples each time, and no test
leaves agents behind for others."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from paceline.agents.registry import registry

settings.register_profile(
    "paceline",
    deadline=None,
    max_examples=100,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("paceline")


@pytest.fixture(autouse=True, scope="module")
def registered_agents() -> Iterator[None]:
    """Agents that a module's tests declare are forgotten with it; those declared on import stay."""
    before = dict(registry._agents)
    yield
    registry._agents.clear()
    registry._agents.update(before)
