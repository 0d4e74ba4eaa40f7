"""The verbs that move jobs: what they do, what guards them, and what a lost race is answered."""

from functools import partial

import pytest

from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Move, NewJob
from paceline.errors import StoreError
from paceline.events import Kind
from paceline.store.protocol import Tx
from paceline.units.submit import forget
from store.world import World, newest_events, newest_job


class Undo(Exception):
    """Undoes a unit that was only tried."""

    def __init__(self, done: list[int]) -> None:
        self.done = done


def move(tx: Tx, moves: list[Move], kind: Kind) -> list[int]:
    return tx.jobs.move(moves, kind, tx.now)


def test_ids_rise_in_the_order_of_submission_and_are_told_in_that_order(world: World) -> None:
    first, second = world.jobs(3), world.jobs(2)
    assert [*first, *second] == sorted([*first, *second])
    assert world.do(newest_job) == second[-1]


def test_an_id_that_somebody_was_told_is_never_given_again(world: World) -> None:
    job = world.job()
    world.cancel(job)
    batch, _ = world.stage(world.wish())
    assert not world.do(lambda tx: forget(tx, batch))
    assert world.job() > job


def test_an_id_that_exists_is_refused_and_undoes_the_unit(world: World) -> None:
    job = world.job()
    row = NewJob(job, State.QUEUED, 1, job, None, None, None, 0, 1, 1, None, None, 1, 0, None)

    def twice(tx: Tx) -> None:
        tx.lanes.tenant("somebody new")
        tx.jobs.insert([row], ["2"], tx.now)

    with pytest.raises(StoreError) as error:
        world.do(twice)
    assert error.value.code == "store_constraint"
    assert world.do(lambda tx: tx.outcomes.input(job)) == "1"


def test_a_visible_job_begins_with_one_event_and_a_staged_one_with_none(world: World) -> None:
    dependency = world.job()
    _, staged = world.stage(world.wish())
    assert world.words(dependency) == ["queued"]
    assert world.words(world.job(after=[dependency])) == ["blocked"]
    assert world.words(staged[0]) == []


def test_a_claim_takes_ready_jobs_and_raises_their_epoch(world: World) -> None:
    job = world.job(retries=3, timeout=7 * SECOND)
    (claimed,) = world.claim(job)
    assert (claimed.id, claimed.epoch, claimed.attempt, claimed.retries, claimed.timeout) == (job, 1, 0, 3, 7 * SECOND)
    row = world.row(job)
    assert (row.state, row.node, row.started_at) == (State.RUNNING, world.node, world.clock.now())
    assert world.words(job) == ["queued", "started"]


@pytest.mark.parametrize("state", [state for state in State if state is not State.QUEUED])
def test_a_claim_leaves_what_is_not_queued_alone(world: World, state: State) -> None:
    job = world.in_state(state)
    before = world.row(job)
    assert world.claim(job) == []
    assert world.row(job) == before


def test_a_claim_leaves_a_job_alone_whose_delay_has_not_passed(world: World) -> None:
    job = world.job(delay=SECOND)
    world.clock.advance(2 * SECOND)
    assert world.claim(job) == []
    assert world.do(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now)) == [job]
    assert [claimed.id for claimed in world.claim(job)] == [job]


def test_of_several_jobs_a_claim_answers_those_it_won(world: World) -> None:
    jobs = world.jobs(4)
    world.cancel(jobs[1])
    world.claim(jobs[2])
    assert sorted(claimed.id for claimed in world.claim(*jobs, 999)) == [jobs[0], jobs[3]]


def test_inputs_are_answered_for_ready_jobs_only(world: World) -> None:
    ready, delayed, cancelled = world.job("[1]"), world.job("[2]", delay=1), world.job("[3]")
    world.cancel(cancelled)
    assert world.do(lambda tx: tx.jobs.lock_ready([ready, delayed, cancelled, 999])) == {ready: "[1]"}


