"""What a person does to a store, whatever it is kept in: look for damage, migrate, back up, move it elsewhere."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.clock import Clock, DatabaseClock, measure_offset
from paceline.config import FOLDER
from paceline.core.leasing import lease_expired
from paceline.core.model import NodeRow
from paceline.errors import Refused, StoreError, UsageError
from paceline.opening import path_of
from paceline.store import maintenance, postgres_care
from paceline.store.connection import Connection
from paceline.store.copying import Side, Tell, copy_rows
from paceline.store.dialect import POSTGRES, SQLITE
from paceline.store.doors import connect_postgres, said_plainly
from paceline.store.maintenance import Backup, Migration, Plan, Report, broken_laws
from paceline.store.migrate import bring, connect
from paceline.store.places import make_folder
from paceline.store.postgres_place import Place, names_postgres, place_of
from paceline.store.sql import Store
from paceline.store.sqlite import SqliteConnection
from paceline.store.statements import Statements
from paceline.store.trouble import explained
from paceline.store.tx import Tx
from paceline.units.reap import end_node, give_back_jobs
from paceline.workers.identity import state_seen_here

Home = Path | Place
"""Where a store is: a file, or a schema of a database."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A store that was written into another; `returned` jobs had been running on nodes that are dead."""

    source: str
    target: str
    rows: dict[str, int]
    returned: int


def home_of(url: str) -> Home:
    """Where the store of a URL is; one in memory cannot be cared for."""
    if names_postgres(url):
        return place_of(url)
    path = path_of(url)
    if path is None:
        raise UsageError(code="bad_store", what="a store in memory has no file", todo="name a file with --store")
    return path.absolute()


def check(home: Home) -> Report:
    """Looks for damage and at every law; nothing is changed, and no writer waits for it."""
    if isinstance(home, Path):
        return maintenance.check(home)
    return postgres_care.check(home)


def plan(home: Home) -> Plan:
    """The migrations that the store lacks; nothing is changed."""
    if isinstance(home, Path):
        return maintenance.plan(home)
    return postgres_care.plan(home)


def migrate(home: Home) -> Migration:
    """Brings the store to this program's schema, all of it or nothing."""
    if isinstance(home, Path):
        return maintenance.migrate(home)
    return postgres_care.migrate(home)


def backup(home: Home, target: str) -> Backup:
    """Copies a store in a file while it is in use; for a database it says how its server does that."""
    if isinstance(home, Path):
        return maintenance.backup(home, Path(target))
    raise postgres_care.refuse_backup(home, target)


def copy(source: Home, target: Home, tell: Tell) -> Copied:
    """Writes a whole store into another that has no jobs: all of it, sound and in one transaction, or nothing.

    Nobody may be working on the source: two stores would do the same work.
    """
    _refuse_same(source, target)
    clock = DatabaseClock(measure_offset())
    with _reading(source) as (connection, side):
        now = connection.read(clock)
        _refuse_nodes(_side_tx(connection, side), now, side.where, "source")
        with _writing(target, clock) as (store, other):
            rows, returned = store.execute(lambda tx: _fill(tx, side, other, tell, _Unchanged(connection, side, clock)))
        return Copied(side.where, other.where, rows, returned)


def _fill(tx: Tx, source: Side, target: Side, tell: Tell, unchanged: Callable[[], None]) -> tuple[dict[str, int], int]:
    """One unit of work, larger than others: nobody else uses the target until it is whole."""
    source.patiently()
    target.alone()
    target.patiently()
    _refuse_used(tx, target)
    rows = copy_rows(source, target, tell)
    returned = _end_lives(tx)
    tx.events.flush()  # now, for the laws look at them too; and not once more at the commit
    tx.events.discard()
    broken = [found for found in broken_laws(target.driver, target.sql, tx.now) if found.broken]
    if broken:
        raise StoreError(
            code="copy_unsound", what="the source is damaged, so its copy would be; nothing was changed",
            where=source.where, found=f"{broken[0].what}: {', '.join(broken[0].examples[:3])}",
            todo=f"paceline db check --store {source.where}",
        )  # fmt: skip
    unchanged()
    return rows, returned


