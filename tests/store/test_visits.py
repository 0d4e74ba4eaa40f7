"""Submissions in somebody else's transaction: it may stay open for ever, and nobody has anything to wait for."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS, Edge, Met, Wants
from paceline.core.problem import Problem
from paceline.core.submission import Wish
from paceline.store.doors import postgres_visits
from paceline.store.protocol import Store, Tx, Unit
from paceline.testing.clock import ManualClock
from paceline.units.control import cancel
from paceline.units.visit import draft, plan, show_committed, write
from store.acts import completes, dispatches
from store.racing import Race, run
from store.stores import DATABASES, postgres_of
from store.world import World, newest_events, room_for_all

T = TypeVar("T")
PATIENCE = 10
POSTGRES = DATABASES["postgres"]


class Application:
    """A program with a connection of its own, whose transaction stays open until it says so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.place = postgres_of(world.store).place
        self.connection = psycopg.connect(self.place.conninfo)

    def write(self, *wishes: Wish, notice: tuple[str, str] | None = None) -> list[int]:
        """A submission in the open transaction."""
        prepared = self.world.do(lambda tx: plan(tx, wishes, room_for_all))
        visits = postgres_visits(self.place, notice)
        visits.check(self.connection)
        return asyncio.run(
            visits.carry_out(
                self.connection,
                lambda tx: draft(tx, wishes, prepared),
                lambda tx, asked: write(tx, wishes, prepared, asked),
            )
        )

    def commit(self) -> None:
        self.connection.commit()

    def show(self) -> None:
        """Commits, and a janitor comes by."""
        self.commit()
        while self.world.do(show_committed)[1]:
            pass


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    """An empty store on Postgres."""
    opened = POSTGRES.open(tmp_path, clock)
    yield opened
    opened.close()


@pytest.fixture
def other(world: World, tmp_path: Path, clock: ManualClock) -> Iterator[World]:
    """Somebody else with a connection of their own."""
    made = World(POSTGRES.open(tmp_path, clock), clock)
    yield made
    made.store.close()


@pytest.fixture
def application(world: World) -> Iterator[Application]:
    """The application, whose connection is left open by no test."""
    made = Application(world)
    yield made
    made.connection.close()


def soon(act: Callable[[], T]) -> T:
    """What has nothing to wait for is over at once."""
    threads = ThreadPoolExecutor(1)
    try:
        return threads.submit(act).result(PATIENCE)
    finally:
        threads.shutdown(wait=False)


def test_jobs_exist_when_the_transaction_commits_and_are_shown_by_whoever_comes_by(
    world: World, application: Application
) -> None:
    jobs = application.write(world.wish("1"), world.wish("2", inner=[0]))
    assert world.do(lambda tx: tx.jobs.rows(jobs)) == []
    assert world.do(show_committed) == (False, False)
    application.commit()
    assert [world.state(job) for job in jobs] == [State.CREATED, State.CREATED]
    assert world.do(show_committed) == (True, False)
    assert [world.words(job) for job in jobs] == [["queued"], ["blocked"]]
    assert world.do(lambda tx: tx.outcomes.input(jobs[0])) == "1"
    assert world.do(show_committed) == (False, False)


def test_of_a_transaction_that_is_rolled_back_nothing_is_left(world: World, application: Application) -> None:
    before = world.job()
    jobs = application.write(world.wish(after=[before], key="k"))
    application.connection.rollback()
    assert world.do(lambda tx: tx.jobs.rows(jobs)) == []
    tables = ("batches", "edges", "keys", "inputs")
    left = [world.do(lambda tx, table=table: count(world, table)) for table in tables]  # type: ignore[misc]
    assert left == [0, 0, 0, 1]
    assert world.job(key="k") > jobs[0]


def count(world: World, table: str) -> int:
    return int(postgres_of(world.store).rows(f"select count(*) from {table}")[0][0])


