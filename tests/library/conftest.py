"""The library over each database."""

from pathlib import Path

import pytest

from store.conftest import database
from store.stores import Database

__all__ = ["database", "url"]


@pytest.fixture
def url(database: Database, tmp_path: Path) -> str:
    """An empty store, as a program names it."""
    return database.url(tmp_path)
