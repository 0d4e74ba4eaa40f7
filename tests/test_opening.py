"""A store is opened as it is, made or migrated where that was asked for, or refused in one clear error."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from paceline.cli.main import main
from paceline.config import Settings
from paceline.core.problem import Problem
from paceline.errors import StoreError, UsageError
from paceline.opening import open_store
from paceline.store import doors, migrate
from paceline.store.migrate import Step, newest
from paceline.store.postgres_place import place_of
from postgres_server import fresh_database, say

MORE = Step(newest() + 1, "9999_more", "create table more (x integer primary key);")


@pytest.fixture
def server() -> Iterator[str]:
    """An empty Postgres database."""
    with fresh_database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Where a store of each kind may be made."""
    if request.param == "sqlite":
        return Settings(store=f"sqlite:///{tmp_path / 'work.db'}")
    return Settings(store=request.getfixturevalue("server"))


def refused(settings: Settings, *, create: bool) -> Problem:
    with pytest.raises(Problem) as error:
        open_store(settings, create=create)
    assert "secret" not in str(error.value)
    return error.value


def test_who_only_looks_makes_no_store(settings: Settings) -> None:
    for _ in range(2):
        assert refused(settings, create=False).code == "no_store"
    opened = open_store(settings)
    opened.store.close()
    again = open_store(settings, create=False)
    assert again.id == opened.id
    again.store.close()


