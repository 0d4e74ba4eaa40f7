"""`paceline doctor`: a verdict for each question, what to do, and an exit code for scripts."""

import json
import resource
from pathlib import Path

import psycopg
import pytest

from cli.conftest import Enter
from paceline.config import Settings
from paceline.health import Grade, origins, sqlite
from paceline.health.host import host
from paceline.store import places
from postgres_server import say


def verdicts(typed_out: str) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in json.loads(typed_out)["checks"]}


@pytest.fixture
def begun(enter: Enter, folder: Path) -> Path:
    """A folder with a store."""
    assert enter("init").code == 0
    return folder


def test_a_healthy_host_with_a_store_passes(enter: Enter, begun: Path) -> None:
    typed = enter("doctor", "-o", "json")
    found = verdicts(typed.out)
    assert typed.code == 0
    assert "fail" not in {one["verdict"] for one in found.values()}
    assert {"python", "sqlite", "clock", "disk", "open files", "file system", "folder", "file", "schema"} <= set(found)
    assert {"contents", "hints", "nodes", "work", "limits"} <= set(found)
    assert "slots" in enter("doctor").out


def test_without_a_store_it_says_how_to_begin(enter: Enter, folder: Path) -> None:
    typed = enter("doctor")
    assert typed.code == 0
    assert "paceline init" in typed.out
    assert list(folder.iterdir()) == []


def test_every_setting_is_shown_with_where_it_comes_from(
    enter: Enter, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (begun / "paceline.toml").write_text('slots = 5\ndrain = "2s"\n')
    monkeypatch.setenv("PACELINE_MAX_PENDING", "99")
    typed = enter("doctor", "--store", f"sqlite:///{begun}/.paceline/paceline.db", "-o", "json")
    said = json.loads(typed.out)["settings"]
    assert said["slots"] == {"value": 5, "from": "paceline.toml"}
    assert said["drain"] == {"value": "2 s", "from": "paceline.toml"}
    assert said["max_pending"] == {"value": 99, "from": "PACELINE_MAX_PENDING"}
    assert said["store"]["from"] == "command line"
    assert said["synchronous"]["from"] == "default"
    assert {one.name for one in origins(begun, {}, {})} == set(Settings.__dataclass_fields__)


def test_settings_that_cannot_be_read_fail_and_the_host_is_still_looked_at(enter: Enter, folder: Path) -> None:
    (folder / "paceline.toml").write_text("slots = -3\n")
    typed = enter("doctor", "-o", "json")
    found = verdicts(typed.out)
    assert typed.code == 1
    assert found["settings"]["verdict"] == "fail"
    assert found["python"]["verdict"] == "ok"


def test_an_old_sqlite_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.50.4")
    sqlite = next(one for one in host() if one.name == "sqlite")
    assert sqlite.grade is Grade.FAIL
    assert "apsw" in sqlite.todo


@pytest.mark.parametrize(("soft", "grade"), [(64, Grade.WARN), (32, Grade.FAIL), (4096, Grade.OK)])
def test_few_open_files_are_told(soft: int, grade: Grade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, 8192))
    files = next(one for one in host() if one.name == "open files")
    assert files.grade is grade
    assert (files.todo == "") is (grade is Grade.OK)


