"""Looking for damage, copying, and migrating: safe beside a running node, and each finding can be found."""

import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from paceline.clock import Clock
from paceline.core.lifecycle import State
from paceline.core.model import SECOND
from paceline.core.problem import Problem
from paceline.errors import StoreError
from paceline.store import maintenance, migrate
from paceline.store.dialect import SQLITE
from paceline.store.doors import sqlite_store
from paceline.store.maintenance import LAWS, backup, check, plan
from paceline.store.migrate import Step, newest
from paceline.store.sqlite import APPLICATION_ID, SqliteConnection
from paceline.testing.clock import ManualClock
from store.stores import DATABASES, sqlite_of
from store.world import TERM, World, newest_job

MORE = Step(newest() + 1, "9999_more", "create table more (x integer);")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def busy(path: Path) -> Iterator[World]:
    """A store with jobs in every state, in use."""
    clock = ManualClock()
    store = DATABASES["sqlite-file"].open(path.parent, clock)
    world = World(store, clock)
    for state in State:
        world.in_state(state)
    yield world
    store.close()


def test_a_sound_store_has_no_findings(busy: World, path: Path) -> None:
    report = check(path, busy.clock.now())
    assert report.sound
    assert report.findings == ()
    assert (report.schema, report.jobs) == (newest(), busy.do(newest_job))
    assert report.events > report.jobs
    assert report.size == path.stat().st_size


def test_jobs_of_dead_nodes_are_to_know_and_nothing_is_broken(busy: World, path: Path) -> None:
    report = check(path, busy.clock.now() + TERM + SECOND)
    assert [(finding.code, finding.count) for finding in report.findings] == [("node_dead", 1)]
    assert report.sound


def test_a_check_neither_waits_for_a_writer_nor_holds_one_up(busy: World, path: Path) -> None:
    with_open_unit = busy.do(lambda tx: (tx.lanes.tenant("x"), check(path, tx.now))[1])
    assert with_open_unit.sound


BREAKS = {
    "last_event": "update jobs set last_event = 999999 where id = 3",
    "events_missing": "delete from events where job = {done} and seq = 2",
    "events_unchained": "update events set prev = id where job = {done} and seq = 3",
    "node_missing": "update jobs set node = 999 where state = 3",
    "node_dead": "update nodes set ended_at = 1, ending = 'stopped'",
    "edges_untold": "update edges set dependency = {done}",
    "edges_dangling": "insert into edges values (998, 1, 0, 1)",
    "blocked_by_nothing": "delete from edges",
    "started_too_early": "insert into edges values ({done}, 4, 0, 2)",
    "never_ready": "update jobs set ready_at = null where state = 2",
    "result_missing": "delete from results where job = {done}",
    "result_early": "insert into results values (4, '1')",
    "input_missing": "delete from inputs where job = 3",
    "lane_missing": "update jobs set lane = 999 where id = 3",
    "family_missing": "update jobs set parent = 999 where id = 3",
    "staged_for_nobody": "delete from batches",
    "lease_of_nobody": "insert into leases values (3, 'llm', 1, 1)",
    "key_dangling": "insert into keys values (1, 1, 'k', 999)",
}


def test_every_law_is_broken_once_below() -> None:
    assert BREAKS.keys() == LAWS.keys()


@pytest.mark.parametrize("law", LAWS)
def test_a_broken_law_is_found_and_names_its_jobs(busy: World, path: Path, law: str) -> None:
    completed = busy.do(lambda tx: tx.listing.find("newest", 1, states=[State.COMPLETED]))[0]
    busy.do(lambda tx: sqlite_of(busy.store).script(BREAKS[law].format(done=completed)))
    report = check(path, busy.clock.now())
    found = {finding.code: finding for finding in report.findings}
    assert law in found
    assert found[law].count >= 1
    assert found[law].examples[0].startswith("j")
    assert report.sound is (law == "node_dead")


@pytest.mark.parametrize("first", [2, 20])
def test_damaged_pages_are_a_finding_and_not_a_traceback(busy: World, path: Path, first: int) -> None:
    busy.store.close()
    whole = path.with_name("copy.db")
    backup(path, whole)
    data = bytearray(whole.read_bytes())
    for place in range(first * 4_096, len(data), 4_096):
        data[place : place + 200] = b"\xff" * 200
    whole.write_bytes(data)
    report = check(whole, busy.clock.now())
    assert not report.sound
    assert report.findings[0].code == "damaged"


def test_a_copy_is_whole_private_and_a_store(busy: World, path: Path) -> None:
    target = path.with_name("copy.db")
    made = backup(path, target)
    jobs = busy.do(newest_job)
    assert (made.target, made.schema, made.jobs, made.size) == (target, newest(), jobs, target.stat().st_size)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(one.name for one in path.parent.iterdir() if one.name.startswith(("copy", ".copy"))) == ["copy.db"]
    copied = sqlite_store(target, busy.clock)
    assert copied.execute(newest_job) == jobs
    copied.close()
    assert check(target, busy.clock.now()).sound