def test_a_newer_store_is_refused_with_both_versions(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.steps()
    with monkeypatch.context() as later:
        later.setattr(migrate, "steps", lambda: [*known, MORE])
        open_store(settings).store.close()
    for create in (False, True):
        problem = refused(settings, create=create)
        assert problem.code == "store_newer"
        assert (problem.found, problem.allowed) == (f"schema {newest() + 1}", f"up to schema {newest()}")


def test_an_older_store_is_migrated_by_who_works_and_refused_to_who_only_looks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = open_store(settings)
    known = migrate.steps()
    monkeypatch.setattr(migrate, "steps", lambda: [*known, MORE])
    problem = refused(settings, create=False)
    assert problem.code == "store_older"
    assert (problem.found, problem.allowed) == (f"schema {len(known)}", f"schema {MORE.number}")
    assert "paceline db migrate" in problem.todo
    assert working.store.execute(lambda tx: tx.lanes.tenant("still at work")) > 0
    open_store(settings).store.close()
    open_store(settings, create=False).store.close()
    with pytest.raises(StoreError) as error:
        working.store.execute(lambda tx: tx.lanes.tenant("too late"))
    assert error.value.code == "store_newer"
    working.store.close()


def test_a_store_that_other_migrations_made_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(settings).store.close()
    other = [step._replace(text=f"{step.text} ") for step in migrate.steps()]
    monkeypatch.setattr(migrate, "steps", lambda: other)
    assert refused(settings, create=False).code == "store_altered"
    assert refused(settings, create=True).code == "store_altered"


def test_a_server_that_is_too_old_is_told_at_the_door(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "LEAST_SERVER", 99)
    problem = refused(Settings(store=server), create=True)
    assert (problem.code, problem.allowed) == ("store_old_server", "PostgreSQL 99 or newer")
    assert schemas(server) == []


def test_a_database_that_cannot_keep_every_text_is_told_at_the_door(server: str) -> None:
    name = f"{place_of(server).conninfo.partition('?')[0].rpartition('/')[2]}_ascii"
    say(server, f"create database {name} encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'")
    try:
        problem = refused(Settings(store=server.replace(name.removesuffix("_ascii"), name)), create=True)
        assert (problem.code, problem.found) == ("store_encoding", "encoding SQL_ASCII")
    finally:
        say(server, f"drop database {name} with (force)")


def test_a_database_that_takes_no_writes_says_so(server: str) -> None:
    open_store(Settings(store=server)).store.close()
    problem = refused(Settings(store=f"{server}&options=-c%20default_transaction_read_only%3Don"), create=False)
    assert problem.code == "store_readonly"
    assert "standby" in problem.what


@pytest.fixture
def poor(server: str) -> Iterator[str]:
    """The same database for a user without rights."""
    name = f"poor_{place_of(server).conninfo.partition('?')[0][-12:]}"
    say(server, f"create role {name} login")
    yield server.replace("postgres@", f"{name}:secret@")
    say(server, f"drop owned by {name} cascade", f"drop role {name}")


def test_a_user_without_rights_is_told_which_are_needed(server: str, poor: str) -> None:
    assert refused(Settings(store=poor), create=False).code == "no_store"
    problem = refused(Settings(store=poor), create=True)
    assert (problem.code, "***" in problem.where) == ("store_not_allowed", True)
    open_store(Settings(store=server)).store.close()
    assert refused(Settings(store=poor), create=True).code == "store_not_allowed"


def test_who_may_not_make_a_schema_may_use_one_of_his_own(server: str, poor: str) -> None:
    user = poor.partition("//")[2].partition(":")[0]
    say(server, f"create schema paceline authorization {user}")
    open_store(Settings(store=poor)).store.close()
    assert len(schemas(server)) == 1


def test_a_schema_with_tables_of_others_is_not_touched(server: str) -> None:
    say(server, "create schema paceline", "create table paceline.meta (x int)", "create table paceline.jobs (y int)")
    for create in (False, True):
        assert refused(Settings(store=server), create=create).code == "store_foreign"


def schemas(server: str) -> list[str]:
    with psycopg.connect(server) as session:
        return [row[0] for row in session.execute("select nspname from pg_namespace where nspname = 'paceline'")]


URLS = {
    "a percent sign": ("postgresql://me:sec%ret@host.invalid/db", "bad_store"),
    "a slash": ("postgresql://me:sec/ret@host.invalid/db", "bad_store"),
    "a question mark": ("postgresql://me:sec?ret@host.invalid/db", "bad_store"),
    "a number sign": ("postgresql://me:sec#ret@host.invalid/db", "bad_store"),
    "half an address": ("postgresql://me:secret@[::1/db", "bad_store"),
    "an unknown parameter": ("postgresql://me:secret@host.invalid/db?colour=red", "store_bad_url"),
    "a parameter that is no word": ("postgresql://me:secret@host.invalid/db?a%20b=1", "bad_store"),
    "nobody there": ("postgresql://me:secret@127.0.0.1:1/db", "store_unreachable"),
    "no such socket": ("postgresql:///db?host=/nowhere&password=secret", "store_unreachable"),
    "another schema's name": ("postgresql://me:secret@host.invalid/db?schema=No-Such", "bad_store"),
}


@pytest.mark.parametrize(("url", "code"), URLS.values(), ids=URLS.keys())
def test_a_url_that_leads_nowhere_is_told_without_its_password(
    url: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = refused(Settings(store=url), create=False)
    assert problem.code == code
    assert problem.todo or problem.allowed
    assert isinstance(problem, UsageError if code == "bad_store" else StoreError)
    assert main(["doctor", "--store", url, "-o", "json"]) == 1
    assert main(["db", "check", "--store", url]) > 0
    assert main(["db", "copy", url, "sqlite:///copy.db"]) > 0
    assert main(["db", "backup", "copy.dump", "--store", url]) > 0
    said = "".join(capsys.readouterr())
    assert "ret@" not in said
    assert "secret" not in said
    assert "Traceback" not in said


def test_a_place_shows_its_schema_and_never_its_password() -> None:
    place = place_of("postgresql://me:secret@host/db?sslmode=require&schema=two&password=hidden")
    assert place.shown == "postgresql://me:***@host/db?sslmode=require&password=***&schema=two"
    assert place.open == "postgresql://me@host/db?sslmode=require"
    assert place_of("postgresql:///db").shown == "postgresql:///db"


def test_without_the_driver_each_command_names_what_brings_it(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "paceline.store.postgres", None)
    for words in (
        ["ps"],
        ["doctor"],
        ["nodes"],
        ["db", "check"],
        ["db", "migrate"],
        ["db", "copy", server, "sqlite:///x"],
    ):
        assert main([*words, "--store", server]) > 0
        said = "".join(capsys.readouterr())
        assert "pip install 'paceline[postgres]'" in said
        assert "[bug]" not in said
