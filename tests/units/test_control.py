import pytest

from paceline.core.failures import FailureClass
from paceline.core.lifecycle import Happening, State, sources_of
from paceline.core.model import SECOND
from paceline.core.problem import Problem
from paceline.units.control import cancel, replay
from paceline.units.reap import end_node, give_back_jobs
from paceline.units.settle import settle_postponed
from store.world import World


@pytest.mark.parametrize("state", [state for state in State if state.ended])
def test_cancelling_what_has_ended_changes_nothing(world: World, state: State) -> None:
    job = world.in_state(state)
    row = world.row(job)
    assert world.cancel(job) == []
    assert world.row(job) == row


@pytest.mark.parametrize("state", sorted(sources_of(Happening.CANCEL)))
def test_cancelling_is_possible_in_every_open_state(world: World, state: State) -> None:
    job = world.in_state(state)
    assert world.cancel(job) == [(job, State.CANCELLED)]
    assert (world.row(job).reason, world.words(job)[-1]) == ("cancelled", "cancelled")
    assert world.cancel(job) == []


def test_the_outcome_of_a_cancelled_job_is_never_overwritten(world: World) -> None:
    job = world.running()
    world.cancel(job.id)
    assert world.complete(job) == []
    assert world.fail(job) == []
    assert world.state(job.id) is State.CANCELLED
    assert world.row(job.id).node is None


@pytest.mark.parametrize(
    "act", [lambda tx: cancel(tx, 99, "x"), lambda tx: replay(tx, 99, None)], ids=["cancel", "replay"]
)
def test_a_job_that_does_not_exist_is_named_with_its_neighbours(world: World, act: object) -> None:
    last = world.jobs(3)[-1]
    with pytest.raises(Problem) as caught:
        world.do(act)  # type: ignore[arg-type]
    assert caught.value.code == "unknown_job"
    assert (caught.value.what, caught.value.allowed) == ("there is no job j99", f"the nearest are j{last}")


@pytest.mark.parametrize("state", sorted(set(State) - sources_of(Happening.REPLAY)))
def test_only_a_dead_job_is_tried_again(world: World, state: State) -> None:
    job = world.in_state(state)
    with pytest.raises(Problem) as caught:
        world.replay(job)
    assert (caught.value.code, caught.value.found) == ("not_dead", state.word)


def test_another_try_forgets_what_the_job_has_been_through_and_keeps_its_history(world: World) -> None:
    job = world.job(retries=1, timeout=7)
    world.fail(world.claim(job)[0], FailureClass.TRANSIENT)
    world.clock.advance(2 * SECOND)
    world.do(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now))
    world.fail(world.claim(job)[0])
    world.clock.advance(SECOND)
    assert world.replay(job) == [job]
    row = world.row(job)
    assert (row.state, row.attempt, row.timeouts, row.snoozes, row.reason) == (State.QUEUED, 0, 0, 0, "replayed")
    assert (row.ready_at, row.ended_at, row.epoch, row.retries) == (world.clock.now(), None, 2, 1)
    assert world.words(job) == ["queued", "started", "retrying", "due", "started", "failed", "replayed"]


def test_another_try_may_have_another_input(world: World) -> None:
    job = world.in_state(State.FAILED)
    world.do(lambda tx: replay(tx, job, '"better"'))
    assert world.do(lambda tx: tx.outcomes.input(job)) == '"better"'
    world.complete(world.claim(job)[0], '"good"')
    assert world.do(lambda tx: tx.outcomes.results([job]))[job][2] == '"good"'


def test_a_deadline_that_has_passed_does_not_end_another_try(world: World) -> None:
    job = world.job(deadline=world.clock.now() + SECOND)
    world.clock.advance(2 * SECOND)
    world.time_out(job)
    world.replay(job)
    assert world.do(lambda tx: tx.watch.overdue(tx.now, 10)) == []


def test_code_that_has_not_stopped_yet_must_stop_first(world: World) -> None:
    job = world.running()
    world.cancel(job.id)
    with pytest.raises(Problem, match="has not stopped yet"):
        world.replay(job.id)
    world.stop(job)
    assert world.replay(job.id) == [job.id]


def test_a_job_whose_prerequisite_is_dead_is_not_tried_before_it(world: World) -> None:
    first = world.running()
    second = world.job(after=[first.id])
    world.fail(first)
    with pytest.raises(Problem) as caught:
        world.replay(second)
    assert (caught.value.found, caught.value.todo) == (f"j{first.id}", f"paceline retry j{first.id}")


