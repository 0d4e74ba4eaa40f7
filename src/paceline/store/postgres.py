"""Postgres as the product uses it: nothing is left in a session, and every commit can be proven afterwards."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import psycopg
from psycopg import pq
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from paceline.clock import Clock
from paceline.errors import StoreError
from paceline.store.connection import TryAgain
from paceline.store.driver import Bindings, Numbered, Row, Value, as_list
from paceline.store.postgres_place import Place
from paceline.store.postgres_trouble import UNREACHABLE, complaint, explain, meaning_of, said
from paceline.store.trouble import CLOSED, newer

APPLICATION = "paceline"
PATIENCE = 30.0
"""How long a transaction waits for a server that is away."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
MOST_PREPARED = 500
NUMBERS_EACH = 1 << 36
"""Numbers of events that a connection gives without asking: nobody else has any of them."""
LIFE_LOCK, SCHEMA_LOCK = 0x50414C46, 0x50414353
"""The first halves of our advisory locks; the second is the number of a connection, and 0."""

# `set local` and nothing else: behind PgBouncer a session belongs to us for one transaction. Every statement has an
# index made for it; a plan that was made while a table was small must not outlive that. Whoever falls silent in the
# middle of a transaction loses it before those who wait for its rows lose their patience.
_SETTINGS = """
set local search_path to {schema};
set local statement_timeout = 30000; set local lock_timeout = 15000;
set local idle_in_transaction_session_timeout = 10000;
set local plan_cache_mode = force_generic_plan; set local jit = off;
set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off
"""
_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
_KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip

# Whoever holds the lock of our life is an earlier session of this very connection, which nobody speaks to any more.
_END_OLD_SESSION = """
select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and classid = {life}
   and objid = {number} and database = (select oid from pg_database where datname = current_database())
"""

_BINDING = re.compile(r"(?<![:\w]):([a-z_]\w*)")


