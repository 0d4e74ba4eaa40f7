"""What only Postgres can get wrong: plans that outlive a small table, sessions that end, commits nobody answers."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS
from paceline.errors import StoreError
from paceline.store.connection import TryAgain
from paceline.store.postgres_session import Session
from paceline.store.protocol import Tx
from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from paceline.units.submit import submit
from store.stores import DATABASES, postgres_of
from store.world import World, newest_job, room_for_all


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    opened = DATABASES["postgres"].open(tmp_path, clock)
    yield opened
    opened.close()


@pytest.fixture
def world(store: Store, clock: ManualClock) -> Iterator[World]:
    made = World(store, clock)
    yield made
    assert made.broken() == []


def read_so_far(world: World) -> int:
    """How many entries of the jobs' indexes anybody has ever read."""
    connection = postgres_of(world.store)
    connection.rows("select pg_stat_force_next_flush()")
    question = "select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'jobs'"
    return int(world.do(lambda tx: connection.rows(question))[0][0])


def test_a_plan_made_while_the_table_was_small_reads_no_more_when_it_is_large(world: World) -> None:
    for _ in range(6):
        world.complete(world.running())
    jobs = [job for _ in range(10) for job in world.jobs(UNIT_ROWS)]
    before = read_so_far(world)
    for claimed in world.claim(*jobs[-100:]):
        world.complete(claimed)
    assert read_so_far(world) - before < 10_000


def end_session(world: World) -> None:
    """Somebody ends the session of the store's connection on the server."""
    connection = postgres_of(world.store)
    (pid,) = connection.rows("select pg_backend_pid()")[0]
    with psycopg.connect(connection.place.conninfo, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 10000)", (pid,))


def test_a_session_that_ends_between_two_units_is_replaced_unseen(world: World) -> None:
    end_session(world)
    assert world.state(world.job()) is State.QUEUED


def test_a_unit_whose_session_ends_half_way_is_carried_out_once(world: World) -> None:
    tries: list[bool] = []

    def submit_and_lose(tx: Tx) -> list[int]:
        tries.append(tx.again)
        ids = submit(tx, [world.wish()], room_for_all)
        if len(tries) == 1:
            end_session(world)
        return ids

    (job,) = world.do(submit_and_lose)
    assert tries == [False, True]
    assert world.do(newest_job) == job
    assert [row.id for row in world.do(lambda tx: tx.jobs.rows(list(range(job + 1))))] == [job]


class Cut(Session):
    """A session whose commit goes out and whose answer never comes."""

    arrives = True

    def control(self, sql: str) -> None:
        if sql == "commit":
            if self.arrives:
                super().control(sql)
                self.wait()
            self.close()
        super().control(sql)


@pytest.fixture
def cut(world: World) -> Cut:
    """The store's present session, whose link is cut at the commit."""
    session = postgres_of(world.store)._session
    assert session is not None
    session.__class__ = Cut
    assert isinstance(session, Cut)
    return session


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_without_an_answer_is_looked_up_and_never_guessed(world: World, cut: Cut, arrives: bool) -> None:
    cut.arrives = arrives
    tries: list[bool] = []

    def count(tx: Tx) -> list[int]:
        tries.append(tx.again)
        return submit(tx, [world.wish()], room_for_all)

    (job,) = world.do(count)
    assert tries == ([False] if arrives else [False, True])
    assert [row.id for row in world.do(lambda tx: tx.jobs.rows(list(range(job + 1))))] == [job]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_that_wrote_no_event_leaves_a_mark_to_find(world: World, cut: Cut, arrives: bool) -> None:
    cut.arrives = arrives
    tries: list[bool] = []

    def note(tx: Tx) -> None:
        tries.append(tx.again)
        tx.listing.set_fact("written", str(len(tries)))

    world.do(note)
    assert world.do(lambda tx: tx.listing.fact("written")) == str(len(tries))
    assert tries == ([False] if arrives else [False, True])


def test_the_commit_of_a_failed_transaction_is_an_error_and_no_silent_rollback(world: World) -> None:
    connection = postgres_of(world.store)
    connection.begin(world.clock)
    with pytest.raises(psycopg.Error):
        connection.rows("select 1 / 0")
    connection._alive().settle()
    with pytest.raises(psycopg.Error):
        connection.commit(1)
    connection.rollback()


def test_a_statement_that_nobody_waited_for_fails_its_own_unit_and_no_other(world: World) -> None:
    def wrong(tx: Tx) -> str:
        postgres_of(world.store).lock("select 1 / 0")
        return "all seems well"

    done = world.store.commit([lambda tx: submit(tx, [world.wish()], room_for_all), wrong, lambda tx: "fine"])
    assert [type(one.error) for one in done] == [type(None), StoreError, type(None)]
    assert world.state(done[0].value[0]) is State.QUEUED


def test_a_race_is_another_try_and_a_wrong_statement_is_not(world: World) -> None:
    connection = postgres_of(world.store)
    assert isinstance(connection.explain(psycopg.errors.DeadlockDetected()), TryAgain)
    assert isinstance(connection.explain(psycopg.errors.SerializationFailure()), TryAgain)
    assert isinstance(connection.explain(psycopg.errors.UndefinedTable("no such table")), StoreError)
