"""The law of a job's life, as the database keeps it: a write happens exactly where there is an arrow."""

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import Happening, State, sources_of, target_of
from paceline.core.model import Claimed, Edge, Met, Move, NewJob, Wants
from paceline.core.problem import Problem
from paceline.errors import StoreError
from paceline.events import Kind
from paceline.store.protocol import Tx
from paceline.units.control import cancel, replay
from paceline.units.settle import end_open, fail_dependents, unblock
from paceline.units.submit import submit
from store.world import World, raised, room_for_all

S, H = State, Happening
Act = Callable[[World, Tx, int], object]


def epoch_of(tx: Tx, job: int) -> int:
    return tx.jobs.rows([job])[0].epoch


def as_claimed(tx: Tx, job: int) -> Claimed:
    row = tx.jobs.rows([job])[0]
    return Claimed(
        row.id, row.epoch, row.lane, row.root, row.parent, row.attempt, row.crashes, row.timeouts, row.snoozes, 5,
        row.timeout, row.deadline, row.created_at, row.seq, row.last_event,
    )  # fmt: skip


def ends(ending: Ending, body: str = "") -> Act:
    return lambda world, tx, job: world.completer.finish(tx, [Ended(as_claimed(tx, job), ending, body)], leased=True)


def raises(failure: FailureClass) -> Act:
    return lambda world, tx, job: world.completer.finish(tx, [raised(as_claimed(tx, job), failure)], leased=True)


def moves_from(happening: Happening) -> Act:
    """What has no loop of its own yet: the guarded move from where the table allows it."""

    def move(world: World, tx: Tx, job: int) -> None:
        epoch = epoch_of(tx, job)
        for source in sources_of(happening):
            target = target_of(source, happening)
            assert target is not None
            ended_at = tx.now if target.ended else None
            moved = tx.jobs.move([Move(job, source, epoch, target, ended_at=ended_at)], Kind.JOB_LOG, tx.now)
            if moved and target is S.FAILED:
                tx.jobs.keep_results([(job, "{}")])
            if moved and target is S.BLOCKED:
                (other,) = submit(tx, [world.wish()], room_for_all)
                tx.edges.insert([Edge(other, job, Wants.COMPLETED, Met.OPEN)])

    return move


def frees(world: World, tx: Tx, job: int) -> None:
    """Its last prerequisite, if it has one, has completed."""
    tx.edges.settle([edge._replace(met=Met.MET) for edge in tx.edges.before(job)])
    unblock(tx, [job])


def breaks(world: World, tx: Tx, job: int) -> None:
    """Something it depends on has failed."""
    broken = submit(tx, [world.wish()], room_for_all)[0]
    end_open(tx, [broken], S.CANCELLED, "cancelled")
    fail_dependents(tx, {job: broken})


def tries_again(world: World, tx: Tx, job: int) -> None:
    with suppress(Problem):
        replay(tx, job, None)


def publishes(world: World, tx: Tx, job: int) -> None:
    tx.submissions.publish([job], tx.now)


ACTS: dict[Happening, Act] = {
    H.PUBLISH_READY: publishes,
    H.UNBLOCK: frees,
    H.DEPENDENCY_FAILED: breaks,
    H.CLAIM: lambda world, tx, job: tx.jobs.claim([job], world.node, tx.now),
    H.COMPLETE: ends(Ending.RETURNED, "2"),
    H.FAIL: moves_from(H.FAIL),
    H.RETRY: raises(FailureClass.TRANSIENT),
    H.GIVE_BACK: ends(Ending.GIVEN_BACK),
    H.SUSPEND: moves_from(H.SUSPEND),
    H.WAKE: moves_from(H.WAKE),
    H.CANCEL: lambda world, tx, job: cancel(tx, job, "cancelled"),
    H.TIME_OUT: lambda world, tx, job: end_open(tx, [job], S.TIMED_OUT, "deadline"),
    H.REPLAY: tries_again,
    H.REVIVE: moves_from(H.REVIVE),
}


@pytest.mark.parametrize(("state", "happening"), list(product(State, ACTS)), ids=lambda one: one.name.lower())
def test_a_write_happens_exactly_where_there_is_an_arrow(world: World, state: State, happening: Happening) -> None:
    job = world.in_state(state)
    before = world.row(job)
    world.do(lambda tx: ACTS[happening](world, tx, job))
    after = world.row(job)
    target = target_of(state, happening)
    assert after.state is (before.state if target is None else target)
    assert (after.seq > before.seq) is (target is not None)
    assert after.epoch == before.epoch + (happening is H.CLAIM and target is not None)


def test_a_staged_job_with_an_open_prerequisite_is_published_blocked(world: World) -> None:
    batch, (job,) = world.stage(world.wish(after=[world.job()]))
    world.accept(batch)
    assert world.state(job) is target_of(S.CREATED, H.PUBLISH_BLOCKED)


def test_every_happening_is_driven_here() -> None:
    assert set(Happening) - set(ACTS) == {H.PUBLISH_BLOCKED}


@pytest.mark.parametrize("state", State, ids=lambda one: one.name.lower())
def test_a_move_that_expects_another_state_is_not_made(world: World, state: State) -> None:
    job = world.in_state(state)
    before = world.row(job)

    def try_all_and_undo(tx: Tx) -> None:
        for expects in (*(one for one in State if one is not state), state):
            move = Move(job, expects, before.epoch, S.CANCELLED, ended_at=tx.now)
            assert tx.jobs.move([move], Kind.JOB_CANCELLED, tx.now) == ([job] if expects is state else [])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        world.do(try_all_and_undo)
    assert world.row(job) == before


ILLEGAL: dict[str, dict[str, Any]] = {
    "a state that the law does not know": {"state": 5},
    "a state beyond the last": {"state": 14},
    "no state": {"state": None},
    "an end without its time": {"state": 10, "ended_at": None},
    "a time of an end that has not come": {"state": 2, "ended_at": 1},
    "running nowhere": {"state": 3, "node": None},
}


@pytest.mark.parametrize("change", ILLEGAL.values(), ids=ILLEGAL.keys())
def test_the_database_itself_refuses_rows_that_break_the_law(world: World, change: dict[str, Any]) -> None:
    job = world.job()
    assignments = ", ".join(f"{column} = :{column}" for column in change)
    with pytest.raises(StoreError) as error:
        world.do(lambda tx: world.store._connection.write(f"update jobs set {assignments} where id = {job}", change))
    assert error.value.code == "store_constraint"
    assert world.state(job) is S.QUEUED


def test_the_database_itself_refuses_negative_limits_and_empty_leases(world: World) -> None:
    for sql in ("insert into pools values ('p', -1)", "insert into leases values (1, 'p', 1, 0)"):
        with pytest.raises(StoreError):
            world.do(lambda tx: world.store._connection.write(sql))  # noqa: B023


def test_a_new_job_in_a_state_that_does_not_exist_is_refused_whole(world: World) -> None:
    row = NewJob(1, State.RUNNING, 1, 1, None, None, None, 0, 1, 1, None, None, 1, 0, None)
    with pytest.raises(StoreError):
        world.do(lambda tx: world.store._connection.write_many(tx.jobs._sql["jobs.insert"], [row]))
    assert world.do(lambda tx: tx.jobs.rows([1])) == []
