"""What may be wrong with a store when it is opened or while it is used: one clear error each, and nothing changed."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from paceline.config import Settings
from paceline.core.problem import Problem
from paceline.errors import StoreError, UsageError
from paceline.opening import open_store, path_of
from paceline.store import migrate, sqlite
from paceline.store.doors import sqlite_store
from paceline.store.migrate import Step, newest
from paceline.store.protocol import Tx
from paceline.store.trouble import explain, explain_os
from paceline.store.turn import Turn
from paceline.testing.clock import ManualClock
from store.stores import DATABASES, sqlite_of
from store.world import World, newest_job

Arrange = Callable[[Path], object]


def a_store(path: Path) -> None:
    """A store that somebody has used and left, all of it in the file itself."""
    with closing(DATABASES["sqlite-file"].open(path.parent, ManualClock())) as store:
        World(store, ManualClock()).jobs(200)
        sqlite_of(store)._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def changed(sql: str) -> Arrange:
    def arrange(path: Path) -> None:
        a_store(path)
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute(sql)

    return arrange


def overwritten(start: int, data: bytes) -> Arrange:
    def arrange(path: Path) -> None:
        a_store(path)
        content = bytearray(path.read_bytes())
        content[start : start + len(data)] = data
        path.write_bytes(content)

    return arrange


def cut_off(path: Path) -> None:
    a_store(path)
    os.truncate(path, path.stat().st_size // 3)


def foreign(sql: str, journal: str = "delete") -> Arrange:
    def arrange(path: Path) -> None:
        with closing(apsw.Connection(str(path))) as connection:
            connection.pragma("journal_mode", journal)
            connection.execute(sql)

    return arrange


def only_its_log(path: Path) -> None:
    a_store(path)
    path.with_name("work.db-wal").write_bytes(b"what was written last")
    path.unlink()


def link(path: Path) -> None:
    real = path.with_name("real.db")
    a_store(path)
    path.rename(real)
    path.symlink_to(real)


def open_to_others(path: Path) -> None:
    a_store(path)
    path.chmod(0o666)


DOORS: dict[str, tuple[Arrange, str]] = {
    "a text": (lambda path: path.write_text("once upon a time\n" * 100), "store_not_a_database"),
    "a short text": (lambda path: path.write_text("once"), "store_not_a_database"),
    "noise": (lambda path: path.write_bytes(bytes(range(256)) * 64), "store_not_a_database"),
    "an empty file": (lambda path: path.touch(), "store_empty"),
    "a store whose beginning is gone": (overwritten(0, b"\0" * 100), "store_not_a_database"),
    "a store that was cut off": (cut_off, "store_damaged"),
    "a store with a broken schema": (overwritten(100, b"\xff" * 3_000), "store_damaged"),
    "another program's database": (foreign("create table t (x); pragma application_id = 7"), "store_foreign"),
    "a database without a mark": (foreign("create table t (x)"), "store_foreign"),
    "a database without tables": (foreign("pragma user_version = 3"), "store_foreign"),
    "another program's database with a log": (foreign("create table t (x)", "wal"), "store_foreign"),
    "a newer schema": (changed(f"pragma user_version = {newest() + 1}"), "store_newer"),
    "other migrations than ours": (
        changed("update meta set value = 'other' where name like 'migration%'"), "store_altered",
    ),
    "no record of migrations": (changed("delete from meta"), "store_altered"),
    "a folder": (lambda path: path.mkdir(), "store_not_a_file"),
    "a pipe": (os.mkfifo, "store_not_a_file"),
    "a link": (link, "store_not_a_file"),
    "a link to nothing": (lambda path: path.symlink_to(path.with_name("nothing")), "store_not_a_file"),
    "a log without its database": (only_its_log, "store_gone"),
    "a file that others may write": (open_to_others, "store_unsafe"),
    "a folder that everybody may write": (lambda path: path.parent.chmod(0o777), "store_unsafe"),
}  # fmt: skip


def picture(folder: Path) -> dict[str, bytes | str]:
    """Every file and what is in it, but for the empty and the shared ones that come and go."""
    found: dict[str, bytes | str] = {}
    for path in folder.iterdir():
        if path.suffix not in (".lock", ".db-shm") and not (path.suffix == ".db-wal" and not path.stat().st_size):
            plain = path.is_file() and not path.is_symlink()
            found[path.name] = path.read_bytes() if plain else "something else"
    return found


@pytest.mark.parametrize(("arrange", "code"), DOORS.values(), ids=DOORS.keys())
def test_what_is_not_a_store_that_we_can_use_is_refused_and_left_alone(
    tmp_path: Path, arrange: Arrange, code: str
) -> None:
    path = tmp_path / "work.db"
    arrange(path)
    before = picture(tmp_path)
    with pytest.raises(StoreError) as error:
        open_store(Settings(store=f"sqlite:///{path}"))
    assert error.value.code == code
    assert str(tmp_path) in error.value.where
    assert error.value.todo
    assert picture(tmp_path) == before
    tmp_path.chmod(0o700)


URLS = {
    "postgres://me:secret@127.0.0.1:1/db": "store_unreachable",
    "work.db": "bad_store",
    "": "bad_store",
    "sqlite://work.db": "bad_store",
    "sqlite:///": "bad_store",
    "sqlite:////": "bad_store",
    "sqlite:///wo\0rk.db": "bad_store",
    "sqlite:///wo\nrk.db": "bad_store",
    "sqlite:///wo\ud800rk.db": "bad_store",
    "sqlite:///missing/work.db": "no_folder",
    "sqlite:///~/work.db": "no_folder",
    f"sqlite:///{'x' * 300}.db": "store_cannot_open",
    f"sqlite:///{'x/' * 3_000}work.db": "store_cannot_open",
}


@pytest.mark.parametrize(("url", "code"), URLS.items(), ids=[str(place) for place in range(len(URLS))])
def test_a_url_that_names_no_store_is_refused_and_nothing_is_made(
    url: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Problem) as error:
        open_store(Settings(store=url))
    assert error.value.code == code
    assert "secret" not in str(error.value)
    assert str(error.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_urls_of_memory_and_of_files() -> None:
    assert path_of("sqlite://:memory:") is path_of("sqlite:///:memory:") is path_of("sqlite://") is None
    assert path_of("sqlite:///a/b.db") == Path("a/b.db")
    assert path_of("sqlite:////a/b c.db") == Path("/a/b c.db")


def test_a_store_is_made_only_where_that_was_asked_for(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/.paceline/paceline.db")
    with pytest.raises(UsageError) as error:
        open_store(settings, create=False)
    assert error.value.code == "no_store"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_new_store_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        opened = open_store(Settings(store=f"sqlite:///{tmp_path}/.paceline/paceline.db"))
        opened.store.execute(lambda tx: tx.lanes.tenant("x"))
    finally:
        os.umask(before)
    opened.store.close()
    folder = tmp_path / ".paceline"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes) == {
        ".gitignore", "paceline.db", "paceline.db-wal", "paceline.db-shm", "paceline.db.lock",
    }  # fmt: skip
    assert set(modes.values()) == {0o600}
    assert open_store(Settings(store=f"sqlite:///{folder}/paceline.db"), create=False).id == opened.id


def test_a_store_that_two_programs_make_at_once_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "work.db"
    take = Turn.take
    ids: list[str] = []

    def overtaken(self: Turn, patience: float) -> bool:
        if not ids:
            ids.append("")
            ids[0] = open_store(Settings(store=f"sqlite:///{path}")).id
        return take(self, patience)

    monkeypatch.setattr(Turn, "take", overtaken)
    assert open_store(Settings(store=f"sqlite:///{path}")).id == ids[0]


def test_a_store_that_could_not_be_made_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Step(1, "0001_broken", "create table meta (name text, value text); select * from nowhere;")
    monkeypatch.setattr(migrate, "steps", lambda: [broken])
    with pytest.raises(StoreError) as error:
        open_store(Settings(store=f"sqlite:///{tmp_path}/work.db"))
    assert error.value.code == "store_migration_failed"
    assert [path.name for path in tmp_path.iterdir()] == ["work.db.lock"]


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A store in use, with little patience."""
    monkeypatch.setattr(sqlite, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sqlite, "BUSY_MILLISECONDS", 1)
    clock = ManualClock()
    store = DATABASES["sqlite-file"].open(tmp_path, clock)
    yield World(store, clock)
    store.close()


