"""A database whose channels the tests of this folder use."""

import secrets
from collections.abc import Iterator

import pytest

from postgres_server import fresh_database


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of a database that the tests of one module share."""
    with fresh_database() as url:
        yield url


@pytest.fixture
def channel() -> str:
    """A channel on which nobody else speaks."""
    return f"channel_{secrets.token_hex(4)}"
