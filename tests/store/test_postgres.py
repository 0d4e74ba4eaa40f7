"""What only Postgres can get wrong: plans that outlive a small table, and errors that are said late."""

import psycopg
import pytest

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS
from paceline.errors import StoreError
from paceline.store.connection import TryAgain
from paceline.store.protocol import Tx
from paceline.units.submit import submit
from store.stores import DATABASES, Database, postgres_of
from store.world import World, room_for_all


@pytest.fixture
def database() -> Database:
    """Only this one."""
    return DATABASES["postgres"]


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