def test_an_open_transaction_holds_no_row_that_anybody_could_want(
    world: World, application: Application, other: World
) -> None:
    parent, before = world.running(), world.job(session="s")
    world.fail(world.running())
    application.write(world.wish(after=[before, parent.id]), world.wish(parent=parent.id))
    application.write(world.wish(key="k", tenant="new"))

    def hold_everything(tx: Tx) -> int:
        connection = postgres_of(other.store)
        tables = connection.rows("select tablename from pg_tables where schemaname = current_schema()")
        return sum(len(connection.rows(f"select 1 from {table} for update nowait")) for (table,) in tables)

    assert soon(lambda: other.do(hold_everything)) > 10
    locks = application.connection.execute("select mode from pg_locks where pid = pg_backend_pid()").fetchall()
    assert {mode for (mode,) in locks} <= {"RowExclusiveLock", "AccessShareLock", "ExclusiveLock"}


def test_claims_ends_and_submissions_go_on_beside_an_open_transaction(
    world: World, application: Application, other: World
) -> None:
    first, second = world.running(), world.running()
    waiting = world.job(after=[second.id])
    mine = application.write(world.wish(after=[first.id, second.id, waiting], parent=first.id, key="k"))

    def everything() -> None:
        other.complete(first)
        other.fail(second)
        job = other.job(after=[first.id], key="another", session="s", tenant="acme")
        claimed = other.claim(job)
        other.complete(claimed[0])
        batch, staged = other.stage(other.wish(), other.wish(inner=[0]))
        other.accept(batch)
        other.do(dispatches(other))
        other.cancel(staged[1])
        other.replay(second.id)

    soon(everything)
    application.show()
    assert world.state(mine[0]) is State.BLOCKED
    assert world.words(mine[0]) == ["blocked"]


@pytest.mark.parametrize("asked", ["after", "finished"])
@pytest.mark.parametrize("ends", ["complete", "fail", "cancel"])
def test_what_became_of_a_prerequisite_while_the_transaction_was_open_counts(
    world: World, application: Application, asked: str, ends: str
) -> None:
    first = world.running()
    job, behind = application.write(
        world.wish(**{asked: [first.id]}), world.wish(inner=[0])  # type: ignore[arg-type]
    )  # fmt: skip
    act: dict[str, Callable[[], Any]] = {
        "complete": lambda: world.complete(first), "fail": lambda: world.fail(first),
        "cancel": lambda: (world.cancel(first.id), world.stop(first)),
    }  # fmt: skip
    act[ends]()
    application.show()
    met = asked == "finished" or ends == "complete"
    assert world.state(job) is (State.QUEUED if met else State.FAILED)
    assert world.state(behind) is (State.BLOCKED if met else State.FAILED)
    assert world.do(lambda tx: tx.edges.before(job))[0].met is (Met.MET if met else Met.BROKEN)


def test_a_prerequisite_that_had_failed_and_is_tried_again_meanwhile_is_waited_for(
    world: World, application: Application
) -> None:
    failed = world.in_state(State.FAILED)
    (job,) = application.write(world.wish(after=[failed]))
    world.replay(failed)
    application.show()
    assert world.state(job) is State.BLOCKED
    world.complete(world.claim(failed)[0])
    assert world.state(job) is State.QUEUED


def test_a_prerequisite_may_come_from_the_same_transaction(world: World, application: Application) -> None:
    (first,) = application.write(world.wish())
    (second,) = application.write(world.wish(after=[first]))
    (child,) = application.write(world.wish(parent=first))
    application.show()
    assert [world.state(job) for job in (first, second, child)] == [State.QUEUED, State.BLOCKED, State.QUEUED]
    assert world.row(child).root == first


def test_a_job_behind_two_prerequisites_of_which_one_ended_waits_for_the_other(
    world: World, application: Application
) -> None:
    first, second = world.running(), world.running()
    (job,) = application.write(world.wish(after=[first.id, second.id]))
    world.complete(first)
    application.show()
    assert world.do(lambda tx: tx.edges.before(job)) == [
        Edge(first.id, job, Wants.COMPLETED, Met.MET),
        Edge(second.id, job, Wants.COMPLETED, Met.OPEN),
    ]
    world.complete(second)
    assert world.words(job) == ["blocked", "unblocked"]


