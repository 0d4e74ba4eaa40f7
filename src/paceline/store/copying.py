"""All rows of one store written into another, whatever each is kept in.

Rows are read and written in stretches by their keys, as many at a time as fit into a few megabytes. What the tables and
their columns are called is asked of the source; both stores have the same schema, so nothing is named here but what is
not simply copied: numbers of events, which become their places in the log, and facts that belong to one database.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from paceline.errors import StoreError
from paceline.store.dialect import Dialect
from paceline.store.driver import Driver, NamedBindings, Row, Value
from paceline.store.statements import Statements, fill

ROWS = 5_000
BYTES = 8 << 20
"""How much is in memory at a time: so many rows, or so much text; a single row may be larger."""

OWN_TABLES = frozenset({"marks"})
"""Tables in which a database only keeps its own accounts."""
OWN_FACTS = frozenset({"schema", "clock"})
"""Facts that belong to one database, beside its migrations: its schema, and the clock of the host it is on."""
NAMES_EVENT = {"events": ("prev",), "jobs": ("last_event", "prev_event")}
"""Columns that hold the number of an event."""
_KINDS = {"integer": "int", "bigint": "int", "real": "real", "double precision": "real", "text": "text"}
_NAME = re.compile(r"[a-z][a-z_0-9]*")

Tell = Callable[[str, int, int], None]
"""(table, rows written, rows there are) as it goes on."""


class Side(NamedTuple):
    """One of the two stores, inside a transaction."""

    driver: Driver
    dialect: Dialect
    where: str

    @property
    def sql(self) -> Statements:
        """Its named statements."""
        return Statements(self.dialect)

    def alone(self) -> None:
        """Nobody else writes anything until this transaction ends: whoever wants to looks into this table first."""
        self.driver.lock("lock table meta in access exclusive mode")

    def patiently(self) -> None:
        """What follows may take long."""
        self.driver.rows(self.sql["copying.patiently"])

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self.driver.rows(f"select count(*) from {table}")[0][0])


class Table(NamedTuple):
    """One table: (name, kind) of each column, and the columns of its key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]


def copy_rows(source: Side, target: Side, tell: Tell) -> dict[str, int]:
    """Writes every row of the source into the emptied target and counts them there; answers how many, by table."""
    tables = tables_of(source)
    _compare(tables, tables_of(target), target.where)
    _empty(target, tables)
    written = {table.name: _copy(source, target, table, tell) for table in tables}
    for table in tables:
        if table.name != "meta" and (found := target.count(table.name)) != written[table.name]:
            raise StoreError(
                code="copy_incomplete", what=f"the copy lacks rows of {table.name}; nothing was changed",
                where=target.where, found=f"{found:,} rows", allowed=f"{written[table.name]:,}",
                todo="please report this as a bug",
            )  # fmt: skip
    for name, column in target.driver.rows(target.sql["copying.numbered"]):
        _count_on(target, name, column)
    return written


def tables_of(side: Side) -> list[Table]:
    """The tables that both kinds of database have, by name."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for table, column, kind, place in side.driver.rows(side.sql["copying.columns"]):
        if table in OWN_TABLES or column == _position(side):
            continue
        if not _NAME.fullmatch(table) or not _NAME.fullmatch(column) or kind not in _KINDS:
            raise _strange(side.where, f"{table}.{column} {kind}"[:200])
        found.setdefault(table, []).append((column, _KINDS[kind], place))
    tables = []
    for name, columns in found.items():
        key = [column for place, column in sorted((place, column) for column, _, place in columns if place)]
        tables.append(Table(name, tuple((column, kind) for column, kind, _ in columns), tuple(key)))
    return tables


def _position(side: Side) -> str:
    """The column of a place in the log, where it is not the event's number itself."""
    name = fill("{pos}", side.dialect)
    return "" if name == "id" else name


def _compare(ours: Sequence[Table], theirs: Sequence[Table], where: str) -> None:
    shapes = [{(table.name, name) for table in tables for name, _ in table.columns} for tables in (ours, theirs)]
    if other := sorted(".".join(pair) for pair in shapes[0] ^ shapes[1]):
        raise _strange(where, ", ".join(other[:5]))


