"""The raw cost of the product's own rows: its statements and values, recorded once, replayed by a driver alone."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import apsw
import psycopg
from psycopg.types.string import StrDumperUnknown

from paceline import Paceline
from paceline.clock import DatabaseClock, SystemClock, measure_offset
from paceline.core.submission import Terms, Wish
from paceline.store.doors import postgres_store, sqlite_store
from paceline.store.postgres import _SETTINGS, PostgresConnection
from paceline.store.postgres_place import names_postgres, place_of
from paceline.store.postgres_session import MOST_PREPARED, _Whole
from paceline.store.sql import Store
from paceline.store.tx import Tx
from paceline.units.submit import submit

T = TypeVar("T")
NODE = 1
TRANSACTION_WORDS = ("begin", "commit", "rollback", "savepoint", "release", "pragma")


class Said(NamedTuple):
    """One statement, run once per set of values."""

    sql: str
    values: list[Any]


Commit = list[Said]


class Tape:
    """A store in memory, or an empty one on Postgres, whose every statement is remembered, a list per unit of work."""

    def __init__(self, url: str = "") -> None:
        self._said: Commit = []
        self._store = self._on_postgres(url) if names_postgres(url) else self._in_memory()
        self.agent, self.preamble = self.record(_register)

    def record(self, unit: Callable[[Tx], T]) -> tuple[T, Commit]:
        """Carries out one unit of work; answers its value and what it said to the database."""
        self._said = []
        return self._store.execute(unit), self._said

    def close(self) -> None:
        """Forgets the database in memory; what was recorded stays."""
        self._store.close()

    def _in_memory(self) -> Store:
        apsw.connection_hooks.append(self._listen)
        try:
            return sqlite_store(None, SystemClock(measure_offset()))
        finally:
            apsw.connection_hooks.remove(self._listen)

    def _on_postgres(self, url: str) -> Store:
        store = postgres_store(place_of(url), DatabaseClock(measure_offset()))
        session = cast(PostgresConnection, store._connection)._alive()
        for name in ("rows", "count", "send"):
            vars(session)[name] = self._heard(getattr(session, name))
        return store

    def _heard(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def heard(sql: str, values: Any = None, **more: Any) -> Any:
            if values:  # begin, commit and what they need come without any
                self._said.append(Said(sql, [values]))
            return plain(sql, values, **more)

        return heard

    def _listen(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._hear

    def _hear(self, _: apsw.Cursor, sql: str, values: Any) -> bool:
        """One run of one statement; runs of the same text one after the other become one."""
        if sql.split(maxsplit=1)[0].lower() not in TRANSACTION_WORDS:
            if self._said and self._said[-1].sql == sql:
                self._said[-1].values.append(values)
            else:
                self._said.append(Said(sql, [values]))
        return True


def _register(tx: Tx) -> int:
    agent = tx.lanes.register("noop", "raw", "{}", None)
    tx.nodes.add("raw", "raw", "raw", 1, tx.now, tx.now)
    tx.lanes.lane(1, 50, tx.lanes.tenant("default"), agent)
    return agent


class Lifecycle(NamedTuple):
    """Recorded commits; the preamble fills the small tables and is not measured."""

    preamble: Commit
    submits: list[Commit]
    runs: list[Commit]


def lifecycle(jobs: int, batch: int, url: str = "") -> Lifecycle:
    """Insert, claim and complete, with input, result and an event each: three commits per batch."""
    tape = Tape(url)
    wishes = [Wish(Terms(tape.agent), str(number)) for number in range(jobs)]
    chunks = [wishes[start : start + batch] for start in range(0, jobs, batch)]
    submits, runs = [], []
    ids: list[list[int]] = []
    for chunk in chunks:
        made, said = tape.record(partial(submit, wishes=chunk, check_room=no_bound))
        ids.append(made)
        submits.append(said)
    for made in ids:
        runs += claim_and_complete(tape, made)
    tape.close()
    return Lifecycle(tape.preamble, submits, runs)


def no_bound(_: Tx, __: int) -> None:
    """Nobody asks here whether the queue is full."""


def claim_and_complete(tape: Tape, ids: list[int]) -> list[Commit]:
    """Two commits: these jobs are claimed, with their inputs read; then they complete with a result."""
    claimed, claim = tape.record(lambda tx: claim_now(tx, ids, NODE))
    _, complete = tape.record(lambda tx: tx.jobs.complete([(job, epoch, "null") for job, epoch in claimed], tx.now))
    return [claim, complete]


def claim_now(tx: Tx, ids: list[int], node: int) -> list[tuple[int, int]]:
    """Claims ready jobs as a dispatcher does once it has chosen: (job, epoch)."""
    ready = tx.jobs.lock_ready(ids)
    return [(job.id, job.epoch) for job in tx.jobs.claim([job for job in ids if job in ready], node, tx.now)]


class Raw:
    """A fresh database file with the product's schema and settings, and nothing of the product between it and us."""

    def __init__(self, path: Path, preamble: Commit) -> None:
        sqlite_store(path, SystemClock(measure_offset())).close()
        self._db = apsw.Connection(str(path), statementcachesize=256)
        self._db.pragma("synchronous", "full")
        self._db.pragma("cache_size", -65_536)
        self._db.wal_autocheckpoint(1_000)
        self.commit(preamble)

    def commit(self, statements: Commit) -> None:
        """One transaction, synced."""
        db = self._db
        db.execute("begin immediate")
        for sql, values in statements:
            db.executemany(sql, values).fetchall()
        db.execute("commit")

    def seconds(self, commits: Iterable[Commit]) -> float:
        """How long these transactions take one after the other."""
        started = time.perf_counter()
        for statements in commits:
            self.commit(statements)
        return time.perf_counter() - started

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


class PostgresRaw(Raw):
    """The same through psycopg: a fresh database with the product's schema and the settings of its sessions."""

    def __init__(self, url: str, preamble: Commit) -> None:
        place = place_of(url)
        postgres_store(place, DatabaseClock(measure_offset())).close()
        self._session = psycopg.connect(place.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor)
        self._session.prepare_threshold = 1
        self._session.prepared_max = MOST_PREPARED
        self._session.adapters.register_dumper(int, _Whole)
        self._session.adapters.register_dumper(str, StrDumperUnknown)
        for name, value in {"search_path": place.schema, **_SETTINGS}.items():
            self._session.execute(f"set {name} = {value}")
        self.commit(preamble)

    def commit(self, statements: Commit) -> None:
        """One transaction, synced by the server; nothing is waited for but its end."""
        with self._session.pipeline():
            cursor = self._session.cursor()
            cursor.execute("begin")
            for sql, values in statements:
                for some in values:
                    cursor.execute(sql, some)
            cursor.execute("commit")

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def raw_of(url: str, preamble: Commit) -> Raw:
    """A fresh database of the kind that the URL names."""
    if names_postgres(url):
        return PostgresRaw(url, preamble)
    return Raw(Path(url.removeprefix("sqlite:///")), preamble)


def commits_of(pl: Paceline) -> int:
    """How many commits this program's writer has made."""
    return cast(Store, pl.client.store).commits
