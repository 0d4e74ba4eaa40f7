"""What a person does to a store: look for damage, copy it, see and apply the migrations it lacks.

Everything here is safe beside running nodes; only `migrate` changes the store.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from paceline.errors import StoreError, UsageError
from paceline.store.dialect import SQLITE
from paceline.store.driver import Driver
from paceline.store.migrate import Step, newest, pending
from paceline.store.migrate import migrate as apply
from paceline.store.places import create_file, no_folder
from paceline.store.sqlite import SqliteConnection
from paceline.store.statements import Statements
from paceline.store.trouble import explained, newer

NAMED = 10
"""How many jobs or lines of a finding are named."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be: its code, what it means, how often, and the first jobs or lines of it."""

    code: str
    what: str
    count: int
    examples: tuple[str, ...]
    broken: bool = True
    """False: it mends itself, as soon as a node runs."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `check` has seen."""

    where: str
    schema: int
    size: int
    jobs: int
    events: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Nothing is broken."""
        return not any(finding.broken for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy that was made and read again."""

    path: Path
    target: Path
    schema: int
    size: int
    jobs: int


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A migration that the store lacks."""

    number: int
    name: str
    checksum: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What `migrate` would do."""

    where: str
    schema: int
    newest: int
    steps: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True)
class Migration:
    """What `migrate` has done; `backup` is the store as it was before, where it is a file."""

    where: str
    before: int
    schema: int
    steps: tuple[PlannedStep, ...]
    backup: Path | None


LAWS = {
    "last_event": "jobs whose last event is not the one they name",
    "events_missing": "jobs with a gap in their events",
    "events_unchained": "jobs whose events do not follow one another",
    "node_missing": "jobs held by a node that does not exist",
    "node_dead": "jobs of nodes that have stopped or died; the next node that runs gives them back",
    "edges_untold": "jobs that ended without telling those that depend on them",
    "edges_dangling": "jobs that depend on jobs that do not exist",
    "blocked_by_nothing": "blocked jobs that wait for nothing any more",
    "started_too_early": "jobs that went on although a prerequisite has not ended as asked",
    "never_ready": "queued jobs that no node would find",
    "result_missing": "ended jobs without result or error",
    "result_early": "results of jobs that have not ended",
    "input_missing": "jobs without their input",
    "lane_missing": "jobs of an unknown agent or tenant",
    "family_missing": "jobs whose parent or root does not exist",
    "staged_for_nobody": "unseen jobs of a submission that nobody is making",
    "lease_of_nobody": "leases that no running job holds",
    "key_dangling": "keys of jobs that do not exist",
}
"""Every statement in `check.sql` answers the jobs that break one law."""

MENDS_ITSELF = frozenset({"node_dead"})


def check(path: Path, now: int | None = None) -> Report:
    """Looks at every page and every law; each question sees one consistent moment, and no writer waits for it."""
    try:
        connection = SqliteConnection(path, readonly=True)
    except StoreError as error:
        if error.code != "store_damaged":
            raise
        return Report(str(path), 0, path.stat().st_size, 0, 0, (_damaged([error.found]),))
    with closing(connection):
        findings = list(_damage(connection))
        schema = jobs = events = 0
        try:
            schema = connection.version()
            if schema > newest():
                raise newer(str(path), schema, newest())
            jobs, events = (_count(connection, table) for table in ("jobs", "events"))
            if schema == newest():
                moment = time.time_ns() // 1_000 if now is None else now
                findings += broken_laws(connection, Statements(SQLITE), moment)
        except apsw.Error as error:
            findings.append(Finding("unreadable", "tables that cannot be read", 1, (str(error),)))
    return Report(str(path), schema, path.stat().st_size, jobs, events, tuple(findings))


def broken_laws(driver: Driver, sql: Statements, now: int) -> list[Finding]:
    """The laws between the tables that some rows break."""
    found = []
    for code, what in LAWS.items():
        question = sql[f"check.{code}"]
        rows = driver.rows(question, {"now": now} if ":now" in question else {})
        if rows:
            examples = tuple(f"j{row[0]}" for row in rows[:NAMED])
            found.append(Finding(code, what, len(rows), examples, broken=code not in MENDS_ITSELF))
    return found


def backup(path: Path, target: Path) -> Backup:
    """Copies the store as it is at one moment into a new file and reads the copy again; a bad copy is not kept."""
    target = target.absolute()
    if os.path.lexists(target):
        raise UsageError(
            code="target_exists", what="the backup would overwrite something", where=str(target), todo="name a new file"
        )
    if not target.parent.is_dir():
        raise no_folder(target.parent, "")
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    with closing(SqliteConnection(path, readonly=True)) as connection, explained(target):
        create_file(target)  # the name is ours from here on; until the copy is whole it names an empty file
        try:
            connection.copy_to(draft)
            schema, jobs = _verified(draft)
            draft.replace(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        finally:
            draft.unlink(missing_ok=True)
    return Backup(path, target, schema, target.stat().st_size, jobs)


def plan(path: Path) -> Plan:
    """The migrations that the store lacks; nothing is changed."""
    with closing(SqliteConnection(path, readonly=True)) as connection, explained(path):
        steps = pending(connection)
        return Plan(str(path), connection.version(), newest(), planned(steps))


def migrate(path: Path) -> Migration:
    """Brings the store to this program's schema, after copying it."""
    with closing(SqliteConnection(path)) as connection, explained(path):
        before = connection.version()
        done = apply(connection, SQLITE)
        return Migration(str(path), before, connection.version(), planned(done.steps), done.backup)


def _verified(copy: Path) -> tuple[int, int]:
    """Schema and number of jobs of a copy whose every page was read."""
    with closing(SqliteConnection(copy, readonly=True)) as connection:
        for finding in _damage(connection):
            raise StoreError(
                code="store_damaged", what="the copy is damaged, as the store itself may be", where=str(copy),
                found=finding.examples[0], todo="paceline db check",
            )  # fmt: skip
        return connection.version(), _count(connection, "jobs")


def _damage(connection: SqliteConnection) -> Iterator[Finding]:
    try:
        lines = [str(row[0]) for row in connection.rows(f"pragma integrity_check({NAMED})")]
    except (apsw.CorruptError, apsw.NotADBError) as error:
        lines = [str(error)]
    if lines != ["ok"]:
        yield _damaged(lines)


def _damaged(lines: Sequence[str]) -> Finding:
    return Finding("damaged", "pages of the file that are damaged; restore a backup", len(lines), tuple(lines))


def _count(connection: SqliteConnection, table: str) -> int:
    return int(connection.rows(f"select count(*) from {table}")[0][0])


def planned(steps: Sequence[Step]) -> tuple[PlannedStep, ...]:
    """Steps as people see them."""
    return tuple(PlannedStep(step.number, step.name, step.checksum) for step in steps)
