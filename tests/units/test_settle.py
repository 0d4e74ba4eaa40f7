import pytest

from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS
from paceline.core.waking import NAMED
from paceline.units.failing import ErrorBody, read_error
from paceline.units.settle import Ends, settle, settle_postponed
from store.world import World


def error_of(world: World, job: int) -> ErrorBody:
    return read_error(world.do(lambda tx: tx.outcomes.results([job]))[job][2])


def drain(world: World) -> tuple[Ends, int]:
    """Everything that was postponed, and in how many units."""
    ended: Ends = []
    units = 0
    while True:
        more_ended, more = world.do(settle_postponed)
        if not more:
            return ended, units
        ended += more_ended
        units += 1


def small_units(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """What one unit may touch, made small."""
    monkeypatch.setattr("paceline.units.settle.UNIT_ROWS", rows)


def test_the_last_prerequisite_frees_a_dependent_and_no_other_does(world: World) -> None:
    first, second, third = world.running(), world.running(), world.running()
    job = world.job(after=[first.id, second.id], finished=[third.id])
    for one in (first, second):
        assert world.complete(one) == [(one.id, State.COMPLETED)]
        assert world.state(job) is State.BLOCKED
    world.fail(third)
    assert world.words(job) == ["blocked", "unblocked"]


def test_prerequisites_that_end_in_one_unit_free_their_dependent_once(world: World) -> None:
    first, second = world.running(), world.running()
    job = world.job(after=[first.id, second.id])

    def both(tx: object) -> Ends:
        done = world.store._tx.jobs.complete([(one.id, one.epoch, "1") for one in (first, second)], world.clock.now())
        return settle(world.store._tx, [(one, State.COMPLETED) for one in done])

    assert world.do(both) == []
    assert world.words(job) == ["blocked", "unblocked"]


def test_one_that_completes_and_one_that_fails_in_one_unit_fail_their_dependent(world: World) -> None:
    good, bad = world.running(), world.running()
    job = world.job(after=[good.id, bad.id])
    world.complete(good)
    assert world.fail(bad) == [(bad.id, State.FAILED), (job, State.FAILED)]
    assert error_of(world, job).chain == (bad.id,)


@pytest.mark.parametrize("end", ["fail", "cancel", "time_out"])
def test_any_end_without_a_result_breaks_what_needs_one_and_frees_what_does_not(world: World, end: str) -> None:
    first = world.running()
    needs, follows = world.job(after=[first.id]), world.job(finished=[first.id])
    getattr(world, end)(first if end == "fail" else first.id)
    assert (world.state(needs), world.state(follows)) == (State.FAILED, State.QUEUED)
    assert world.row(needs).reason == "dependency_failed"


def test_an_error_names_the_chain_back_to_its_beginning(world: World) -> None:
    first = world.running()
    chain = [first.id]
    for _ in range(3):
        chain.append(world.job(after=[chain[-1]]))
    world.fail(first)
    error = error_of(world, chain[-1])
    assert error.chain == tuple(reversed(chain[:-1]))
    assert error.message == f"dependency j{chain[2]} ← j{chain[1]} ← j{chain[0]} ended: ValueError: no"


def test_a_very_long_chain_is_named_by_its_ends(world: World) -> None:
    first = world.running()
    chain = [first.id]
    for _ in range(40):
        chain.append(world.job(after=[chain[-1]]))
    world.fail(first)
    error = error_of(world, chain[-1])
    assert (len(error.chain), error.length, error.chain[-1]) == (NAMED, 40, first.id)
    assert f"… {40 - NAMED} more …" in error.message
    assert len(error.message) < 300


def test_a_job_that_follows_any_end_stops_the_fall(world: World) -> None:
    first = world.running()
    falls = world.job(after=[first.id])
    catches = world.job(finished=[falls])
    waits = world.job(after=[catches])
    world.fail(first)
    assert [world.state(job) for job in (falls, catches, waits)] == [State.FAILED, State.QUEUED, State.BLOCKED]


def test_a_dependent_that_has_ended_already_stays_as_it_is(world: World) -> None:
    first = world.running()
    job = world.job(after=[first.id])
    world.cancel(job)
    assert world.fail(first) == [(first.id, State.FAILED)]
    assert world.state(job) is State.CANCELLED


def test_thousands_of_dependents_are_told_in_units_of_bounded_size(world: World) -> None:
    first = world.running()
    jobs = [job for _ in range(5) for job in world.submit(*(world.wish(after=[first.id]) for _ in range(450)))]
    world.complete(first)
    assert sum(world.state(job) is State.QUEUED for job in jobs) == UNIT_ROWS
    _, units = drain(world)
    assert units == -(-(len(jobs) - UNIT_ROWS) // UNIT_ROWS)
    assert {world.state(job) for job in jobs} == {State.QUEUED}
    assert all(world.words(job) == ["blocked", "unblocked"] for job in jobs[::97])


def test_a_fan_that_falls_is_told_in_units_and_nobody_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first = world.running()
    jobs = world.submit(*(world.wish(after=[first.id]) for _ in range(50)))
    last = world.job(finished=jobs)
    small_units(monkeypatch, 7)
    told = [job for job, _ in world.fail(first)]
    ended, units = drain(world)
    assert sorted(told + [job for job, _ in ended]) == [first.id, *jobs]
    assert units >= 7
    assert world.words(last) == ["blocked", "unblocked"]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_chain_falls_to_its_end_however_small_the_units(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    chain = [world.job()]
    for _ in range(30):
        chain.append(world.job(after=[chain[-1]]))
    small_units(monkeypatch, rows)
    told = world.fail(world.claim(chain[0])[0])
    ended, _ = drain(world)
    assert [job for job, _ in told + ended] == chain
    assert error_of(world, chain[-1]).length == 30


def test_a_dependent_that_comes_while_the_family_is_being_told_is_told_by_its_submission(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.running()
    jobs = world.submit(*(world.wish(after=[first.id]) for _ in range(10)))
    small_units(monkeypatch, 4)
    world.complete(first)
    late = world.job(after=[first.id])
    assert world.state(late) is State.QUEUED
    drain(world)
    assert {world.state(job) for job in jobs} == {State.QUEUED}


def test_a_job_that_is_tried_again_while_its_family_is_being_told_holds_the_rest_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.running()
    jobs = world.submit(*(world.wish(after=[first.id]) for _ in range(10)))
    small_units(monkeypatch, 4)
    world.fail(first)
    world.replay(first.id)
    drain(world)
    assert {world.state(job) for job in jobs} == {State.BLOCKED}
    world.complete(world.claim(first.id)[0])
    drain(world)
    assert {world.state(job) for job in jobs} == {State.QUEUED}


def test_cancelling_takes_the_whole_tree_and_leaves_what_has_ended(world: World) -> None:
    parent = world.running()
    done = world.running(parent=parent.id)
    world.complete(done)
    child = world.running(parent=parent.id)
    grandchild, delayed = world.job(parent=child.id), world.job(parent=child.id, delay=SECOND)
    blocked = world.job(parent=parent.id, after=[grandchild])
    ended = world.cancel(parent.id)
    assert {job for job, _ in ended} == {parent.id, child.id, grandchild, delayed, blocked}
    assert {world.state(job) for job, _ in ended} == {State.CANCELLED}
    assert world.state(done.id) is State.COMPLETED
    assert world.row(grandchild).reason == "parent_cancelled"


def test_a_large_tree_is_cancelled_in_units(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = world.running()
    children = world.submit(*(world.wish(parent=parent.id) for _ in range(20)))
    grandchildren = [world.job(parent=child) for child in children]
    small_units(monkeypatch, 6)
    told = world.cancel(parent.id)
    ended, units = drain(world)
    assert sorted(job for job, _ in told + ended) == [parent.id, *children, *grandchildren]
    assert units >= 5


def test_a_child_whose_parent_failed_goes_on(world: World) -> None:
    parent = world.running()
    child = world.job(parent=parent.id)
    world.fail(parent)
    assert world.state(child) is State.QUEUED


def test_dependents_of_a_cancelled_child_are_told(world: World) -> None:
    parent = world.running()
    child = world.job(parent=parent.id)
    outside = world.job(after=[child])
    ended = world.cancel(parent.id)
    assert ended[-1] == (outside, State.FAILED)


def test_with_nothing_postponed_there_is_nothing_to_do(world: World) -> None:
    assert world.do(settle_postponed) == ([], False)
