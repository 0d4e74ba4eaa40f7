"""The raw cost of the product's own rows: its statements, recorded once with their values, replayed through apsw alone."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

import apsw

from paceline.clock import SystemClock, measure_offset
from paceline.core.submission import Terms, Wish
from paceline.store.dialect import SQLITE
from paceline.store.driver import Bindings, Row
from paceline.store.migrate import migrate
from paceline.store.sql import Store
from paceline.store.sqlite import SqliteConnection
from paceline.store.statements import Statements
from paceline.store.tx import Tx
from paceline.units.submit import submit

T = TypeVar("T")
START = 1_700_000_000_000_000
NODE = 1


class Said(NamedTuple):
    """One statement with its values; `many` means once per set of values."""

    sql: str
    values: Bindings | list[Bindings]
    many: bool


Commit = list[Said]


class Tape:
    """A driver on a database in memory that remembers every statement, one list per transaction."""

    def __init__(self) -> None:
        self._connection = SqliteConnection(None)
        migrate(self._connection, SQLITE)
        self.tx = Tx(self, Statements(SQLITE))
        self.tx.now = START
        self._said: Commit = []
        self.agent = 0
        self.preamble = self.record(self._register)[1]

    def record(self, unit: Callable[[Tx], T]) -> tuple[T, Commit]:
        """Carries out one unit of work; answers its value and what it said to the database."""
        self._said = []
        self.tx.now += 1_000
        self._connection.begin()
        self.tx.events.begin()
        value = unit(self.tx)
        self.tx.events.flush()
        self._connection.commit()
        return value, self._said

    def close(self) -> None:
        """Forgets the database in memory; what was recorded stays."""
        self._connection.close()

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        self._said.append(Said(sql, bindings, many=False))
        return self._connection.rows(sql, bindings)

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        self._said.append(Said(sql, bindings, many=False))
        return self._connection.write(sql, bindings)

    def write_many(self, sql: str, bindings: Iterable[Bindings]) -> None:
        """Runs one statement once per set of values."""
        values = list(bindings)
        self._said.append(Said(sql, values, many=True))
        self._connection.write_many(sql, values)

    def _register(self, tx: Tx) -> None:
        self.agent = tx.lanes.register("noop", "raw", "{}", None)
        tx.nodes.add("raw", "raw", "raw", 1, tx.now, tx.now)
        tx.lanes.lane(1, 50, tx.lanes.tenant("default"), self.agent)


class Lifecycle(NamedTuple):
    """Recorded commits; the preamble fills the small tables and is not measured."""

    preamble: Commit
    submits: list[Commit]
    runs: list[Commit]


def lifecycle(jobs: int, batch: int) -> Lifecycle:
    """Insert, claim and complete, with input, result and an event each: three commits per batch."""
    tape = Tape()
    wishes = [Wish(Terms(tape.agent), str(number)) for number in range(jobs)]
    chunks = [wishes[start : start + batch] for start in range(0, jobs, batch)]
    submits, runs = [], []
    ids: list[list[int]] = []
    for chunk in chunks:
        made, said = tape.record(lambda tx, some=chunk: submit(tx, some))
        ids.append(made)
        submits.append(said)
    for made in ids:
        runs += claim_and_complete(tape, made)
    tape.close()
    return Lifecycle(tape.preamble, submits, runs)


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
        Store(path, SystemClock(measure_offset())).close()
        self._db = apsw.Connection(str(path), statementcachesize=256)
        self._db.pragma("synchronous", "full")
        self._db.pragma("cache_size", -65_536)
        self._db.wal_autocheckpoint(1_000)
        self.commit(preamble)

    def commit(self, statements: Commit) -> None:
        """One transaction, synced."""
        db = self._db
        db.execute("begin immediate")
        for sql, values, many in statements:
            if many:
                db.executemany(sql, values)
            else:
                db.execute(sql, values).fetchall()
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
