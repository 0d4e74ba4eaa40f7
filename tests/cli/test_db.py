"""`paceline db`: what it says about a store, and that a copy is a store."""

import json
from pathlib import Path

import pytest

from cli.conftest import Enter
from paceline.store import migrate
from paceline.store.migrate import Step, newest
from postgres_server import say


@pytest.fixture
def stocked(enter: Enter, folder: Path) -> Path:
    """A folder whose store holds one finished job."""
    (folder / "agents.py").write_text("async def db_seven() -> int:\n    return 7\n")
    assert enter("run", "agents.py:db_seven").code == 0
    return folder


def test_a_sound_store_is_said_to_be_sound(enter: Enter, stocked: Path) -> None:
    typed = enter("db", "check")
    assert (typed.code, typed.err) == (0, "")
    assert "1 job," in typed.out
    assert "sound" in typed.out
    report = json.loads(enter("db", "check", "-o", "json").out)
    assert (report["sound"], report["jobs"], report["findings"]) == (True, 1, [])


def test_a_damaged_store_is_not(enter: Enter, stocked: Path) -> None:
    assert enter("db", "backup", "copy.db").code == 0
    with (stocked / "copy.db").open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 4)
    typed = enter("--store", "sqlite:///copy.db", "db", "check")
    assert typed.code == 1
    assert "store_damaged" in typed.err or "NOT sound" in typed.out


def test_a_backup_is_a_store_and_overwrites_nothing(enter: Enter, stocked: Path) -> None:
    typed = enter("db", "backup", "copy.db")
    assert (typed.code, typed.err) == (0, "")
    assert "1 job," in typed.out
    again = enter("db", "backup", "copy.db", "-o", "json")
    assert again.code == 2
    assert json.loads(again.err)["error"]["code"] == "target_exists"
    assert "sound" in enter("--store", "sqlite:///copy.db", "db", "check").out


def test_a_store_of_this_version_needs_no_migration(enter: Enter, stocked: Path) -> None:
    assert "nothing to do" in enter("db", "migrate", "--plan").out
    assert "nothing to do" in enter("db", "migrate").out
    assert json.loads(enter("db", "migrate", "--plan", "-ojson").out)["steps"] == []
    assert json.loads(enter("db", "migrate", "-ojson").out)["backup"] is None


@pytest.mark.parametrize("words", [["check"], ["backup", "x.db"], ["migrate"], ["migrate", "--plan"]])
def test_without_a_store_there_is_nothing_to_do_and_nothing_is_made(
    enter: Enter, folder: Path, words: list[str]
) -> None:
    typed = enter("db", *words)
    assert (typed.code, typed.out) == (2, "")
    assert "paceline init" in typed.err or "does not exist" in typed.err
    assert list(folder.iterdir()) == []


def test_a_store_in_memory_has_no_file(enter: Enter) -> None:
    typed = enter("db", "check", "--store", "sqlite://:memory:")
    assert typed.code == 2
    assert "name a file" in typed.err


def test_what_is_no_database_is_refused(enter: Enter, folder: Path) -> None:
    (folder / "words.db").write_text("this is a letter to somebody\n" * 500)
    (folder / "words.db").chmod(0o600)
    typed = enter("--store", "sqlite:///words.db", "db", "check")
    assert (typed.code, typed.out) == (1, "")
    assert "store_not_a_database" in typed.err


def test_a_store_on_a_server_is_checked_and_migrated_like_a_file(enter: Enter, server: str) -> None:
    assert enter("init").code == 0
    assert "0 jobs, 0 events, schema 1; sound" in enter("db", "check").out
    assert "nothing to do" in enter("db", "migrate", "--plan").out
    assert json.loads(enter("db", "migrate", "-ojson").out)["backup"] is None
    say(server, "insert into paceline.leases values (1, 'llm', 1, 1)")
    typed = enter("db", "check", "-o", "json")
    report = json.loads(typed.out)
    assert (typed.code, report["sound"], [one["code"] for one in report["findings"]]) == (1, False, ["lease_of_nobody"])
    assert report["bytes"] > 0


def test_an_older_store_is_migrated_when_asked_on_each_kind_of_database(
    enter: Enter, anywhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter("init")
    known = migrate.steps()
    more = Step(newest() + 1, "9999_more", "create table more (x integer primary key);")
    monkeypatch.setattr(migrate, "steps", lambda: [*known, more])
    assert enter("ps").code == 1
    assert "store_older" in enter("ps").err
    assert json.loads(enter("db", "migrate", "--plan", "-ojson").out)["steps"] == ["9999_more"]
    assert "store_older" in enter("ps").err
    assert "9999_more" in enter("db", "migrate").out
    assert enter("ps").code == 0
    monkeypatch.undo()
    assert enter("ps").code == 2  # the variable that names the store is gone with the rest


@pytest.mark.parametrize("words", [["check"], ["migrate"], ["migrate", "--plan"]])
def test_an_empty_database_has_no_store_and_none_is_made(enter: Enter, server: str, words: list[str]) -> None:
    for _ in range(2):
        typed = enter("db", *words)
        assert (typed.code, typed.out) == (2, "")
        assert "no_store" in typed.err


def test_a_store_on_a_server_is_backed_up_by_the_server(enter: Enter, server: str, folder: Path) -> None:
    enter("init")
    url = server.replace("postgres@", "postgres:secret@") + "&schema=two"
    typed = enter("db", "backup", "a copy.dump", "--store", url)
    assert typed.code == 2
    assert "pg_dump --format=custom --schema=two --file='a copy.dump'" in typed.err
    assert "secret" not in typed.err
    assert not (folder / "a copy.dump").exists()


def test_a_store_moves_to_a_server_and_back(enter: Enter, stocked: Path, server: str) -> None:
    here = "sqlite:///.paceline/paceline.db"
    typed = enter("db", "copy", here, server)
    assert typed.code == 0
    assert "1 job," in typed.out
    assert "must not be used any more" in typed.err
    assert "completed" in enter("ps").out
    assert "sound" in enter("db", "check").out
    assert enter("db", "copy", here, server).code == 4
    back = json.loads(enter("db", "copy", server, "sqlite:///back.db", "-o", "json").out)
    assert (back["rows"]["jobs"], back["returned"]) == (1, 0)
    assert "completed" in enter("ps", "--store", "sqlite:///back.db").out


def test_a_long_copy_says_how_far_it_is(enter: Enter, stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.cli.db.MANY", 1)
    typed = enter("db", "copy", "sqlite:///.paceline/paceline.db", "sqlite:///copy.db")
    assert "copied jobs: 1 row" in typed.err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("paceline.cli.db.TELL_EVERY", 0)
    typed = enter("db", "copy", "sqlite:///copy.db", "sqlite:///again.db")
    assert "copying jobs: 1 of 1" in typed.err
