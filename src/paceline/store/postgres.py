"""Postgres as the product uses it: nothing is left in a session, and every commit can be proven afterwards."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import psycopg

from paceline.clock import Clock
from paceline.errors import StoreError
from paceline.store.connection import TryAgain
from paceline.store.driver import Bindings, Numbered, Row, Value, as_list
from paceline.store.postgres_place import Place
from paceline.store.postgres_session import Session, bound, for_one_row
from paceline.store.postgres_trouble import UNREACHABLE, complaint, ends_session, explain, meaning_of, said
from paceline.store.trouble import CLOSED, carried, newer

PATIENCE = 30.0
"""How long a transaction waits for a server that is away."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
NUMBERS_EACH = 1 << 36
"""Numbers of events that a connection gives without asking: nobody else has any of them."""
LIFE_LOCK, SCHEMA_LOCK = 0x50414C46, 0x50414353
"""The first halves of our advisory locks; the second is the number of a connection, and 0."""

FEW_ROWS = 3
"""Up to so many rows are inserted one by one: taking lists apart costs a statement more than they do."""

# Settings of one transaction and nothing else: behind PgBouncer a session belongs to us for no longer. Every statement
# has an index made for it; a plan that was made while a table was small must not outlive that. Whoever falls silent in
# the middle of a transaction loses it before those who wait for its rows lose their patience, and so does a host that
# is gone without a word.
_SETTINGS = {
    "statement_timeout": "30000", "lock_timeout": "15000", "idle_in_transaction_session_timeout": "10000",
    "plan_cache_mode": "force_generic_plan", "jit": "off",
    "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
    "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
}  # fmt: skip
TRANSACTIONS_END = 170_000
"""From this version on the server ends a transaction that takes too long as a whole."""
_LONGEST_TRANSACTION = "30000"
# A migration may take its time, but neither sleep nor wait for ever with everything locked.
_WHOEVER_FALLS_SILENT = (
    "set_config('idle_in_transaction_session_timeout', '60000', true), set_config('lock_timeout', '60000', true)"
)
BEGIN = "begin isolation level read committed"
"""Whatever the server's default: a question asked behind a guard must see what was committed before it was held."""
_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"

# Whoever holds the lock of our life is an earlier session of this very connection, which nobody speaks to any more.
_END_OLD_SESSION = """
select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and classid = {life}
   and objid = {number} and database = (select oid from pg_database where datname = current_database())
"""