def test_more_jobs_than_a_unit_may_touch_are_shown_in_several(world: World, application: Application) -> None:
    first = world.running()
    jobs = application.write(*(world.wish(after=[first.id]) for _ in range(UNIT_ROWS + 1)))
    world.complete(first)
    application.commit()
    assert world.do(show_committed) == (True, True)
    assert (world.state(jobs[0]), world.state(jobs[-1])) == (State.QUEUED, State.CREATED)
    assert world.do(show_committed) == (True, False)
    assert world.state(jobs[-1]) is State.QUEUED


def test_many_small_submissions_are_shown_in_one_unit_the_oldest_first(world: World, application: Application) -> None:
    jobs = [application.write(world.wish())[0] for _ in range(5)]
    application.commit()
    batches = world.do(lambda tx: tx.visits.committed(9))
    assert world.do(lambda tx: tx.visits.staged(batches, 9)) == jobs
    assert world.do(lambda tx: tx.visits.staged(batches[:2], 9)) == jobs[:2]
    assert world.do(lambda tx: tx.visits.overlooked(jobs)) == []
    application.show()
    assert [world.state(job) for job in jobs] == [State.QUEUED] * 5


def test_they_are_never_swept_as_abandoned(world: World, application: Application) -> None:
    (job,) = application.write(world.wish())
    application.commit()
    world.clock.advance(3_600 * SECOND)
    assert world.do(lambda tx: tx.submissions.unfinished_batches(tx.now)) == []
    assert not world.do(lambda tx: tx.submissions.abandon_batch(tx.visits.committed(1)[0]))
    application.show()
    assert world.state(job) is State.QUEUED


def test_one_that_was_committed_and_that_nobody_has_shown_yet_can_be_cancelled(
    world: World, application: Application
) -> None:
    (job,) = application.write(world.wish())
    with pytest.raises(Problem, match="unknown_job"):
        world.cancel(job)
    application.commit()
    assert world.cancel(job) == [(job, State.CANCELLED)]
    application.show()
    assert world.words(job) == ["queued", "cancelled"]


def test_a_child_whose_parent_was_cancelled_meanwhile_is_cancelled(world: World, application: Application) -> None:
    parent = world.job()
    (child,) = application.write(world.wish(parent=parent))
    world.cancel(parent)
    application.show()
    assert (world.state(child), world.row(child).reason) == (State.CANCELLED, "parent_cancelled")


def test_a_key_answers_the_job_that_has_it_and_a_second_input_is_a_conflict(
    world: World, application: Application
) -> None:
    known = world.job("1", key="k")
    assert application.write(world.wish("1", key="k")) == [known]
    (mine,) = application.write(world.wish("1", key="mine"))
    assert application.write(world.wish("1", key="mine")) == [mine]
    for key in ("k", "mine"):
        with pytest.raises(Problem, match="key_conflict"):
            application.write(world.wish("2", key=key))
    application.show()
    assert world.job("1", key="mine") == mine


def test_a_key_in_an_open_transaction_is_refused_at_once_to_everybody_else(
    world: World, application: Application, other: World
) -> None:
    second = Application(other)
    (mine,) = application.write(world.wish(key="k"))
    for act in (lambda: other.job(key="k"), lambda: second.write(other.wish(key="k"))):
        with pytest.raises(Problem, match="key_undecided"):
            soon(act)
    (another,) = soon(lambda: second.write(other.wish(key="another")))
    second.show()
    application.show()
    assert second.write(other.wish(key="k")) == [other.job(key="k")] == [mine]
    assert world.state(another) is State.QUEUED
    second.connection.close()