def test_a_completion_frees_the_job_and_keeps_its_result(world: World) -> None:
    job = world.running()
    assert world.do(lambda tx: tx.jobs.complete([(job.id, job.epoch, '"done"')], tx.now)) == [job.id]
    row = world.row(job.id)
    assert (row.state, row.node, row.ended_at) == (State.COMPLETED, None, world.clock.now())
    assert world.do(lambda tx: tx.outcomes.results([job.id])) == {job.id: (State.COMPLETED, None, '"done"')}


def test_the_completion_of_an_older_epoch_changes_nothing(world: World) -> None:
    job = world.running(retries=1)
    world.fail(job, FailureClass.TRANSIENT)
    world.clock.advance(60 * SECOND)
    world.do(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now))
    world.claim(job.id)
    before = world.row(job.id)
    assert world.do(lambda tx: tx.jobs.complete([(job.id, job.epoch, "0")], tx.now)) == []
    assert world.row(job.id) == before
    assert world.do(lambda tx: tx.outcomes.results([job.id]))[job.id][2] is None


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_only_a_running_job_completes(world: World, state: State) -> None:
    job = world.in_state(state)
    before = world.row(job)
    assert world.do(lambda tx: tx.jobs.complete([(job, before.epoch, "0")], tx.now)) == []
    assert world.row(job) == before


def test_of_several_completions_the_stale_ones_are_missing_from_the_answer(world: World) -> None:
    jobs = [world.running() for _ in range(3)]
    world.cancel(jobs[1].id)
    ends = [(job.id, job.epoch, "0") for job in jobs]
    assert sorted(world.do(lambda tx: tx.jobs.complete(ends, tx.now))) == [jobs[0].id, jobs[2].id]
    assert world.state(jobs[1].id) is State.CANCELLED


def test_a_move_happens_only_from_the_state_and_epoch_it_expects(world: World) -> None:
    job = world.running()
    for state, epoch in ((State.QUEUED, job.epoch), (State.RUNNING, job.epoch + 1), (State.RUNNING, job.epoch - 1)):
        stale = [Move(job.id, state, epoch, State.QUEUED)]
        assert world.do(partial(move, moves=stale, kind=Kind.JOB_GIVEN_BACK)) == []
    good = Move(job.id, State.RUNNING, job.epoch, State.QUEUED, "node_stopped")
    assert world.do(lambda tx: tx.jobs.move([good], Kind.JOB_GIVEN_BACK, tx.now, {job.id: '{"why":1}'})) == [job.id]
    row = world.row(job.id)
    assert (row.state, row.node, row.reason) == (State.QUEUED, None, "node_stopped")
    assert world.do(lambda tx: newest_events(tx, 1))[0].data == '{"why":1}'


def test_a_move_keeps_the_numbers_it_does_not_name(world: World) -> None:
    job = world.running()
    before = world.row(job.id)
    move = Move(job.id, State.RUNNING, job.epoch, State.QUEUED, attempt=2, timeouts=1)
    world.do(lambda tx: tx.jobs.move([move], Kind.JOB_RETRYING, tx.now))
    row = world.row(job.id)
    assert (row.attempt, row.timeouts, row.crashes, row.snoozes) == (2, 1, 0, 0)
    assert (row.ready_at, row.epoch, row.created_at) == (before.ready_at, before.epoch, before.created_at)


def test_no_moves_write_nothing(world: World) -> None:
    last = world.do(lambda tx: tx.events.last())
    assert world.do(lambda tx: tx.jobs.move([], Kind.JOB_FAILED, tx.now)) == []
    assert world.do(lambda tx: tx.events.last()) == last


def test_an_ended_job_holds_its_place_until_its_code_has_stopped(world: World) -> None:
    job = world.running()
    world.cancel(job.id)
    assert world.row(job.id).node == world.node
    released = [(job.id, job.epoch, Kind.JOB_RELEASED)]
    assert world.do(lambda tx: tx.jobs.release(released, tx.now)) == [job.id]
    assert world.do(lambda tx: tx.jobs.release(released, tx.now)) == []
    assert world.words(job.id) == ["queued", "started", "cancelled", "released"]