class PostgresConnection:
    """A driver over one session at a time: a broken one is replaced, and what was under way is begun anew."""

    errors: type[Exception] = psycopg.Error
    savepoints = near = False

    def __init__(self, place: Place, *, readonly: bool = False) -> None:
        self.place = place
        self.schema: int | None = None
        """The schema this program works with; once it is known, a write finds out when others have changed it."""
        self.closed = False
        self._hurried = False
        self._pid = os.getpid()
        self._readonly = readonly
        self._number = 0
        self._event = 0
        self._session: Session | None = None
        self._beginning = "begin isolation level repeatable read read only" if readonly else BEGIN
        self._settings = ""
        try:
            self._connect()
        except psycopg.Error as error:
            raise complaint(meaning_of(error), self.place, said(error)) from None

    def rows(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """All rows of one statement."""
        return self._alive().rows(*bound(sql, bindings))

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement and tells how many rows it changed."""
        return self._alive().count(*bound(sql, bindings))

    def write_many(self, sql: str, bindings: Iterable[Sequence[Value]]) -> None:
        """Inserts a few rows one by one, or all at once: then each column travels as one list."""
        rows = list(bindings)
        if 0 < len(rows) <= FEW_ROWS:
            for row in rows:
                self._alive().send(*bound(for_one_row(sql, len(row)), row))
        elif rows:
            self._alive().send(*bound(sql, [as_list(column) for column in zip(*rows, strict=True)]))

    def lock(self, sql: str, bindings: Bindings = (), *, ending: bool = False) -> None:
        """Holds the rows that the statement names until this transaction ends."""
        session = self._alive()
        session.send(*bound(sql, bindings))
        if not ending:
            session.wait()

    def reserve(self, table: Numbered, count: int) -> Sequence[int]:
        """New numbers: of events from this connection's own, of jobs from the sequence that all share."""
        if table == "events":
            self._event += count
            return range(self._event - count, self._event)
        sql = "select nextval('jobs_id_seq') from generate_series(1, :count)"
        return sorted(row[0] for row in self.rows(sql, {"count": count}))

    def script(self, sql: str) -> None:
        """Runs several statements, one after the other."""
        code = "\n".join(line for line in sql.splitlines() if not line.lstrip().startswith("--"))
        for statement in code.split(";"):
            if statement.strip():
                self._alive().control(statement)
        self._alive().wait()

    @property
    def in_transaction(self) -> bool:
        """What was begun is neither committed nor undone, and the session is alive."""
        return self._session is not None and self._session.in_transaction

    @property
    def forked(self) -> bool:
        """This process is a child of the one that opened the connection."""
        return self._pid != os.getpid()

    def check_usable(self) -> None:
        """Refuses a connection of a parent process, and one that was closed."""
        if self.forked:
            raise carried(self.where)
        if self.closed:
            raise complaint(CLOSED, self.place, "")

    def begin(self, clock: Clock) -> int:
        """Begins a writing transaction at the database's own time; waits for a server that is away."""
        now, schema, *_ = self._begin(self._begin_to_write)
        if self.schema is not None and (found := int(schema or 0)) > self.schema:
            raise newer(self.place.shown, found, self.schema)
        return clock.told(now)

    def begin_alone(self) -> None:
        """Begins a transaction in which nobody else changes the schema, whether there is one or not."""
        name = self.place.schema

        def begin() -> Row:
            self._alive().control(BEGIN)
            self._alive().control(f"select {_WHOEVER_FALLS_SILENT}")
            self._alive().control(f"select pg_advisory_xact_lock({SCHEMA_LOCK}, 0)")
            # Who may not make a schema may have been given one.
            if self.rows("select to_regnamespace(:name)", {"name": name})[0][0] is None:
                self._alive().control(f"create schema if not exists {name}")
            return self.rows(f"select set_config('search_path', '{name}', true)")[0]

        self._begin(begin)

    def read(self, clock: Clock) -> int:
        """Begins a transaction that only reads, at one moment."""

        def begin() -> Row:
            self._alive().control(self._beginning)
            return self.rows(f"select {_NOW}, {self._settings}")[0]

        return clock.told(self._begin(begin)[0])

    def commit(self, proof: int | None = None) -> None:
        """Makes everything since `begin` durable.

        When the answer is lost, the end of that transaction is waited for and its proof is looked for: the event
        that it wrote, or a mark when it wrote none. What wrote nothing at all needs no proof.
        """
        if proof is None and self._wrote_something():
            proof = self._mark()
        try:
            session = self._alive()
            session.control("commit")
            if session.wait() != "COMMIT":  # a failed transaction is undone by its commit, without an error
                raise psycopg.errors.InFailedSqlTransaction("the transaction had failed before its commit")
        except psycopg.Error as error:
            # The server may say that it ends the session when the commit has happened already.
            if not (self._lost or ends_session(error)):
                raise
            self._drop()
            if proof is not None and not self._was_committed(proof):
                raise TryAgain(complaint(UNREACHABLE, self.place, said(error)), race=False) from None
        self._drop_soiled()

    def rollback(self) -> None:
        """Undoes everything since `begin`; where a statement has failed, by ending the session."""
        self._drop_soiled()
        if self._session is not None:
            try:
                # Who only reads has nothing to undo, and a rollback makes psycopg forget all prepared statements.
                self._session.control("commit" if self._readonly else "rollback")
                self._session.wait()
            except psycopg.Error:
                self._drop()

    def savepoint(self) -> None:
        """What follows can be undone by itself."""
        self._alive().control("savepoint unit")

    def keep(self) -> None:
        """What followed the savepoint stays; what was wrong with it is said now."""
        self._alive().control("release unit")
        self._alive().wait()

    def undo(self) -> None:
        """What followed the savepoint is undone; with a lost session everything is."""
        with suppress(psycopg.Error):
            session = self._alive()
            session.settle()
            session.control("rollback to unit")
            session.control("release unit")
            session.wait()

    def explain(self, error: Exception) -> StoreError | TryAgain:
        """The database's error in the common form, or that another try may go well."""
        return explain(error, self.place, self._lost)

    @property
    def backend(self) -> int:
        """The process that the server, or who stands before it, says it is talking to us with."""
        return self._alive().backend

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

    def hurry(self) -> None:
        """From any thread: who waits for a server that is away waits no longer."""
        self._hurried = True

    def close(self) -> None:
        """Closes the session; closing twice is fine, and a forked child leaves its parent's alone."""
        if self.forked:
            return
        self.closed = True
        self._drop()

    @property
    def _lost(self) -> bool:
        return self._session is None or self._session.lost

    def _alive(self) -> Session:
        """Everything that is said to the server asks for the session first."""
        if self._session is None:
            raise psycopg.OperationalError("the connection is gone")
        return self._session

    def _begin(self, begin: Callable[[], Row]) -> Row:
        """The answer of what begins a transaction; nothing has happened yet, so it may be said again."""
        self.check_usable()
        until = time.monotonic() + PATIENCE
        for pause in _pauses():
            try:
                if self._lost:
                    self._connect()
                return begin()
            except psycopg.Error as error:
                again = isinstance(explain(error, self.place, self._lost), TryAgain)
                self._drop()
                if not again or self._hurried or time.monotonic() > until:
                    raise complaint(meaning_of(error), self.place, said(error)) from None
            time.sleep(pause)
        raise AssertionError("pauses never end")

    def _begin_to_write(self) -> Row:
        self._take_number()
        self._alive().control(self._beginning)
        schema = f"(select value from {self.place.schema}.meta where name = 'schema')"
        life = f"pg_advisory_xact_lock({LIFE_LOCK}, {self._number})"
        return self.rows(f"select {_NOW}, {schema}, {life}, {self._settings}")[0]

    def _take_number(self) -> None:
        """Once, and never again by anybody else."""
        if not self._number:
            self._number = self.rows(f"select nextval('{self.place.schema}.connections')")[0][0]
            self._event = self._number * NUMBERS_EACH

    def _wrote_something(self) -> bool:
        return bool(self.rows("select pg_current_xact_id_if_assigned() is not null")[0][0])

    def _mark(self) -> int:
        """A proof for a transaction that wrote no event; those that nobody can be in doubt of any more go."""
        self._take_number()
        mark = self.reserve("events", 1)[0]
        session = self._alive()
        session.send(
            "delete from marks where id in"
            " (select id from marks where at < now() - interval '10 minutes' for update skip locked)"
        )
        session.send("insert into marks (id) values ($1)", [mark])
        return mark

    def _was_committed(self, proof: int) -> bool:
        """Waits until the transaction whose session is lost has ended, and looks for what it has left."""
        question = "select exists (select from events where id = :it) or exists (select from marks where id = :it)"
        self._begin(self._begin_to_write)
        try:
            return bool(self.rows(question, {"it": proof})[0][0])
        finally:
            self.rollback()

    def _connect(self) -> None:
        self._session = session = Session(self.place)
        settings = {"search_path": self.place.schema, **_SETTINGS}
        if session.server >= TRANSACTIONS_END:
            settings["transaction_timeout"] = _LONGEST_TRANSACTION
        self._settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        if self._number:
            self.rows(_END_OLD_SESSION.format(life=LIFE_LOCK, number=self._number))

    def _drop_soiled(self) -> None:
        if self._session is not None and (self._session.soiled or self._session.lost):
            self._drop()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
