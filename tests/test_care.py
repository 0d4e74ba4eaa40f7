"""Moving a store: every row arrives, in its order and under its number, work goes on there, or nothing has happened."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from paceline import Paceline, agent, care
from paceline.care import Home, copy, home_of
from paceline.clock import SystemClock, measure_offset
from paceline.core.lifecycle import State
from paceline.core.model import SECOND
from paceline.core.problem import Problem
from paceline.core.scheduling import QueueClass
from paceline.store import copying
from paceline.store.doors import postgres_store, sqlite_store
from paceline.store.postgres_place import place_of
from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from paceline.units.reap import end_node, give_back_jobs
from paceline.workers import identity
from postgres_server import fresh_database, say
from store.world import TERM, World

LOCAL = frozenset({"schema", "clock"})
Row = tuple[Any, ...]


@agent
async def care_double(n: int) -> int:
    return 2 * n


@pytest.fixture
def server() -> Iterator[str]:
    """An empty Postgres database."""
    with fresh_database() as url:
        yield url


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


def quiet(table: str, done: int, total: int) -> None:
    """Nobody looks."""


def open_at(home: Home) -> Store:
    clock = SystemClock(measure_offset())
    return sqlite_store(home, clock) if isinstance(home, Path) else postgres_store(home, clock)


def stocked(home: Home) -> World:
    """A store with jobs in every state, bodies, keys, sessions, limits and a log, that nobody works on any more."""
    world = World(open_at(home), ManualClock())
    for state in State:
        world.in_state(state)
    for place in range(5):
        world.job(body=f'"{"ä" * place}"', key=f"k{place}", session="chat", tenant=f"t{place % 2}", priority=place * 20)
    world.job(queue_class=QueueClass.BATCH, delay=3_600 * SECOND, deadline=world.do(lambda tx: tx.now) + TERM * 60)
    world.do(lambda tx: tx.listing.set_fact("store_id", "abc"))
    world.do(lambda tx: tx.pools.seed({"llm": 3}))
    world.do(lambda tx: tx.outcomes.keep_progress([(1, 0.1, "a\x1b[31m"), (2, 1 / 3, "b")]))
    return world


def settled(home: Home) -> World:
    """The same, with its only node gone and its jobs given back, so that a copy has nothing to mend."""
    world = stocked(home)
    world.do(lambda tx: end_node(tx, world.node, "stopped"))
    world.do(lambda tx: give_back_jobs(tx, world.node, "node_stopped"))
    return world


def rows_of(home: Home) -> dict[str, list[Row]]:
    """Everything in a store but what belongs to one database, each table sorted."""
    if isinstance(home, Path):
        with closing(apsw.Connection(str(home), flags=apsw.SQLITE_OPEN_READONLY)) as file:
            names = file.execute("select name from sqlite_schema where type = 'table'").fetchall()
            return _rows([str(name) for (name,) in names], lambda sql: file.execute(sql).fetchall())
    with psycopg.connect(home.conninfo) as session:
        session.execute(f"set search_path to {home.schema}".encode())
        tables = session.execute("select tablename from pg_tables where schemaname = current_schema()").fetchall()
        return _rows([name for (name,) in tables], lambda sql: session.execute(sql.encode()).fetchall())


def _rows(names: list[str], ask: Callable[[str], list[Row]]) -> dict[str, list[Row]]:
    found = {name: sorted(ask(f"select * from {name}"), key=repr) for name in names if name != "marks"}
    return {**found, "meta": [row for row in found["meta"] if row[0] not in LOCAL]}


def fact_of(home: Home, name: str) -> object:
    return next((value for fact, value in rows_of(home)["meta"] if fact == name), None)


def log_of(world: World) -> list[tuple[object, ...]]:
    """The whole log in its order, and what happened to each job."""
    log = world.do(lambda tx: tx.events.after(0, 10_000))
    jobs = world.do(lambda tx: tx.listing.find("newest", 1_000))
    return [*((one.id, one.job, one.kind, one.data) for one in log), *((job, tuple(world.words(job))) for job in jobs)]


def test_a_store_that_went_around_is_the_store_that_left(file: Path, server: str) -> None:
    settled(file).store.close()
    first, second, back = place_of(server), place_of(f"{server}&schema=second"), file.with_name("back.db")
    before = rows_of(file)
    for source, target in ((file, first), (first, second), (second, back)):
        done = copy(source, target, quiet)
        assert done.returned == 0
        assert done.rows["jobs"] == len(before["jobs"]) > 10
    assert rows_of(back) == before
    assert rows_of(file) == before
    assert fact_of(second, "store_id") == "abc"


@pytest.mark.parametrize("stretch", [(1, 1 << 30), (3, 1 << 30), (5_000, 1)])
def test_rows_travel_in_stretches_of_any_size(
    file: Path, stretch: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(file).store.close()
    monkeypatch.setattr(copying, "ROWS", stretch[0])
    monkeypatch.setattr(copying, "BYTES", stretch[1])
    told: list[tuple[str, int, int]] = []
    copy(file, file.with_name("copy.db"), lambda *word: told.append(word))
    assert rows_of(file.with_name("copy.db")) == rows_of(file)
    jobs = [word for word in told if word[0] == "jobs"]
    assert jobs[-1][1] == jobs[-1][2]
    assert [done for _, done, _ in jobs] == sorted({done for _, done, _ in jobs})


def test_events_that_postgres_has_numbered_become_their_places_in_the_log(file: Path, server: str) -> None:
    home, again = place_of(server), place_of(f"{server}&schema=again")
    world = settled(home)
    log = log_of(world)
    world.store.close()
    copy(home, file, quiet)
    copy(home, again, quiet)
    for target in (file, again):
        copied = World(open_at(target), ManualClock())
        assert log_of(copied)[: len(log)] == log
        assert max(row[0] for row in rows_of(target)["events"]) == len(rows_of(target)["events"])
        copied.complete(copied.running())
        assert copied.broken() == []
        copied.store.close()


@pytest.mark.parametrize("to", ["file", "server"])
def test_jobs_of_dead_nodes_return_to_the_queue_of_the_copy(file: Path, server: str, to: str) -> None:
    world = stocked(file)
    running = world.running()
    world.do(lambda tx: tx.pools.take([(running.id, "llm", running.epoch, 1)]))
    world.do(lambda tx: tx.nodes.beat(world.node, tx.now, tx.now))
    world.store.close()
    target: Home = file.with_name("copy.db") if to == "file" else place_of(server)
    assert copy(file, target, quiet).returned == 2
    copied = World(open_at(target), ManualClock())
    assert copied.state(running.id) is State.QUEUED
    assert copied.words(running.id)[-2:] == ["started", "given_back"]
    assert copied.do(lambda tx: tx.pools.held()) == {}
    assert copied.do(lambda tx: [node.ending for node in tx.nodes.newest(2)][1]) == "lease_expired"
    assert copied.broken() == []
    assert copied.claim(running.id)[0].epoch == running.epoch + 1
    copied.store.close()


def test_work_goes_on_where_it_was_copied_to(file: Path, server: str) -> None:
    async def submit() -> list[str]:
        async with Paceline(f"sqlite:///{file}", node=False, agents=[care_double]) as pl:
            return [job.id for job in await pl.submit_many(care_double, range(20))]

    async def go_on(jobs: list[str]) -> None:
        async with asyncio.timeout(20), Paceline(server, agents=[care_double]) as pl:
            assert await pl.results([pl.job(job) for job in jobs]) == [2 * n for n in range(20)]
            new = await pl.submit(care_double, 21)
            assert await new.result() == 42
            assert new.id == "j21"

    jobs = asyncio.run(submit())
    assert copy(file, place_of(server), quiet).rows["jobs"] == 20
    asyncio.run(go_on(jobs))
    assert care.check(place_of(server)).findings == ()


def refused(source: Home, target: Home) -> Problem:
    with pytest.raises(Problem) as error:
        copy(source, target, quiet)
    assert "secret" not in str(error.value)
    return error.value


@pytest.mark.parametrize("to", ["file", "server"])
def test_a_target_that_holds_jobs_is_refused_and_left_as_it_is(file: Path, server: str, to: str) -> None:
    settled(file).store.close()
    target: Home = file.with_name("other.db") if to == "file" else place_of(server)
    world = World(open_at(target), ManualClock())
    world.job()
    world.do(lambda tx: end_node(tx, world.node, "stopped"))
    world.store.close()
    before = rows_of(target)
    assert refused(file, target).code == "target_used"
    assert rows_of(target) == before


def test_an_empty_target_that_has_a_name_and_limits_of_its_own_takes_those_of_the_source(
    file: Path, server: str
) -> None:
    settled(file).store.close()
    store = open_at(place_of(server))
    store.execute(lambda tx: tx.listing.set_fact("store_id", "xyz"))
    store.execute(lambda tx: tx.pools.seed({"gpu": 1}))
    store.execute(lambda tx: tx.lanes.tenant("me"))
    store.close()
    copy(file, place_of(server), quiet)
    assert fact_of(place_of(server), "store_id") == "abc"
    assert rows_of(place_of(server))["pools"] == [("llm", 3)]


def test_nobody_may_work_on_source_or_target(file: Path, server: str) -> None:
    world = stocked(file)
    problem = refused(file, place_of(server))
    assert (problem.code, problem.found) == ("store_in_use", "n1")
    assert "paceline" not in schemas(server)
    world.do(lambda tx: end_node(tx, world.node, "stopped"))
    busy = World(open_at(place_of(server)), ManualClock())
    problem = refused(file, place_of(server))
    assert (problem.code, "target" in problem.what) == ("store_in_use", True)
    world.store.close()
    busy.store.close()


def schemas(server: str) -> list[str]:
    with psycopg.connect(server) as session:
        return [row[0] for row in session.execute("select nspname from pg_namespace")]


def test_a_node_whose_process_is_gone_is_not_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(open_at(file), ManualClock())
    dead = str(identity.current()).rpartition("/")[0] + "/1"
    world.do(lambda tx: tx.nodes.beat(world.node, tx.now, tx.now))
    world.do(lambda tx: tx.nodes.add("n2", dead, "1", 10, tx.now, tx.now + TERM))
    world.do(lambda tx: tx.nodes.add("n3", f"another-boot{dead[dead.index('/') :]}", "1", 10, tx.now, tx.now + TERM))
    assert refused(file, file.with_name("copy.db")).found == "n3"
    world.store.close()


def test_a_store_is_not_copied_into_itself_nor_out_of_nothing(file: Path, server: str) -> None:
    assert refused(file, file.with_name("copy.db")).code == "no_store"
    assert refused(place_of(server), file).code == "no_store"
    assert not file.exists()
    settled(file).store.close()
    assert refused(file, file.parent / ".." / file.parent.name / file.name).code == "same_store"
    assert refused(place_of(server), place_of(server)).code == "same_store"
    with pytest.raises(Problem) as error:
        home_of("sqlite://:memory:")
    assert error.value.code == "bad_store"


@pytest.mark.parametrize("to", ["file", "server"])
@pytest.mark.parametrize("table", ["agents", "jobs", "tenants"])
def test_a_copy_that_was_interrupted_has_not_happened(file: Path, server: str, to: str, table: str) -> None:
    settled(file).store.close()
    target: Home = file.with_name("copy.db") if to == "file" else place_of(server)

    def interrupt(name: str, done: int, total: int) -> None:
        if name >= table:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(file, target, interrupt)
    left = rows_of(target)
    assert {name for name, rows in left.items() if rows} == {"meta"}
    assert fact_of(target, "store_id") is None
    copy(file, target, quiet)
    assert len(rows_of(target)["jobs"]) == len(rows_of(file)["jobs"])


@pytest.mark.parametrize("of", ["file", "server"])
def test_what_is_written_to_the_source_meanwhile_is_not_left_behind(file: Path, server: str, of: str) -> None:
    source: Home = file if of == "file" else place_of(server)
    world = settled(source)

    def submit_meanwhile(name: str, done: int, total: int) -> None:
        if name == "jobs":
            world.job()

    with pytest.raises(Problem) as error:
        copy(source, file.with_name("copy.db"), submit_meanwhile)
    assert (error.value.code, "source" in error.value.what) == ("store_in_use", True)
    assert rows_of(file.with_name("copy.db"))["jobs"] == []
    world.store.close()


def test_a_source_that_is_damaged_is_told_and_not_copied(file: Path, server: str) -> None:
    world = settled(file)
    world.do(lambda tx: world.store._connection.write("delete from inputs where job = 3"))
    world.store.close()
    problem = refused(file, place_of(server))
    assert (problem.code, "j3" in problem.found) == ("copy_unsound", True)
    assert rows_of(place_of(server))["jobs"] == []


def test_a_character_that_postgres_does_not_keep_is_replaced(file: Path, server: str) -> None:
    world = settled(file)
    world.do(lambda tx: tx.outcomes.keep_progress([(3, 0.5, "a\0b")]))
    world.store.close()
    copy(file, place_of(server), quiet)
    assert (3, 0.5, "a\ufffdb") in rows_of(place_of(server))["progress"]


def test_tables_of_others_in_the_schema_are_not_copied_over(file: Path, server: str) -> None:
    settled(file).store.close()
    open_at(place_of(server)).close()
    say(server, "create table paceline.others (x bigint primary key)")
    assert refused(file, place_of(server)).code == "store_foreign"