def lost(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replaced(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))
    path.write_bytes(path.with_name("elsewhere.db").read_bytes())


@pytest.mark.parametrize("how", [lost, moved, replaced])
def test_a_file_that_goes_while_it_is_in_use_is_noticed_again_and_again_and_never_made_anew(
    used: World, how: Arrange, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sqlite_of(used.store).path
    assert path is not None
    used.job()
    monkeypatch.setattr(sqlite, "LOOK_SECONDS", 3_600.0)
    used.job()
    monkeypatch.setattr(sqlite, "LOOK_SECONDS", 0.0)
    how(path)
    doors: tuple[Callable[[], object], ...] = (used.job, used.job, lambda: used.store.look(lambda tx: tx.now))
    for door in doors:
        with pytest.raises(Problem) as error:
            door()
        assert error.value.code in ("store_gone", "no_store")
        monkeypatch.setattr(sqlite, "LOOK_SECONDS", 3_600.0)
    assert path.exists() is (how is replaced)


def test_a_database_that_another_program_has_locked_is_busy_and_then_goes_on(used: World) -> None:
    with closing(apsw.Connection(str(sqlite_of(used.store).path))) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreError) as error:
            used.job()
        assert (error.value.code, error.value.where) == ("store_busy", str(sqlite_of(used.store).path))
        with pytest.raises(StoreError) as error:
            sqlite_store(sqlite_of(used.store).path, used.clock).execute(lambda tx: tx.now)
        assert error.value.code == "store_busy"
        assert used.store.look(newest_job) == 0
        other.execute("rollback")
    assert used.job() == 1


