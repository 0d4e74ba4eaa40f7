"""The worlds of the store's suite."""

from store.conftest import clock, database, store, world

__all__ = ["clock", "database", "store", "world"]