def test_a_running_job_is_not_released_and_neither_is_another_epoch(world: World) -> None:
    job = world.running()
    assert world.do(lambda tx: tx.jobs.release([(job.id, job.epoch, Kind.JOB_RELEASED)], tx.now)) == []
    world.cancel(job.id)
    assert world.do(lambda tx: tx.jobs.release([(job.id, job.epoch - 1, Kind.JOB_RELEASED)], tx.now)) == []


def test_only_the_epoch_that_holds_a_job_is_heard(world: World) -> None:
    job = world.running()
    note = (job.id, job.epoch, Kind.JOB_LOG, '{"text":"x"}')
    stale = (job.id, job.epoch - 1, Kind.JOB_LOG, None)
    assert world.do(lambda tx: tx.jobs.note([note], tx.now)) == [job.id]
    assert world.do(lambda tx: tx.jobs.note([stale], tx.now)) == []
    world.cancel(job.id)
    assert world.do(lambda tx: tx.jobs.note([note], tx.now)) == [job.id]
    world.stop(job)
    assert world.do(lambda tx: tx.jobs.note([note], tx.now)) == []
    assert world.do(lambda tx: tx.jobs.note([], tx.now)) == []


def test_only_a_delayed_job_becomes_due_and_only_once(world: World) -> None:
    delayed, ready, cancelled = world.job(delay=SECOND), world.job(), world.job(delay=SECOND)
    world.cancel(cancelled)
    due = [(job, 0) for job in (delayed, ready, cancelled)]
    assert world.do(lambda tx: tx.jobs.make_due(due, tx.now)) == [delayed]
    assert world.do(lambda tx: tx.jobs.make_due(due, tx.now)) == []


def test_rows_come_by_id_whatever_order_they_are_asked_in(world: World) -> None:
    jobs = world.jobs(3)
    asked = [jobs[2], 999, jobs[0], jobs[1]]
    assert [row.id for row in world.do(lambda tx: tx.jobs.rows(asked))] == jobs


def test_a_result_replaces_that_of_an_earlier_life(world: World) -> None:
    job = world.running()
    world.fail(job)
    world.replay(job.id)
    assert world.complete(world.claim(job.id)[0], '"second"') == [(job.id, State.COMPLETED)]
    assert world.do(lambda tx: tx.outcomes.results([job.id]))[job.id][2] == '"second"'
    world.do(lambda tx: tx.jobs.keep_results([(job.id, '"third"')]))
    assert world.do(lambda tx: tx.outcomes.results([job.id]))[job.id][2] == '"third"'


@pytest.mark.parametrize("state", State)
def test_only_a_blocked_job_is_unblocked_and_only_in_its_epoch(world: World, state: State) -> None:
    job = world.in_state(state)
    row = world.row(job)

    def unblock_and_undo(tx: Tx) -> list[int]:
        done = tx.jobs.unblock([(job, row.epoch + 1)], tx.now) + tx.jobs.unblock([(job, row.epoch)], tx.now)
        assert tx.jobs.unblock([(job, row.epoch)], tx.now) == []
        raise Undo(done)

    with pytest.raises(Undo) as undone:
        world.do(unblock_and_undo)
    assert undone.value.done == ([job] if state is State.BLOCKED else [])


def test_a_job_that_was_delayed_as_well_as_blocked_waits_for_both(world: World) -> None:
    first = world.running()
    job = world.job(after=[first.id], delay=5 * SECOND)
    world.clock.advance(SECOND)
    world.complete(first)
    row = world.row(job)
    assert (row.state, row.due_at, row.ready_at) == (State.QUEUED, row.due_at, row.due_at)
    assert row.due_at == row.created_at + 5 * SECOND
    late = world.running()
    slow = world.job(after=[late.id], delay=SECOND)
    world.clock.advance(2 * SECOND)
    world.complete(late)
    assert (world.row(slow).due_at, world.row(slow).ready_at) == (None, world.clock.now())