@pytest.mark.parametrize(("system", "says"), [("darwin", "no cgroups"), ("win32", "only inline agents")])
def test_a_platform_that_cannot_keep_a_promise_says_which(
    system: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.health.host.sys.platform", system)
    verdict = next(one for one in host() if one.name == "platform")
    assert verdict.grade is Grade.WARN
    assert says in verdict.found


def test_a_network_file_system_fails_and_names_the_way_out(
    enter: Enter, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = begun / "mounts"
    mounts.write_text(f"36 35 98:0 / {begun.resolve()} rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(places, "MOUNTS", mounts)
    typed = enter("doctor", "-o", "json")
    assert typed.code == 1
    assert "nfs4" in verdicts(typed.out)["file system"]["found"]
    assert "Postgres" in verdicts(typed.out)["file system"]["do"]


def test_a_folder_that_others_may_write_to_fails(enter: Enter, begun: Path) -> None:
    (begun / ".paceline").chmod(0o777)
    typed = enter("doctor")
    assert typed.code == 1
    assert "chmod 700" in typed.out


def test_a_file_that_is_no_store_fails(enter: Enter, folder: Path) -> None:
    (folder / "work.db").write_bytes(b"\0" * 4096)
    (folder / "work.db").chmod(0o600)
    typed = enter("doctor", "--store", "sqlite:///work.db", "-o", "json")
    assert typed.code == 1
    assert verdicts(typed.out)["schema"]["verdict"] == "fail"


def test_little_room_on_the_disk_is_told(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = 1 << 20

    monkeypatch.setattr("shutil.disk_usage", lambda _: Full)
    found = {one.name: one for one in sqlite.file_store(begun / ".paceline" / "paceline.db", Settings())}
    assert found["disk"].grade is Grade.FAIL


def test_work_that_nobody_can_do_is_told(enter: Enter, begun: Path) -> None:
    enter("run", "agents.py:greet", "x")
    assert enter("submit", "greet", "x").code == 0
    found = verdicts(enter("doctor", "-o", "json").out)
    assert "none runs" in found["nodes"]["found"]
    assert "greet" in found["work"]["found"]
    assert found["work"]["verdict"] == "warn"


def test_agents_that_block_a_thread_are_told(enter: Enter, begun: Path) -> None:
    (begun / "slow.py").write_text("from paceline import agent\n@agent\ndef dig(n: int) -> int:\n    return n\n")
    found = verdicts(enter("doctor", "--app", "slow.py", "-o", "json").out)
    assert "dig" in found["agents"]["found"]
    assert found["agents"]["verdict"] == "warn"


def test_limits_that_differ_from_the_store_are_shown(enter: Enter, folder: Path) -> None:
    (folder / "paceline.toml").write_text("[limits]\nllm = 3\n")
    enter("init")
    assert "llm 3" in verdicts(enter("doctor", "-o", "json").out)["limits"]["found"]
    (folder / "paceline.toml").write_text("[limits]\nllm = 9\n")
    assert verdicts(enter("doctor", "-o", "json").out)["limits"]["verdict"] == "warn"


SERVER = {
    "server", "encoding", "writes", "durability", "isolation", "connections", "pooler", "clock of server", "rights",
    "transactions", "prepared ones", "dead rows",
}  # fmt: skip


def test_a_server_with_a_store_is_looked_at_from_the_way_there_to_what_is_in_it(enter: Enter, server: str) -> None:
    assert enter("init").code == 0
    typed = enter("doctor", "-o", "json")
    found = verdicts(typed.out)
    assert typed.code == 0
    assert set(found) >= SERVER | {"schema", "contents", "hints", "nodes", "work", "limits"}
    assert {found[name]["verdict"] for name in SERVER - {"durability", "connections"}} == {"ok"}
    assert found["schema"]["verdict"] == found["contents"]["verdict"] == "ok"


def test_a_server_without_a_store_says_how_to_begin_and_none_is_made(enter: Enter, server: str) -> None:
    for _ in range(2):
        found = verdicts(enter("doctor", "-o", "json").out)
        assert (found["store"]["verdict"], "paceline init" in found["store"]["do"]) == ("warn", True)
        assert "contents" not in found


def test_a_password_is_not_shown(enter: Enter, server: str) -> None:
    enter("init")
    typed = enter("doctor", "--store", server.replace("postgres@", "postgres:secret@"))
    assert typed.code == 0
    assert "secret" not in typed.out + typed.err


def test_a_server_whose_store_is_older_or_newer_or_broken_is_told(enter: Enter, server: str) -> None:
    enter("init")
    say(server, "update paceline.meta set value = '9' where name = 'schema'")
    found = verdicts(enter("doctor", "-o", "json").out)
    assert (found["schema"]["verdict"], "9" in found["schema"]["found"]) == ("fail", True)
    say(server, "update paceline.meta set value = '1' where name = 'schema'",
        "insert into paceline.leases values (1, 'llm', 1, 1)")  # fmt: skip
    typed = enter("doctor", "-o", "json")
    assert typed.code == 1
    assert "leases" in verdicts(typed.out)["contents"]["found"]


def test_a_transaction_that_is_left_open_is_named(enter: Enter, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    enter("init")
    monkeypatch.setattr("paceline.store.postgres_care.LONG", 0)
    with psycopg.connect(server, application_name="forgotten") as session:
        session.execute("select 1")
        process = session.info.backend_pid
        found = verdicts(enter("doctor", "-o", "json").out)["transactions"]
    assert found["verdict"] == "warn"
    assert f"process {process} (forgotten, idle in transaction)" in found["found"]
