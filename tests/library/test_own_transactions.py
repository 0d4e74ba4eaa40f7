"""A job submitted on a connection of the application's own exists if, and only if, that transaction commits."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from library.stage import double, play
from paceline import JobFailed, NotFound, Paceline, PacelineError, State, UsageError, WaitTimedOut
from paceline.core.names import shown
from postgres_server import fresh_database

Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """One database for all tests of this file: they leave each other's jobs alone."""
    with fresh_database() as url:
        yield url


def play_on(url: str, act: Callable[[Paceline], Awaitable[None]], **settings: Any) -> None:
    """One act against the store in that database, with a node."""

    async def within() -> None:
        async with asyncio.timeout(30), Paceline(url, agents=[], **settings) as pl:
            await act(pl)

    asyncio.run(within())


def test_a_job_runs_once_its_transaction_has_committed(database: str) -> None:
    async def act(pl: Paceline) -> None:
        async with await psycopg.AsyncConnection.connect(database) as connection:
            async with connection.transaction():
                await connection.execute("create table orders (n int)")
                await connection.execute("insert into orders values (21)")
                job = await pl.submit(double, 21, connection=connection, priority="high", delay="10ms")
                with pytest.raises(WaitTimedOut):
                    await job.result(timeout=0.1)
                with pytest.raises(NotFound):
                    await job.state()
                await connection.execute("insert into orders values (22)")
            assert await job.result() == 42
            found = await (await connection.execute("select count(*) from orders")).fetchall()
            assert found == [(2,)]

    play_on(database, act)


def test_a_job_of_a_transaction_that_is_rolled_back_has_never_existed(database: str) -> None:
    async def act(pl: Paceline) -> None:
        with closing(psycopg.connect(database)) as connection:
            jobs = [await pl.submit(double, 1, connection=connection)]
            jobs += await pl.submit_many(double, range(3), connection=connection)
            connection.rollback()
            with pytest.raises(WaitTimedOut):
                await jobs[0].result(timeout=0.1)
            for job in jobs:
                with pytest.raises(NotFound):
                    await pl.job(job.id).result()
        assert await pl.jobs(state="created") == []

    play_on(database, act)


def test_many_jobs_belong_to_one_transaction(database: str) -> None:
    async def act(pl: Paceline) -> None:
        with psycopg.connect(database) as connection:
            jobs = await pl.submit_many(double, range(1_200), connection=connection)
        assert await pl.results(jobs) == [2 * n for n in range(1_200)]

    play_on(database, act)


def test_it_works_from_scripts_without_asyncio(database: str) -> None:
    with Paceline.sync(database, agents=[]) as pl, psycopg.connect(database) as connection:
        with connection.transaction():
            job = pl.submit(double, 4, connection=connection)
            jobs = pl.submit_many(double, [5, 6], connection=connection)
        assert pl.results([job, *jobs]) == [8, 10, 12]


def test_other_programs_work_beside_a_transaction_that_stays_open(database: str) -> None:
    async def act(pl: Paceline) -> None:
        first = await pl.submit(double, 1, delay="50ms")
        with psycopg.connect(database) as connection:
            mine = await pl.submit(double, 2, after=[first], key="mine", connection=connection)
            behind = await pl.submit(double, 3, after=[mine], connection=connection)
            assert await first.result() == 2
            assert await pl.results(await pl.submit_many(double, range(600), after=[first])) == [
                2 * n for n in range(600)
            ]
            with pytest.raises(PacelineError, match="key_undecided"):
                await pl.submit(double, 2, key="mine")
        assert await pl.results([mine, behind]) == [4, 6]
        assert await (await pl.submit(double, 2, key="mine")).result() == 4

    play_on(database, act)


def test_a_prerequisite_that_is_cancelled_meanwhile_fails_the_job(database: str) -> None:
    async def act(pl: Paceline) -> None:
        first = await pl.submit(double, 1, delay="1h")
        with psycopg.connect(database) as connection:
            job = await pl.submit(double, 2, after=[first], connection=connection)
            assert await first.cancel()
        with pytest.raises(JobFailed, match=f"dependency {first.id}"):
            await job.result()

    play_on(database, act)


def test_a_connection_that_speaks_its_own_dialect_is_left_as_it_was(database: str) -> None:
    """Other rows, other numbers, another search path, a cursor of its own: neither side notices the other's."""

    class Number(psycopg.adapt.Loader):
        def load(self, data: Any) -> str:
            return "a number"

    async def act(pl: Paceline) -> None:
        with psycopg.connect(database, row_factory=psycopg.rows.dict_row) as connection:
            for name in ("int8", "int4", "text"):
                connection.adapters.register_loader(name, Number)
            connection.execute("set search_path to pg_catalog")
            job = await pl.submit(double, 2, connection=connection)
            assert connection.execute("show search_path").fetchall() == [{"search_path": "a number"}]
            connection.execute("create table public.seen (n int)")
        assert await job.result() == 4

    play_on(database, act)


def test_a_queue_that_is_full_refuses_before_anything_is_written(database: str) -> None:
    async def act(pl: Paceline) -> None:
        with psycopg.connect(database) as connection:
            with pytest.raises(PacelineError, match="queue_full"):
                await pl.submit_many(double, range(50), connection=connection)
            with pytest.raises(PacelineError, match="input_invalid"):
                await pl.submit(double, "no number", connection=connection)
            job = await pl.submit(double, 2, connection=connection)
        assert await job.result() == 4

    play_on(database, act, max_pending=10)