def _strange(where: str, found: str) -> StoreError:
    return StoreError(
        code="store_foreign", what="the tables of the two stores differ", where=where, found=found,
        todo="remove what is not Paceline's from the schema",
    )  # fmt: skip


def _empty(target: Side, tables: Sequence[Table]) -> None:
    for table in tables:
        if table.name != "meta":
            target.driver.write(f"delete from {table.name}")
    target.driver.write(target.sql["copying.forget_facts"])


def _copy(source: Side, target: Side, table: Table, tell: Tell) -> int:
    """Each stretch is carried out before the next one is read."""
    total, done = source.count(table.name), 0
    insert = _insert(target, table)
    twice = table.name == "events" and bool(_position(target))
    for rows in _stretches(source, table):
        kept = [_cleaned((row[0], *row) if twice else row) for row in rows if not _is_own(table, row)]
        target.driver.write_many(insert, kept)
        target.driver.rows("select 1")
        done += len(rows)
        tell(table.name, done, total)
    return done


def _insert(target: Side, table: Table) -> str:
    columns = list(table.columns)
    if table.name == "events" and (position := _position(target)):
        columns.insert(0, (position, "int"))
    names = ", ".join(name for name, _ in columns)
    kinds = ", ".join(f"{name} {kind}" for name, kind in columns)
    return target.dialect.render(f"insert into {table.name} ({names}) {{values:r({kinds})}}")


def _stretches(source: Side, table: Table) -> Iterator[list[Row]]:
    """All rows in the order of their keys, events in the order of the log; each stretch fits into memory."""
    place = _position(source) if table.name == "events" else ""
    key = (place,) if place else table.key
    texts = [name for name, kind in table.columns if kind == "text" and name not in key]
    weight = " + ".join(f"coalesce(octet_length(t.{name}), 0)" for name in texts) or "0"
    wanted = ", ".join(_wanted(source, table, name, place) for name, _ in table.columns)
    after: Row = ()
    while True:
        weights = _ask(source, table, f"{', '.join(f't.{name}' for name in key)}, {weight}", key, after, ROWS)
        if not weights:
            return
        most = _fitting([row[-1] for row in weights])
        yield _ask(source, table, wanted, key, after, most)
        if most == len(weights) < ROWS:
            return
        after = weights[most - 1][: len(key)]


def _wanted(source: Side, table: Table, column: str, place: str) -> str:
    """A column as it is written on the other side: an event is known by its place in the log."""
    if place and column == "id":
        return f"t.{place}"
    if (position := _position(source)) and column in NAMES_EVENT.get(table.name, ()):
        return f"coalesce((select e.{position} from events e where e.id = t.{column}), t.{column})"
    return f"t.{column}"


def _ask(source: Side, table: Table, what: str, key: Sequence[str], after: Row, most: int) -> list[Row]:
    names = ", ".join(f"t.{name}" for name in key)
    values: dict[str, Value] = {f"k{place}": value for place, value in enumerate(after)}
    behind = f"where ({names}) > ({', '.join(f':{name}' for name in values)})" if after else ""
    sql = f"select {what} from {table.name} t {behind} order by {names} limit :most"
    bindings: NamedBindings = {**values, "most": most}
    return source.driver.rows(sql, bindings)


def _fitting(weights: Sequence[int]) -> int:
    """How many rows from the first on fit; one at least."""
    room = BYTES
    for place, weight in enumerate(weights):
        room -= weight
        if room < 0:
            return max(1, place)
    return len(weights)


def _is_own(table: Table, row: Row) -> bool:
    return table.name == "meta" and (row[0] in OWN_FACTS or row[0].startswith("migration "))


def _cleaned(row: Row) -> Row:
    """Not every database keeps the character NUL."""
    return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value for value in row)


def _count_on(target: Side, table: str, column: str) -> None:
    last = target.driver.rows(f"select max({column}) from {table}")[0][0]
    if last is not None:
        target.driver.rows(target.sql["copying.count_on"], {"table": table, "column": column, "last": last})