def test_a_full_database_takes_nothing_and_goes_on_by_itself_when_there_is_room(used: World) -> None:
    pages = used.store._connection.rows("pragma page_count")[0][0]
    sqlite_of(used.store).script(f"pragma max_page_count = {pages}")
    wishes = [used.wish(f'"{"x" * 4_000}"') for _ in range(100)]
    with pytest.raises(StoreError) as error:
        used.submit(*wishes)
    assert error.value.code == "store_full"
    done = used.store.commit([lambda tx: tx.now, _many(used), lambda tx: tx.now])
    assert [getattr(one.error, "code", None) for one in done][1] == "store_full"
    assert used.do(newest_job) == 0
    sqlite_of(used.store).script("pragma max_page_count = 1000000")
    assert len(used.submit(*wishes)) == 100
    assert used.broken() == []


def _many(world: World) -> Callable[[Tx], object]:
    def fill(tx: Tx) -> None:
        for _ in range(200):
            tx.listing.set_fact(f"fact {_}", "x" * 4_000)

    return fill


ERRORS = {
    "store_damaged": apsw.CorruptError("malformed"),
    "store_busy": apsw.LockedError("locked"),
    "store_full": apsw.FullError("full"),
    "store_readonly": apsw.ReadOnlyError("readonly"),
    "store_cannot_open": apsw.PermissionsError("no"),
    "store_io": apsw.IOError("disk"),
    "store_error": apsw.NoMemError("no memory"),
    "store_closed": apsw.ConnectionClosedError("closed"),
    "store_constraint": apsw.ConstraintError("check"),
}


@pytest.mark.parametrize(("code", "error"), ERRORS.items())
def test_each_error_of_the_database_is_said_in_the_common_form(code: str, error: apsw.Error, tmp_path: Path) -> None:
    said = explain(error, tmp_path / "work.db")
    assert said.code == code
    assert all((said.what, said.where, said.todo))


def test_each_error_of_the_operating_system_is_said_in_the_common_form(tmp_path: Path) -> None:
    codes = {
        errno.ENOSPC: "store_full", errno.EDQUOT: "store_full", errno.EFBIG: "store_full",
        errno.EACCES: "store_readonly", errno.EROFS: "store_readonly", errno.EMFILE: "store_too_many_files",
        errno.EIO: "store_io", errno.ENAMETOOLONG: "store_cannot_open",
    }  # fmt: skip
    said = {number: explain_os(OSError(number, os.strerror(number)), tmp_path / "work.db") for number in codes}
    assert {number: error.code for number, error in said.items()} == codes
    assert "mode" in said[errno.EACCES].found
    assert "user" in said[errno.EACCES].found