def test_those_that_failed_because_of_it_wait_for_it_again(world: World) -> None:
    first = world.running()
    second = world.job(after=[first.id])
    third = world.job(after=[second])
    world.fail(first)
    assert world.replay(first.id) == [first.id, second, third]
    assert [world.state(job) for job in (second, third)] == [State.BLOCKED, State.BLOCKED]
    for job in (first.id, second, third):
        world.complete(world.claim(job)[0])
    assert world.words(third) == ["blocked", "failed", "blocked", "unblocked", "started", "completed"]


def test_those_that_failed_for_other_reasons_stay_dead(world: World) -> None:
    first, other = world.running(), world.running()
    cancelled, both = world.job(after=[first.id]), world.job(after=[first.id, other.id])
    world.cancel(cancelled)
    world.fail(first)
    world.fail(other)
    assert world.replay(first.id) == [first.id]
    assert (world.state(cancelled), world.state(both)) == (State.CANCELLED, State.FAILED)
    assert world.replay(other.id) == [other.id, both]


def test_a_job_that_was_revived_and_whose_prerequisite_fails_again_fails_again(world: World) -> None:
    first = world.running()
    second = world.job(after=[first.id])
    world.fail(first)
    world.replay(first.id)
    [again] = world.claim(first.id)
    assert world.fail(again) == [(first.id, State.FAILED), (second, State.FAILED)]


def test_a_cancelled_tree_is_tried_again_job_by_job(world: World) -> None:
    parent = world.job()
    child = world.job(parent=parent)
    world.cancel(parent)
    assert world.replay(parent) == [parent]
    assert world.state(child) is State.CANCELLED


def test_a_life_ends_once_and_is_announced_once(world: World) -> None:
    assert world.do(lambda tx: end_node(tx, world.node, "stopped"))
    assert not world.do(lambda tx: end_node(tx, world.node, "lease_expired"))
    words = [event.kind.word for event in world.do(lambda tx: tx.events.after(0, 100)) if event.job is None]
    assert words == ["node.stopped"]


def test_the_jobs_of_an_ended_node_return_without_cost_and_keep_their_place(world: World) -> None:
    job = world.running(retries=0)
    ready_at = world.row(job.id).ready_at
    cancelled = world.running()
    world.cancel(cancelled.id)
    world.clock.advance(SECOND)
    world.do(lambda tx: end_node(tx, world.node, "process_gone"))
    assert world.do(lambda tx: give_back_jobs(tx, world.node, "node_died")) == 2
    row = world.row(job.id)
    assert (row.state, row.node, row.attempt, row.crashes, row.ready_at) == (State.QUEUED, None, 0, 0, ready_at)
    assert world.words(cancelled.id)[-1] == "released"
    assert world.do(lambda tx: give_back_jobs(tx, world.node, "node_died")) == 0


def test_jobs_that_a_node_keeps_are_not_given_back(world: World) -> None:
    kept, unheard = world.running(), world.running()
    world.do(lambda tx: give_back_jobs(tx, world.node, "start_unknown", {(kept.id, kept.epoch)}))
    assert (world.state(kept.id), world.state(unheard.id)) == (State.RUNNING, State.QUEUED)


def test_another_try_brings_back_more_dependents_than_one_unit_may_touch(world: World) -> None:
    first = world.running()
    jobs = [job for _ in range(3) for job in world.submit(*(world.wish(after=[first.id]) for _ in range(400)))]
    world.fail(first)
    drain(world)
    assert {world.state(job) for job in jobs} == {State.FAILED}
    world.replay(first.id)
    drain(world)
    assert {world.state(job) for job in jobs} == {State.BLOCKED}
    world.complete(world.claim(first.id)[0])
    drain(world)
    assert {world.state(job) for job in jobs} == {State.QUEUED}


def test_dependents_that_are_brought_back_late_follow_a_prerequisite_that_has_completed_meanwhile(world: World) -> None:
    first = world.running()
    jobs = [job for _ in range(3) for job in world.submit(*(world.wish(after=[first.id]) for _ in range(400)))]
    world.fail(first)
    drain(world)
    world.replay(first.id)
    world.complete(world.claim(first.id)[0])
    drain(world)
    assert {world.state(job) for job in jobs} == {State.QUEUED}


def drain(world: World) -> None:
    """Lets the postponed be finished, unit by unit."""
    while world.do(settle_postponed)[1]:
        pass
