"""The care of a store on Postgres: what the server says, what is in the store, which migrations it lacks.

The rest is the care of whoever runs the server: its pages are its own affair, its copies those of pg_dump.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from paceline.clock import DatabaseClock
from paceline.errors import UsageError
from paceline.store.dialect import POSTGRES
from paceline.store.doors import postgres_connection, refuse_server, said_plainly
from paceline.store.driver import Row
from paceline.store.maintenance import Migration, Plan, Report, broken_laws, planned
from paceline.store.migrate import migrate as apply
from paceline.store.migrate import newest, pending
from paceline.store.places import no_store
from paceline.store.postgres_place import Place
from paceline.store.statements import Statements

if TYPE_CHECKING:
    from paceline.store.postgres import PostgresConnection

LONG = 60_000_000
"""A transaction that has been open for so long keeps the server from clearing up behind everybody."""

_SIZE = """
select coalesce(cast(sum(pg_total_relation_size(oid)) as bigint), 0) from pg_class
 where relkind = 'r' and relnamespace = to_regnamespace(:schema)
"""
_SERVER = """
select current_setting('server_version'), current_setting('server_version_num')::int / 10000,
       current_setting('server_encoding'), pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
       current_setting('default_transaction_isolation'), current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
       current_setting('autovacuum') = 'on',
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend'),
       current_setting('max_connections')::int, current_user, pg_backend_pid(),
       (extract(epoch from clock_timestamp()) * 1000000)::bigint
"""
_RIGHTS = """
select n.oid is not null,
       n.oid is null or has_schema_privilege(n.oid, 'usage'),
       n.oid is null or has_schema_privilege(n.oid, 'create'),
       has_database_privilege(current_database(), 'create'),
       coalesce((select bool_and(has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                                 and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
                   from pg_class c where c.relkind = 'r' and c.relnamespace = n.oid), true)
  from (select to_regnamespace(:schema)::oid as oid) n
"""
_OPEN = """
select pid, coalesce(application_name, ''), coalesce(state, ''),
       (extract(epoch from clock_timestamp() - xact_start) * 1000000)::bigint
  from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
   and xact_start < clock_timestamp() - :age * interval '1 microsecond'
 order by xact_start limit 10
"""
_PREPARED = """
select gid, (extract(epoch from clock_timestamp() - prepared) * 1000000)::bigint from pg_prepared_xacts
 where database = current_database() order by prepared limit 10
"""
_DEAD = """
select relname, n_dead_tup, n_live_tup from pg_stat_user_tables
 where schemaname = :schema and relname in ('jobs', 'events') order by relname
"""


class Server(NamedTuple):
    """What a server says of itself, in the order in which it is asked."""

    version: str
    major: int
    encoding: str
    standby: bool
    read_only: bool
    isolation: str
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    autovacuum: bool
    connections: int
    max_connections: int
    user: str
    pid: int
    now: int


class Rights(NamedTuple):
    """What the user may do with the schema, which may not be there yet."""

    exists: bool
    may_use: bool
    may_create_in: bool
    may_create: bool
    may_write: bool


class OpenTransaction(NamedTuple):
    """Somebody's transaction that has been open for long."""

    pid: int
    application: str
    state: str
    age: int


class Prepared(NamedTuple):
    """A transaction that was prepared and never ended; it outlives every session and restart."""

    name: str
    age: int


class Dead(NamedTuple):
    """Rows of a table that nobody sees any more and that the server has not cleared away."""

    table: str
    dead: int
    live: int


class Facts(NamedTuple):
    """Everything that can be asked of a server, whatever is or is not in the schema."""

    server: Server
    ahead: int
    """Microseconds by which the database's clock is before this host's."""
    pooled: bool
    """Somebody stands between us and the server: the session is not ours alone."""
    rights: Rights
    open: tuple[OpenTransaction, ...]
    prepared: tuple[Prepared, ...]
    dead: tuple[Dead, ...]


def facts_of(place: Place) -> Facts:
    """Asks the server; nothing is changed."""
    with _session(place) as connection:
        before = time.time_ns() // 1_000
        server = Server._make(connection.rows(_SERVER)[0])
        ours = (before + time.time_ns() // 1_000) // 2
        schema = {"schema": place.schema}
        rights = Rights._make(connection.rows(_RIGHTS, schema)[0])
        open_ones = tuple(map(OpenTransaction._make, connection.rows(_OPEN, {"age": LONG})))
        prepared = tuple(map(Prepared._make, connection.rows(_PREPARED)))
        dead = tuple(map(Dead._make, connection.rows(_DEAD, schema)))
        pooled = server.pid != connection.backend
        return Facts(server, server.now - ours, pooled, rights, open_ones, prepared, dead)


def size_of(place: Place) -> int:
    """Bytes of all tables and indexes of the store."""
    with _session(place) as connection:
        return int(_one(connection, _SIZE, schema=place.schema)[0])


def check(place: Place, now: int | None = None) -> Report:
    """Looks at every law, all at one moment, and no writer waits for it."""
    with _session(place) as connection:
        refuse_server(connection)
        schema = _version(connection)
        pending(connection)
        connection.rollback()  # what was asked so far was asked in a transaction that nobody had begun
        moment = connection.read(DatabaseClock(0))
        sql = Statements(POSTGRES)
        connection.rows(sql["copying.patiently"])
        jobs, events = (int(_one(connection, f"select count(*) from {table}")[0]) for table in ("jobs", "events"))
        size = int(_one(connection, _SIZE, schema=place.schema)[0])
        found = []
        if schema == newest():
            found = broken_laws(connection, sql, moment if now is None else now)
        return Report(place.shown, schema, size, jobs, events, tuple(found))


def plan(place: Place) -> Plan:
    """The migrations that the store lacks; nothing is changed."""
    with _session(place) as connection:
        refuse_server(connection)
        schema = _version(connection)
        return Plan(place.shown, schema, newest(), planned(pending(connection)))


def migrate(place: Place) -> Migration:
    """Brings the store to this program's schema, all of it or nothing."""
    with _session(place, readonly=False) as connection:
        refuse_server(connection)
        before = _version(connection)
        done = apply(connection, POSTGRES)
        return Migration(place.shown, before, connection.version(), planned(done.steps), None)


def refuse_backup(place: Place, target: str) -> UsageError:
    """Copies of a database are its server's business; this says how to make one, without the password."""
    command = f"pg_dump --format=custom --schema={place.schema} --file={quote(target)} {quote(place.open)}"
    return UsageError(
        code="no_backup_here", what="a store on Postgres is backed up by Postgres itself", where=place.shown,
        todo=f"{command}; or copy it into a file: paceline db copy URL sqlite:///copy.db",
    )  # fmt: skip


def _version(connection: "PostgresConnection") -> int:
    version = connection.version()
    if not version:
        raise no_store(connection.where)
    return version


def _one(connection: "PostgresConnection", sql: str, **bindings: str) -> Row:
    return connection.rows(sql, bindings)[0]


@contextmanager
def _session(place: Place, *, readonly: bool = True) -> Iterator["PostgresConnection"]:
    with closing(postgres_connection(place, readonly=readonly)) as connection, said_plainly(connection):
        yield connection
