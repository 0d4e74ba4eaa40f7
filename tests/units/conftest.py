"""The worlds of the store's suite, over each database; after every test the tables must still agree with each other."""

from store.conftest import clock, database, store, world

__all__ = ["clock", "database", "store", "world"]
