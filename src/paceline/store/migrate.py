"""Forward-only numbered steps with checksums; the schema is exactly what the program expects, or it is refused."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import apsw

from paceline.clock import SystemClock
from paceline.errors import StoreError
from paceline.store.dialect import Dialect
from paceline.store.places import check_folder, remains_of
from paceline.store.sqlite import APPLICATION_ID, TURN_SECONDS, SqliteConnection, newer
from paceline.store.statements import fill
from paceline.store.trouble import BUSY, complaint, explained
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


def connect(path: Path | None, dialect: Dialect, *, synchronous: str = "full") -> SqliteConnection:
    """The store at `path`, made when there is none, with the schema of this program."""
    if path is not None and not os.path.lexists(path):
        create(path, dialect)
    connection = SqliteConnection(path, synchronous=synchronous)
    try:
        with explained(path):
            migrate(connection, dialect)
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


def version_of(connection: SqliteConnection) -> int:
    """The number of the last step applied; 0 when there was none yet."""
    return int(connection.rows("pragma user_version")[0][0])


def newest() -> int:
    """The number of the last step this program has."""
    return steps()[-1].number


def pending(connection: SqliteConnection) -> list[Step]:
    """Steps that have not been applied; refuses a schema that is newer than this program or was made by other steps."""
    version, known = version_of(connection), steps()
    if version > newest():
        raise newer(connection.path, version, newest())
    if version:
        _compare_checksums(connection, [step for step in known if step.number <= version])
    return [step for step in known if step.number > version]


def migrate(connection: SqliteConnection, dialect: Dialect) -> Migrated:
    """Applies what is pending, all of it or nothing; a store that holds anything is copied first.

    Another process may have done so while this one waited for its turn.
    """
    done = Migrated([], None)
    if pending(connection):
        connection.begin(SystemClock(0))
        try:
            todo = pending(connection)
            done = Migrated(todo, _back_up(connection) if todo else None)
            for step in todo:
                _apply(connection, step, dialect)
            connection.script(f"pragma application_id = {APPLICATION_ID}")
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    connection.schema = version_of(connection)
    return done


def _apply(connection: SqliteConnection, step: Step, dialect: Dialect) -> None:
    try:
        connection.script(fill(step.text, dialect))
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise StoreError(
            code="store_migration_failed", what=f"migration {step.name} failed; nothing was changed",
            where=str(connection.path or "memory"), found=str(error), todo="please report this as a bug",
        ) from None  # fmt: skip
    connection.write(
        "insert into meta (name, value) values (:name, :value)",
        {"name": _fact(step), "value": step.checksum},
    )
    connection.script(f"pragma user_version = {step.number}")


def _back_up(connection: SqliteConnection) -> Path | None:
    """A copy of the store as it is before the first step; made by a reader, for a writer cannot copy itself."""
    path, version = connection.path, version_of(connection)
    if path is None or not version:
        return None
    names = (path.with_name(f"{path.name}.schema-{version}{more}.backup") for more in _endings())
    target = next(name for name in names if not os.path.lexists(name))
    with closing(SqliteConnection(path, readonly=True)) as reader:
        try:
            reader.copy_to(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return target


def _endings() -> Iterator[str]:
    yield ""
    yield from (f"-{number}" for number in count(2))


def _compare_checksums(connection: SqliteConnection, known: list[Step]) -> None:
    applied: dict[str, str] = dict(connection.rows("select name, value from meta where name like 'migration %'"))
    for step in known:
        found = applied.get(_fact(step))
        if found != step.checksum:
            raise StoreError(
                code="store_altered", what=f"migration {step.name} differs from the one that was applied",
                where=str(connection.path or "memory"), found=str(found), allowed=step.checksum,
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