@cache
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1, $2 …` for its `:names`, and the names in that order."""
    names = tuple(dict.fromkeys(_BINDING.findall(sql)))
    return _BINDING.sub(lambda found: f"${names.index(found[1]) + 1}", sql), names


class PostgresConnection:
    """A driver over one session at a time: a broken one is replaced, and what was under way is begun anew."""

    errors: type[Exception] = psycopg.Error
    savepoints = False

    def __init__(self, place: Place, *, readonly: bool = False) -> None:
        self.place = place
        self.schema: int | None = None
        """The schema this program works with; once it is known, a write finds out when others have changed it."""
        self.closed = False
        self._pid = os.getpid()
        self._readonly = readonly
        self._number = 0
        self._event = 0
        self._marked: int | None = None
        self._db: psycopg.Connection[Row] | None = None
        self._cursor: psycopg.Cursor[Row] | None = None
        mode = " isolation level repeatable read read only" if readonly else ""
        self._beginning = f"begin{mode}; {_SETTINGS.format(schema=place.schema)}"
        try:
            self._connect()
        except psycopg.Error as error:
            raise complaint(meaning_of(error), self.place, said(error)) from None

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        return self._run(sql, bindings).fetchall()

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        return self._run(sql, bindings).rowcount

    def write_many(self, sql: str, bindings: Iterable[Sequence[Value]]) -> None:
        """Runs one statement for all rows at once: each column travels as one list."""
        rows = list(bindings)
        if rows:
            self._run(sql, [as_list(column) for column in zip(*rows, strict=True)])

    def lock(self, sql: str, bindings: Bindings = ()) -> None:
        """Holds the rows that the statement names until this transaction ends."""
        self._run(sql, bindings)

    def reserve(self, table: Numbered, count: int) -> Sequence[int]:
        """New numbers: of events from this connection's own, of jobs from the sequence that all share."""
        if table == "events":
            self._event += count
            return range(self._event - count, self._event)
        sql = "select nextval('jobs_id_seq') from generate_series(1, :count)"
        return sorted(row[0] for row in self.rows(sql, {"count": count}))

    def script(self, sql: str) -> None:
        """Runs several statements."""
        self._execute(sql)

    @property
    def in_transaction(self) -> bool:
        """What was begun is neither committed nor undone, and the session is alive."""
        open_states = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
        return self._db is not None and self._db.info.transaction_status in open_states

    @property
    def forked(self) -> bool:
        """This process is a child of the one that opened the connection."""
        return self._pid != os.getpid()

    def check_usable(self) -> None:
        """Refuses a connection of a parent process, and one that was closed."""
        if self.forked:
            raise StoreError(
                code="store_after_fork", what="a database connection was carried across a fork",
                where=self.place.shown, todo="open the store again in the child",
            )  # fmt: skip
        if self.closed:
            raise complaint(CLOSED, self.place, "")

    def begin(self, clock: Clock) -> int:
        """Begins a writing transaction at the database's own time; waits for a server that is away."""
        now, schema = self._begin(self._beginning_to_write)
        if self.schema is not None and (found := int(schema or 0)) > self.schema:
            raise newer(self.place.shown, found, self.schema)
        return clock.told(now)

    def begin_alone(self) -> None:
        """Begins a transaction in which nobody else changes the schema, whether there is one or not."""
        name = self.place.schema
        self._begin(
            lambda: (
                f"begin; select pg_advisory_xact_lock({SCHEMA_LOCK}, 0); create schema if not exists {name};"
                f"set local search_path to {name}; select 1"
            )
        )

    def read(self, clock: Clock) -> int:
        """Begins a transaction that only reads, at one moment."""
        return clock.told(self._begin(lambda: f"{self._beginning}; select {_NOW}")[0])

    def commit(self, proof: int | None = None) -> None:
        """Makes everything since `begin` durable.

        When the answer is lost, the end of that transaction is waited for and its proof is looked for: the event
        that it wrote, or a mark when it wrote none. What wrote nothing at all needs no proof.
        """
        if proof is None and self._wrote_something():
            proof = self._mark()
        try:
            self._execute("commit")
        except psycopg.Error as error:
            if not self._lost:
                raise
            self._drop()
            if proof is not None and not self._was_committed(proof):
                raise TryAgain(complaint(UNREACHABLE, self.place, said(error)), race=False) from None

    def rollback(self) -> None:
        """Undoes everything since `begin`; a session that cannot even do that is dropped."""
        if self._lost:
            self._drop()
        elif self.in_transaction:
            try:
                self._execute("rollback")
            except psycopg.Error:
                self._drop()

    def savepoint(self) -> None:
        """What follows can be undone by itself."""
        self._execute("savepoint unit")

    def keep(self) -> None:
        """What followed the savepoint stays."""
        self._execute("release unit")

    def undo(self) -> None:
        """What followed the savepoint is undone; with a lost session everything is."""
        with suppress(psycopg.Error):
            self._execute("rollback to unit; release unit")

    def explain(self, error: Exception) -> StoreError | TryAgain:
        """The database's error in the common form, or that another try may go well."""
        return explain(error, self.place, self._lost)

    @property
    def where(self) -> str:
        """Where the store is, for people."""
        return self.place.shown

    def version(self) -> int:
        """The number of the last step applied; 0 when there was none yet."""
        if self.rows("select to_regclass(:name)", {"name": f"{self.place.schema}.meta"})[0][0] is None:
            return 0
        return int(self.rows(f"select value from {self.place.schema}.meta where name = 'schema'")[0][0])

    def applied(self) -> dict[str, str]:
        """The checksums of the steps that were applied, by the name of the fact."""
        return dict(self.rows(f"select name, value from {self.place.schema}.meta where name like 'migration %'"))

    def stamp(self, version: int) -> None:
        """From now on the store has this version."""
        self.write(
            "insert into meta (name, value) values ('schema', :value)"
            " on conflict (name) do update set value = excluded.value", {"value": str(version)},
        )  # fmt: skip

    def back_up(self) -> None:
        """Whoever runs a server has backups of it; a migration is one transaction and happens whole or not at all."""

    def reader(self) -> "PostgresConnection":
        """Another session that only reads."""
        return PostgresConnection(self.place, readonly=True)

    def close(self) -> None:
        """Closes the session; closing twice is fine, and a forked child leaves its parent's alone."""
        if self.forked:
            return
        self.closed = True
        self._drop()

    @property
    def _lost(self) -> bool:
        return self._db is None or self._db.closed

    def _run(self, sql: str, bindings: Bindings) -> psycopg.Cursor[Row]:
        text, names = numbered(sql)
        values = [bindings[name] for name in names] if isinstance(bindings, Mapping) else bindings
        return self._execute(text, [_without_nul(value) for value in values])

    def _execute(self, sql: str, values: Sequence[Value] | None = None) -> psycopg.Cursor[Row]:
        """Everything that is ever said to the server goes through here."""
        if self._cursor is None:
            raise psycopg.OperationalError("the connection is gone")
        try:
            return self._cursor.execute(sql, values)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # it never came from the server: whatever libpq believes, this session is over
                self._drop()
            raise

    def _begin(self, script: Callable[[], str]) -> Row:
        """The last answer of a script that begins a transaction; nothing has happened yet, so it may be said again."""
        self.check_usable()
        until = time.monotonic() + PATIENCE
        for pause in _pauses():
            try:
                if self._lost:
                    self._connect()
                return self._last_answer(script())
            except psycopg.Error as error:
                again = isinstance(explain(error, self.place, self._lost), TryAgain)
                self._drop()
                if not again or self.closed or time.monotonic() > until:
                    raise complaint(meaning_of(error), self.place, said(error)) from None
            time.sleep(pause)
        raise AssertionError("pauses never end")

    def _last_answer(self, script: str) -> Row:
        cursor = self._execute(script)
        while cursor.nextset():
            pass
        return cursor.fetchall()[0]

    def _beginning_to_write(self) -> str:
        if not self._number:
            self._number = self._last_answer(f"select nextval('{self.place.schema}.connections')")[0]
            self._event = self._number * NUMBERS_EACH
        life = f"select pg_advisory_xact_lock({LIFE_LOCK}, {self._number})"
        return f"{self._beginning}; {life}; select {_NOW}, (select value from meta where name = 'schema')"

    def _wrote_something(self) -> bool:
        return bool(self._execute("select pg_current_xact_id_if_assigned() is not null").fetchall()[0][0])

    def _mark(self) -> int:
        """A proof for a transaction that wrote no event; the last one is not needed any more."""
        mark, old = self.reserve("events", 1)[0], self._marked
        self.write("with old as (delete from marks where id = :old) insert into marks (id) values (:mark)",
                   {"old": old, "mark": mark})  # fmt: skip
        self._marked = mark
        return mark

    def _was_committed(self, proof: int) -> bool:
        """Waits until the transaction whose session is lost has ended, and looks for what it has left."""
        question = "select exists (select from events where id = :it) or exists (select from marks where id = :it)"
        self._begin(self._beginning_to_write)
        try:
            return bool(self.rows(question, {"it": proof})[0][0])
        finally:
            self.rollback()

    def _connect(self) -> None:
        db = psycopg.connect(
            self.place.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor, application_name=APPLICATION,
            **_KEEPALIVE,
        )  # fmt: skip
        db.prepare_threshold = 1 if self.place.prepare else None
        db.prepared_max = MOST_PREPARED
        db.adapters.register_dumper(int, Int8Dumper)
        db.adapters.register_dumper(str, StrDumper)
        self._db, self._cursor = db, db.cursor()
        if self._number:
            self._execute(_END_OLD_SESSION.format(life=LIFE_LOCK, number=self._number))

    def _drop(self) -> None:
        if self._db is not None:
            with suppress(psycopg.Error):
                self._db.close()
        self._db = self._cursor = None


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def _without_nul(value: Value) -> Value:
    """Postgres keeps every character but this one."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