def refused(url: str, database: str, connect: Callable[[str, ExitStack], Any]) -> PacelineError:
    """Why a connection cannot be used; nothing was written, and what it had open goes on."""
    errors: list[PacelineError] = []

    async def act(pl: Paceline) -> None:
        with ExitStack() as until:
            connection = connect(database, until)
            with pytest.raises(PacelineError) as error:
                await pl.submit(double, 1, connection=connection)
            errors.append(error.value)
            if isinstance(connection, psycopg.Connection) and not connection.closed:
                connection.rollback()
                assert connection.execute("select 1").fetchall() == [(1,)]

    play_on(url, act)
    return errors[0]


def _sound(url: str, until: ExitStack) -> Connection:
    return until.enter_context(closing(psycopg.connect(url)))


def _failed(url: str, until: ExitStack) -> Connection:
    connection = until.enter_context(closing(psycopg.connect(url)))
    with pytest.raises(psycopg.Error):
        connection.execute("select nonsense")
    return connection


def _closed(url: str, until: ExitStack) -> Connection:
    connection = psycopg.connect(url)
    connection.close()
    return connection


def _elsewhere(url: str, until: ExitStack) -> Connection:
    return until.enter_context(closing(psycopg.connect(until.enter_context(fresh_database()))))


def _of_another_schema(url: str, until: ExitStack) -> Connection:
    other = until.enter_context(fresh_database())
    with Paceline.sync(other, node=False):
        return until.enter_context(closing(psycopg.connect(other)))


def _reading(url: str, until: ExitStack) -> Connection:
    connection = until.enter_context(closing(psycopg.connect(url)))
    connection.read_only = True
    return connection


def _stranger(url: str, until: ExitStack) -> Connection:
    connection = until.enter_context(closing(psycopg.connect(url)))
    connection.execute("create role stranger; grant usage on schema paceline to stranger; set role stranger")
    return connection


def _cut_off(url: str, until: ExitStack) -> Connection:
    connection = psycopg.connect(url)
    until.callback(connection.close)
    (pid,) = connection.execute("select pg_backend_pid()").fetchall()[0]
    with psycopg.connect(url, autocommit=True) as killer:
        killer.execute("select pg_terminate_backend(%s, 5000)", [pid])
    return connection


REFUSED: dict[str, tuple[Callable[[str, ExitStack], Any], str, str]] = {
    "no connection": (lambda url, until: "conn", "bad_connection", "not a connection of psycopg"),
    "a cursor": (lambda url, until: until.enter_context(psycopg.connect(url)).cursor(), "bad_connection", "psycopg"),
    "autocommit": (
        lambda url, until: until.enter_context(psycopg.connect(url, autocommit=True)), "bad_connection",
        "no open transaction",
    ),
    "failed": (_failed, "bad_connection", "has failed"),
    "closed": (_closed, "bad_connection", "is closed"),
    "another database": (_elsewhere, "bad_connection", "another database"),
    "another store": (_of_another_schema, "bad_connection", "another database"),
    "read only": (_reading, "bad_connection", "may not write"),
    "of another user": (_stranger, "bad_connection", ""),
    "cut off": (_cut_off, "store_unreachable", ""),
}  # fmt: skip


@pytest.mark.parametrize(("connect", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_a_connection_that_cannot_be_used_is_refused_clearly(
    connect: Callable[[str, ExitStack], Any], code: str, words: str, database: str
) -> None:
    error = refused(database, database, connect)
    assert (error.code, words in error.what, bool(error.todo)) == (code, True, True), shown(error)


def test_a_store_that_is_no_postgres_has_no_such_transactions(database: str, tmp_path: Path) -> None:
    error = refused(f"sqlite:///{tmp_path / 'work.db'}", database, _sound)
    assert (error.code, isinstance(error, UsageError)) == ("bad_connection", True)
    assert "Postgres" in error.what

    async def act(pl: Paceline) -> None:
        assert await (await pl.submit(double, 1, connection=None)).result() == 2

    play(f"sqlite:///{tmp_path / 'work.db'}", act)


def test_an_asynchronous_connection_is_refused_where_nobody_runs_its_event_loop(database: str) -> None:
    with asyncio.Runner() as runner, Paceline.sync(database, node=False) as pl:
        connection = runner.run(psycopg.AsyncConnection.connect(database))
        for submit in (lambda: pl.submit(double, 1, connection=connection),
                       lambda: pl.submit_many(double, [1], connection=connection)):  # fmt: skip
            with pytest.raises(UsageError, match="another event loop"):
                submit()
        runner.run(connection.close())


def test_a_connection_of_another_event_loop_is_refused(database: str) -> None:
    """Known as soon as two of its users have met."""

    async def connected() -> AsyncConnection:
        connection = await psycopg.AsyncConnection.connect(database)
        await asyncio.gather(*(connection.execute("select 1") for _ in range(2)))
        return connection

    async def act(pl: Paceline) -> None:
        with pytest.raises(UsageError, match="another event loop"):
            await pl.submit(double, 1, connection=connection)

    with asyncio.Runner() as runner:
        connection = runner.run(connected())
        thread = threading.Thread(target=play_on, args=(database, act))
        thread.start()
        thread.join()
        runner.run(connection.close())


def test_an_open_transaction_of_a_key_can_be_submitted_to_again(database: str) -> None:
    async def act(pl: Paceline) -> None:
        with psycopg.connect(database) as connection:
            first = await pl.submit(double, 5, key="twice", connection=connection)
            assert await pl.submit(double, 5, key="twice", connection=connection) == first
            with pytest.raises(PacelineError, match="key_conflict"):
                await pl.submit(double, 6, key="twice", connection=connection)
        assert await first.wait() is State.COMPLETED

    play_on(database, act)