def test_a_key_that_was_rolled_back_is_free(world: World, application: Application) -> None:
    application.write(world.wish(key="k"))
    application.connection.rollback()
    tenant = world.do(lambda tx: tx.lanes.tenant("default"))
    assert world.do(lambda tx: tx.visits.key_is_free(tenant, world.agent, "k"))
    assert world.do(lambda tx: tx.visits.hold_key(tenant, world.agent, "k"))
    assert application.write(world.wish(key="k")) == [world.do(lambda tx: tx.jobs.reserve(1))[0] - 1]


def test_a_refused_submission_leaves_the_transaction_as_it_was(world: World, application: Application) -> None:
    application.connection.execute("create temporary table own (n int)")
    application.connection.execute("set local search_path to pg_temp")
    (good,) = application.write(world.wish())
    ended = world.in_state(State.COMPLETED)
    refused = {
        "unknown_job": world.wish(after=[999_999]), "parent_ended": world.wish(parent=ended),
        "session_undecided": world.wish(session="s"),
    }  # fmt: skip
    for code, wish in refused.items():
        with pytest.raises(Problem, match=code):
            application.write(world.wish(), wish)
    application.connection.execute("insert into own values (1)")
    assert application.connection.execute("show search_path").fetchall() == [("pg_temp",)]
    application.show()
    assert [event.job for event in world.do(lambda tx: newest_events(tx, 1))] == [good]
    assert world.do(lambda tx: count(world, "batches")) == 0


def test_a_submission_that_is_given_up_is_undone_before_its_connection_is_given_back(
    world: World, application: Application
) -> None:
    (good,) = application.write(world.wish())
    began, go_on = threading.Event(), threading.Event()

    def ask(tx: Tx) -> int:
        began.set()
        assert go_on.wait(PATIENCE)
        return tx.jobs.reserve(1)[0]

    def write(tx: Tx, first: int) -> None:
        tx.visits.open(first, 1)

    async def give_up() -> None:
        visits = postgres_visits(application.place)
        work = asyncio.ensure_future(visits.carry_out(application.connection, ask, write))
        await asyncio.to_thread(began.wait, PATIENCE)
        for _ in range(3):
            work.cancel()
            await asyncio.sleep(0)
        assert not work.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(give_up())
    application.show()
    assert (world.state(good), world.do(lambda tx: count(world, "batches"))) == (State.QUEUED, 0)


def test_a_hundred_submissions_are_no_hundred_savepoints(world: World, application: Application) -> None:
    """With many of them in one open transaction Postgres becomes slow for everybody."""
    for _ in range(3):
        application.write(world.wish(), world.wish())
    own = "select subxact_count from pg_stat_get_backend_idset() as id, pg_stat_get_backend_subxact(id)"
    assert max(application.connection.execute(own).fetchall()) == (0,)


def test_who_listens_hears_of_it_when_the_transaction_commits(world: World, application: Application) -> None:
    with psycopg.connect(application.place.conninfo, autocommit=True) as listener:
        listener.execute("listen shop")
        application.write(world.wish(), notice=("shop", "look"))
        application.connection.rollback()
        application.write(world.wish(), notice=("shop", "look again"))
        assert list(listener.notifies(timeout=0)) == []
        application.commit()
        assert [one.payload for one in listener.notifies(timeout=PATIENCE, stop_after=1)] == ["look again"]


def test_an_old_snapshot_is_no_hindrance(world: World, application: Application) -> None:
    application.connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    application.connection.execute("select 1 from pg_class").fetchall()
    before, known = world.job(tenant="later"), world.job(key="k")
    (job,) = application.write(world.wish(after=[before], tenant="later"))
    assert application.write(world.wish(key="k")) == [known]
    application.show()
    assert world.state(job) is State.BLOCKED