def test_a_copy_shows_one_moment_of_a_store_in_use(busy: World, path: Path) -> None:
    def copy_half_way(tx: object) -> int:
        sqlite_of(busy.store).script("insert into meta values ('half', 'way')")
        return backup(path, path.with_name("copy.db")).jobs

    jobs = busy.do(copy_half_way)
    copied = SqliteConnection(path.with_name("copy.db"), readonly=True)
    assert copied.rows("select count(*) from meta where name = 'half'") == [(0,)]
    assert copied.rows("select count(*) from jobs") == [(jobs,)]
    copied.close()


@pytest.mark.parametrize("what", ["file", "folder", "link to nothing", "the store itself"])
def test_a_copy_never_overwrites_anything(busy: World, path: Path, what: str) -> None:
    target = path.with_name("copy.db")
    if what == "file":
        target.write_text("precious")
    elif what == "folder":
        target.mkdir()
    elif what == "link to nothing":
        target.symlink_to(path.with_name("nothing"))
    else:
        target = path
    before = sorted(path.parent.iterdir())
    with pytest.raises(Problem) as error:
        backup(path, target)
    assert error.value.code == "target_exists"
    assert sorted(path.parent.iterdir()) == before


def test_a_copy_that_cannot_be_made_leaves_nothing_behind(
    busy: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Problem) as error:
        backup(path, path.parent / "missing" / "copy.db")
    assert error.value.code == "no_folder"

    def full(self: SqliteConnection, target: Path) -> None:
        target.write_bytes(b"half a copy")
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(SqliteConnection, "copy_to", full)
    before = sorted(path.parent.iterdir())
    with pytest.raises(StoreError) as store_error:
        backup(path, path.with_name("copy.db"))
    assert store_error.value.code == "store_full"
    assert sorted(path.parent.iterdir()) == before


def test_a_damaged_copy_is_not_kept(busy: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        maintenance, "_damage", lambda connection: [maintenance.Finding("damaged", "pages", 1, ("row 7 missing",))]
    )
    with pytest.raises(StoreError) as error:
        backup(path, path.with_name("copy.db"))
    assert (error.value.code, error.value.found) == ("store_damaged", "row 7 missing")
    assert not path.with_name("copy.db").exists()


def test_a_plan_names_what_is_missing_and_changes_nothing(
    busy: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (plan(path).steps, plan(path).schema) == ((), newest())
    known = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: [*known, MORE])
    planned = plan(path)
    assert [(step.number, step.name, step.checksum) for step in planned.steps] == [
        (MORE.number, MORE.name, MORE.checksum)
    ]
    assert (planned.schema, planned.newest) == (known[-1].number, MORE.number)
    assert busy.do(newest_job) > 0


def test_an_older_store_is_copied_and_then_migrated(busy: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: [*known, MORE])
    done = maintenance.migrate(path)
    assert (done.before, done.schema, [step.name for step in done.steps]) == (
        known[-1].number, MORE.number, [MORE.name],
    )  # fmt: skip
    assert done.backup is not None
    assert stat.S_IMODE(done.backup.stat().st_mode) == 0o600
    again = maintenance.migrate(path)
    assert (again.steps, again.backup) == ((), None)
    monkeypatch.undo()
    kept = sqlite_store(done.backup, busy.clock)
    assert kept.execute(newest_job) == busy.store.look(newest_job)
    kept.close()


def test_a_program_that_runs_while_another_migrates_is_told_at_its_next_write(
    busy: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: [*known, MORE])
    maintenance.migrate(path)
    with pytest.raises(StoreError) as error:
        busy.job()
    assert error.value.code == "store_newer"


def test_a_second_copy_before_a_migration_does_not_replace_the_first(
    busy: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.steps()
    broken = Step(MORE.number, MORE.name, "create table more (x integer); insert into nowhere values (1);")
    monkeypatch.setattr(migrate, "steps", lambda: [*known, broken])
    for _ in range(2):
        with pytest.raises(StoreError) as error:
            maintenance.migrate(path)
        assert error.value.code == "store_migration_failed"
    assert len(list(path.parent.glob("*.backup"))) == 2
    monkeypatch.undo()
    assert plan(path).schema == known[-1].number
    assert busy.job() > 1


def test_two_programs_that_migrate_at_once_do_it_once(busy: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: [*known, MORE])
    mine, yours = SqliteConnection(path), SqliteConnection(path)
    begin = mine.begin

    def late(clock: Clock) -> int:
        assert migrate.migrate(yours, SQLITE).steps == [MORE]
        return begin(clock)

    monkeypatch.setattr(mine, "begin", late)
    assert migrate.migrate(mine, SQLITE) == migrate.Migrated([], None)
    assert mine.schema == yours.schema == MORE.number
    mine.close()
    yours.close()


@pytest.mark.parametrize("question", [check, plan, maintenance.migrate])
def test_where_there_is_no_store_none_is_made(path: Path, question: object) -> None:
    assert callable(question)
    with pytest.raises(Problem) as error:
        question(path)
    assert error.value.code == "no_store"
    assert list(path.parent.iterdir()) == []


def test_the_mark_of_a_store_is_not_that_of_an_empty_file() -> None:
    assert int.from_bytes(b"PACE", "big") == APPLICATION_ID
