"""`paceline db`: what it says about a store, and that a copy is a store."""

import json
from pathlib import Path

import pytest

from cli.conftest import Enter


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