def test_a_submission_that_everybody_sees_meets_the_end_of_its_prerequisite_whoever_wins(
    world: World, other: World
) -> None:
    """The edges were unseen until now: at whatever statement one waits, the job is told once."""

    def scenario(one: World, other: World) -> Race:
        job = one.running()
        application = Application(one)
        (mine,) = application.write(one.wish(after=[job.id]))
        application.commit()
        application.connection.close()

        def law(*_: Any) -> None:
            one.do(show_committed)
            assert one.state(mine) is State.QUEUED
            assert one.words(mine) in (["queued"], ["blocked", "unblocked"])

        return Race(show_committed, completes(other, job), law)

    assert len(list(run(POSTGRES, (world, other), scenario))) > 10


def test_a_prerequisite_that_ends_around_the_commit_is_never_missed(world: World, other: World) -> None:
    """At any statement of the unit that ends it, the transaction commits and a janitor is already there."""
    statement, met = 0, True
    while met:
        statement += 1
        job, application = world.running(), Application(world)
        (mine,) = application.write(world.wish(after=[job.id]))
        met = _at_statement(statement, other, completes(other, job), application)
        application.connection.close()
        assert world.state(job.id) is State.COMPLETED
        assert world.state(mine) is State.QUEUED
    assert statement > 5


def _at_statement(statement: int, other: World, unit: Unit[Any], application: Application) -> bool:
    """Carries out a unit and, before one of its statements, commits and shows; False when it has no such statement."""
    seen: list[None] = []
    shown: list[Future[Any]] = []

    def before() -> None:
        seen.append(None)
        if len(seen) == statement:
            application.commit()
            shown.append(threads.submit(application.world.do, show_committed))
            wait(shown, timeout=0.1)  # it ends, or it waits for a row that the unit has locked

    with ThreadPoolExecutor(1) as threads:
        POSTGRES.watch(other.store, before)
        other.do(unit)
        POSTGRES.watch(other.store, None)
        if not shown:
            application.show()
        return bool(shown) and shown[0].result(PATIENCE)[0]


def test_two_janitors_share_the_work_and_show_nothing_twice(world: World, other: World) -> None:
    def scenario(one: World, other: World) -> Race:
        application = Application(one)
        jobs = application.write(one.wish(), one.wish(inner=[0]))
        application.commit()
        application.connection.close()

        def law(*shown: Any) -> None:
            assert any(found for found, _ in shown)
            assert [one.words(job) for job in jobs] == [["queued"], ["blocked"]]

        return Race(show_committed, show_committed, law)

    assert list(run(POSTGRES, (world, other), scenario))


def test_showing_and_cancelling_meet(world: World, other: World) -> None:
    def scenario(one: World, other: World) -> Race:
        application = Application(one)
        (job,) = application.write(one.wish())
        application.commit()
        application.connection.close()

        def law(*_: Any) -> None:
            assert one.words(job) == ["queued", "cancelled"]

        return Race(show_committed, lambda tx: cancel(tx, job, "cancelled"), law)

    assert list(run(POSTGRES, (world, other), scenario))


def test_numbers_below_zero_are_never_those_of_others(world: World) -> None:
    def numbers(tx: Tx) -> tuple[int, int]:
        return tx.visits.open(7, tx.now), tx.visits.open(8, tx.now)

    first, second = world.do(numbers)
    assert first < second < 0
    assert world.do(lambda tx: tx.visits.committed(9)) == [first, second]
    assert world.do(lambda tx: tx.visits.home()) != ""
    assert world.do(lambda tx: tx.visits.may_write())
    world.do(lambda tx: tx.visits.close([first, second]))
    world.do(lambda tx: tx.guards.prerequisites([]))


def test_whoever_asks_for_transactions_left_open_is_not_told_of_its_own(world: World, application: Application) -> None:
    def names(seconds: int) -> list[int]:
        return [one.pid for one in world.do(lambda tx: tx.visits.left_open(seconds))]

    assert names(0) == []
    application.write(world.wish())
    assert (names(0), names(60)) == ([application.connection.info.backend_pid], [])
    assert world.do(lambda tx: tx.visits.warn("transaction 1"))
    world.do(lambda tx: tx.visits.forget_warnings([]))
    assert world.do(lambda tx: tx.visits.warn("transaction 1"))
