"""Forward-only numbered steps with checksums; the schema is exactly what the program expects, or it is refused."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from paceline.errors import StoreError
from paceline.store.dialect import Dialect
from paceline.store.driver import Bindings
from paceline.store.places import check_folder, no_store, remains_of
from paceline.store.sqlite import TURN_SECONDS, SqliteConnection
from paceline.store.statements import fill
from paceline.store.trouble import BUSY, complaint, explained, newer, older
from paceline.store.turn import Turn


class Step(NamedTuple):
    """One migration."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Tells whether the step that was applied is the step that we have."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


class Migratable(Protocol):
    """What a migration needs of a connection."""

    schema: int | None

    @property
    def where(self) -> str:
        """Where the store is, for people."""

    @property
    def errors(self) -> type[Exception]:
        """What the database raises."""

    def write(self, sql: str, bindings: Bindings = ()) -> int:
        """Runs one statement."""

    def script(self, sql: str) -> None:
        """Runs several statements."""

    def begin_alone(self) -> None:
        """Begins a transaction in which nobody else changes the schema."""

    def commit(self) -> None:
        """Makes it durable."""

    def rollback(self) -> None:
        """Undoes it."""

    def version(self) -> int:
        """The number of the last step applied; 0 when there was none yet."""

    def applied(self) -> dict[str, str]:
        """The checksums of the steps that were applied, by the name of the fact."""

    def stamp(self, version: int) -> None:
        """From now on the store has this version."""

    def back_up(self) -> Path | None:
        """A copy of a store that holds anything, where the store is a file."""


class Migrated(NamedTuple):
    """What a migration did: the steps it applied, and the copy it made of the store before."""

    steps: list[Step]
    backup: Path | None


def steps() -> list[Step]:
    """All migrations, in order."""
    found = Path(__file__).with_name("migrations").glob("*.sql")
    return sorted(
        Step(int(entry.name[:4]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")) for entry in found
    )


def connect(path: Path | None, dialect: Dialect, *, synchronous: str = "full", grow: bool = True) -> SqliteConnection:
    """The store at `path` with the schema of this program; unless `grow`, one that lacks anything is refused."""
    if grow and path is not None and not os.path.lexists(path):
        create(path, dialect)
    connection = SqliteConnection(path, synchronous=synchronous)
    try:
        with explained(path):
            bring(connection, dialect, grow=grow or path is None)
    except BaseException:
        connection.close()
        raise
    return connection


def create(path: Path, dialect: Dialect) -> None:
    """A new store appears under its name whole or not at all; one that appeared meanwhile is left alone.

    So an empty file is never a store that somebody is just making, and always one that was lost.
    """
    check_folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    with explained(path), _turn_at(path):
        if os.path.lexists(path):
            return
        if remains := remains_of(path):
            raise StoreError(
                code="store_gone", what="the database is gone, but what was written to it last is still here",
                where=str(path), found=", ".join(remains),
                todo="restore the database beside it; or remove that as well, and a new store is made",
            )  # fmt: skip
        try:
            with closing(SqliteConnection(None)) as blank:
                migrate(blank, dialect)
                blank.copy_to(draft)
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)


def newest() -> int:
    """The number of the last step this program has."""
    return steps()[-1].number


def pending(connection: Migratable) -> list[Step]:
    """Steps that have not been applied; refuses a schema that is newer than this program or was made by other steps."""
    version, known = connection.version(), steps()
    if version > newest():
        raise newer(connection.where, version, newest())
    if version:
        _compare_checksums(connection, [step for step in known if step.number <= version])
    return [step for step in known if step.number > version]


def bring(connection: Migratable, dialect: Dialect, *, grow: bool) -> None:
    """The store has this program's schema afterwards; unless `grow`, one that has not is refused and left alone.

    Nodes of an older program end when the schema grows, so whoever only looks must not make it grow.
    """
    if grow:
        migrate(connection, dialect)
    elif pending(connection):
        version = connection.version()
        raise older(connection.where, version, newest()) if version else no_store(connection.where)
    else:
        connection.schema = connection.version()


def migrate(connection: Migratable, dialect: Dialect) -> Migrated:
    """Applies what is pending, all of it or nothing; a store that holds anything is copied first.

    Another process may have done so while this one waited for its turn.
    """
    done = Migrated([], None)
    if pending(connection):
        connection.begin_alone()
        try:
            todo = pending(connection)
            done = Migrated(todo, connection.back_up() if todo else None)
            for step in todo:
                _apply(connection, step, dialect)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    connection.schema = connection.version()
    return done


def _apply(connection: Migratable, step: Step, dialect: Dialect) -> None:
    try:
        connection.script(dialect.render_types(fill(step.text, dialect)))
    except connection.errors as error:
        raise StoreError(
            code="store_migration_failed", what=f"migration {step.name} failed; nothing was changed",
            where=connection.where, found=str(error), todo="please report this as a bug",
        ) from None  # fmt: skip
    connection.write(
        "insert into meta (name, value) values (:name, :value)",
        {"name": _fact(step), "value": step.checksum},
    )
    connection.stamp(step.number)


def _compare_checksums(connection: Migratable, known: list[Step]) -> None:
    applied = connection.applied()
    for step in known:
        found = applied.get(_fact(step))
        if found != step.checksum:
            raise StoreError(
                code="store_altered", what=f"migration {step.name} differs from the one that was applied",
                where=connection.where, found=str(found), allowed=step.checksum,
                todo="use the version of Paceline that wrote this database",
            )  # fmt: skip


def _fact(step: Step) -> str:
    return f"migration {step.number:04d}"


@contextmanager
def _turn_at(path: Path) -> Iterator[None]:
    with closing(Turn(path.with_name(f"{path.name}.lock"))) as turn:
        if not turn.take(TURN_SECONDS):
            raise complaint(BUSY, path, f"waited {TURN_SECONDS:g} s for our turn to write")
        yield


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
