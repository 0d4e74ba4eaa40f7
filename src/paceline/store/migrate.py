"""Forward-only numbered steps, each with a checksum; the schema is exactly what the program expects, or it is refused."""

import hashlib
from importlib.resources import files
from typing import NamedTuple

from paceline.errors import StoreError
from paceline.store.dialect import Dialect
from paceline.store.sqlite import APPLICATION_ID, SqliteConnection
from paceline.store.statements import fill


class Step(NamedTuple):
    """One migration."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Tells whether the step that was applied is the step that we have."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def steps() -> list[Step]:
    """All migrations, in order."""
    folder = files("paceline.store").joinpath("migrations")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted(
        Step(int(entry.name[:4]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")) for entry in found
    )


def version_of(connection: SqliteConnection) -> int:
    """The number of the last step applied; 0 for a new, empty file."""
    return int(connection.rows("pragma user_version")[0][0])


def newest() -> int:
    """The number of the last step this program has."""
    return steps()[-1].number


def pending(connection: SqliteConnection) -> list[Step]:
    """Steps that have not been applied; refuses files that are not ours or are newer than this program."""
    where = str(connection.path or "memory")
    application = int(connection.rows("pragma application_id")[0][0])
    tables = int(connection.rows("select count(*) from sqlite_schema")[0][0])
    if application != APPLICATION_ID and (application or tables):
        raise StoreError(
            code="store_foreign", what="the database belongs to another program", where=where,
            found=f"application id {application:#x}, {tables} tables", allowed=f"{APPLICATION_ID:#x}",
            todo="name another file",
        )  # fmt: skip
    version = version_of(connection)
    if version > newest():
        raise StoreError(
            code="store_newer", what="the database was written by a newer Paceline", where=where,
            found=f"schema {version}", allowed=f"up to schema {newest()}", todo="upgrade this installation",
        )  # fmt: skip
    return [step for step in steps() if step.number > version]


def migrate(connection: SqliteConnection, dialect: Dialect) -> list[Step]:
    """Applies what is pending, all of it or nothing; another process may have done so meanwhile."""
    if not pending(connection):
        _compare_checksums(connection)
        return []
    connection.begin()
    try:
        todo = pending(connection)
        for step in todo:
            connection.script(fill(step.text, dialect))
            connection.write(
                "insert into meta (name, value) values (:name, :value)",
                {"name": f"migration {step.number:04d}", "value": step.checksum},
            )
            connection.script(f"pragma user_version = {step.number}")
        connection.script(f"pragma application_id = {APPLICATION_ID}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return todo


def _compare_checksums(connection: SqliteConnection) -> None:
    applied = dict(connection.rows("select name, value from meta where name like 'migration %'"))
    for step in steps():
        found = applied.get(f"migration {step.number:04d}")
        if found != step.checksum:
            raise StoreError(
                code="store_altered", what=f"migration {step.name} differs from the one that was applied",
                where=str(connection.path or "memory"), found=str(found), allowed=step.checksum,
                todo="use the version of Paceline that wrote this database",
            )  # fmt: skip