def _end_lives(tx: Tx) -> int:
    """Whoever still seems to live in the copy is dead: their jobs return to the queue, as a reaper does it."""
    for node in tx.nodes.live():
        end_node(tx, node.id, "lease_expired" if lease_expired(node.expires_at, tx.now) else "process_gone")
    returned = 0
    for dead in tx.nodes.ended_holding():
        while part := give_back_jobs(tx, dead, "node_died"):
            returned += part
    return returned


class _Unchanged:
    """Nobody has written anything to the source since it was read."""

    def __init__(self, connection: Connection, side: Side, clock: Clock) -> None:
        self._connection = connection
        self._side = side
        self._clock = clock
        self._before = self._end()

    def __call__(self) -> None:
        self._connection.rollback()
        self._connection.read(self._clock)
        if self._end() != self._before:
            raise Refused(
                code="store_in_use", what="the source was written to while it was being copied; nothing was changed",
                where=self._side.where, todo="stop whatever submits or runs jobs there, then copy again",
            )  # fmt: skip

    def _end(self) -> int:
        return _side_tx(self._connection, self._side).events.last()


def _refuse_used(tx: Tx, target: Side) -> None:
    if jobs := target.count("jobs"):
        raise Refused(
            code="target_used", what="the target holds jobs already", where=target.where, found=f"{jobs:,} jobs",
            todo="name a new file, another database or another schema: ?schema=name",
        )  # fmt: skip
    _refuse_nodes(tx, tx.now, target.where, "target")


def _refuse_nodes(tx: Tx, now: int, where: str, what: str) -> None:
    live = [node.name for node in tx.nodes.live() if not _is_over(node, now)]
    if live:
        raise Refused(
            code="store_in_use", what=f"nodes run on the {what} of the copy; nothing was changed", where=where,
            found=", ".join(live[:5]), todo="stop them first; of one that died wait until its lease has run out",
        )  # fmt: skip


def _is_over(node: NodeRow, now: int) -> bool:
    """Its lease has run out, or its process was one of this host's and is there no more."""
    return lease_expired(node.expires_at, now) or state_seen_here(node.identity) == "dead"


def _refuse_same(source: Home, target: Home) -> None:
    same = source == target
    if isinstance(source, Path) and isinstance(target, Path):
        same = os.path.realpath(source) == os.path.realpath(target)
    if same:
        shown = source.shown if isinstance(source, Place) else str(source)
        raise UsageError(code="same_store", what="a store cannot be copied into itself", where=shown)


def _side_tx(connection: Connection, side: Side) -> Tx:
    return Tx(connection, side.sql)


@contextmanager
def _reading(home: Home) -> Iterator[tuple[Connection, Side]]:
    connection: Connection
    if isinstance(home, Path):
        with explained(home), closing(SqliteConnection(home, readonly=True)) as connection:
            bring(connection, SQLITE, grow=False)
            yield connection, Side(connection, SQLITE, str(home))
    else:
        with closing(connect_postgres(home, grow=False, readonly=True)) as connection, said_plainly(connection):
            yield connection, Side(connection, POSTGRES, home.shown)


@contextmanager
def _writing(home: Home, clock: Clock) -> Iterator[tuple[Store, Side]]:
    if isinstance(home, Path):
        if home.parent.name == FOLDER:
            make_folder(home.parent)
        file = connect(home, SQLITE)
        side, store = Side(file, SQLITE, str(home)), Store(file, Statements(SQLITE), clock)
    else:
        session = connect_postgres(home)
        side, store = Side(session, POSTGRES, home.shown), Store(session, Statements(POSTGRES), clock)
    with closing(store):
        yield store, side
