import json

import pytest

from node.stage import Bench
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS
from paceline.core.problem import Problem
from paceline.events import Kind
from paceline.node import janitor as janitor_module
from paceline.node.janitor import ABANDONED_AFTER, LOOK_EVERY, Janitor, Tidied
from paceline.units.submit import stage
from store.world import World


class Tidying:
    """A janitor, one look at a time."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.clock = bench, bench.clock
        self.heard: list[Tidied] = []
        self.janitor = Janitor(self.heard.append)

    def look(self) -> Tidied:
        found: Tidied = self.bench.turn(self.janitor)
        assert self.heard[-1] is found
        return found

    def until_nothing_is_left(self) -> int:
        """How many looks it took."""
        looks = 1
        while self.look().more:
            looks += 1
            assert self.janitor.next_at(self.clock.now()) == self.clock.now(), "it goes on without a pause"
        assert self.janitor.next_at(self.clock.now()) == self.clock.now() + LOOK_EVERY
        return looks


@pytest.fixture
def tidying(bench: Bench) -> Tidying:
    return Tidying(bench)


def lose_the_telling(world: World, ended: int, *behind: int) -> None:
    """What must not exist: a prerequisite has ended, and those behind it are as if nobody had told them."""
    connection = world.store._connection
    connection.begin(world.clock)
    connection.write("update edges set met = 0 where dependency = :job", {"job": ended})
    for job in behind:
        connection.write(
            "update jobs set state = 1, ready_at = null, ended_at = null, reason = null where id = :job", {"job": job}
        )
    connection.commit()


def test_an_accepted_submission_whose_submitter_died_becomes_visible(tidying: Tidying, world: World) -> None:
    batch, jobs = world.stage(world.wish(), world.wish(inner=[0]))
    assert world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert world.state(jobs[0]) is State.CREATED
    tidying.until_nothing_is_left()
    assert [world.state(job) for job in jobs] == [State.QUEUED, State.BLOCKED]
    assert world.do(lambda tx: tx.submissions.unfinished_batches(tx.now)) == []


def test_a_large_one_becomes_visible_in_several_units(tidying: Tidying, world: World) -> None:
    batch, first = world.stage(*(world.wish() for _ in range(UNIT_ROWS)))
    rest = world.do(lambda tx: stage(tx, batch, [world.wish()] * 7))
    assert world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    tidying.look()
    assert (world.state(first[-1]), world.state(rest[0])) == (State.QUEUED, State.CREATED)
    tidying.until_nothing_is_left()
    assert world.state(rest[-1]) is State.QUEUED


def test_a_submission_that_nobody_finished_is_swept_after_five_minutes(tidying: Tidying, world: World) -> None:
    batch, jobs = world.stage(world.wish(), world.wish(inner=[0]))
    tidying.clock.advance(ABANDONED_AFTER - SECOND)
    tidying.until_nothing_is_left()
    assert len(world.do(lambda tx: tx.jobs.rows(jobs))) == 2
    tidying.clock.advance(SECOND)
    tidying.until_nothing_is_left()
    assert world.do(lambda tx: tx.jobs.rows(jobs)) == []
    with pytest.raises(Problem, match="submission_abandoned"):
        world.do(lambda tx: stage(tx, batch, [world.wish()]))
    assert not world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))


def test_an_empty_submission_is_swept_too(tidying: Tidying, world: World) -> None:
    world.do(lambda tx: tx.submissions.open_batch(tx.now))
    tidying.clock.advance(ABANDONED_AFTER)
    tidying.until_nothing_is_left()
    assert world.do(lambda tx: tx.submissions.unfinished_batches(tx.now)) == []


def test_a_large_family_of_dependents_is_told_in_several_units(tidying: Tidying, world: World) -> None:
    root = world.job()
    children = [job for _ in range(3) for job in world.submit(*(world.wish(after=[root]) for _ in range(400)))]
    world.complete(world.claim(root)[0])
    assert sum(world.state(job) is State.QUEUED for job in children) == UNIT_ROWS
    tidying.janitor.call()
    assert tidying.janitor.next_at(tidying.clock.now()) == tidying.clock.now()
    assert tidying.look().readied
    assert tidying.until_nothing_is_left() >= 2
    assert {world.state(job) for job in children} == {State.QUEUED}


def test_a_long_chain_behind_a_failure_falls_in_several_units(
    tidying: Tidying, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = [world.job()]
    for _ in range(20):
        chain.append(world.job(after=[chain[-1]]))
    monkeypatch.setattr("paceline.units.settle.UNIT_ROWS", 3)
    told = world.fail(world.claim(chain[0])[0])
    ended = [job for job, _ in told]
    while (found := tidying.look()).more:
        ended += [job for job, _ in found.ended]
    assert ended == chain
    assert {world.state(job) for job in chain} == {State.FAILED}


def test_a_blocked_job_that_nobody_told_is_found_mended_and_announced(tidying: Tidying, world: World) -> None:
    first = world.running()
    needs, follows = world.job(after=[first.id]), world.job(finished=[first.id])
    world.complete(first)
    lose_the_telling(world, first.id, needs, follows)
    found = tidying.look()
    assert (found.readied, found.ended, found.more) == (True, [], False)
    assert [world.state(job) for job in (needs, follows)] == [State.QUEUED, State.QUEUED]
    assert [json.loads(data) for data in tidying.bench.announced(Kind.SWEEP_REPAIRED)] == [{"readied": 0, "untold": 1}]


def test_a_job_that_is_blocked_by_nothing_is_made_ready(tidying: Tidying, world: World) -> None:
    first = world.running()
    job = world.job(after=[first.id])
    world.complete(first)
    lose_the_telling(world, 0, job)
    assert tidying.look().readied
    assert world.state(job) is State.QUEUED
    assert [json.loads(data) for data in tidying.bench.announced(Kind.SWEEP_REPAIRED)] == [{"readied": 1, "untold": 0}]


def test_a_failure_that_nobody_told_is_passed_on(tidying: Tidying, world: World) -> None:
    first = world.running()
    behind = world.job(after=[first.id])
    last = world.job(after=[behind])
    world.fail(first)
    lose_the_telling(world, behind, last)
    lose_the_telling(world, first.id, behind)
    assert tidying.look().ended == [(behind, State.FAILED), (last, State.FAILED)]
    assert len(tidying.bench.announced(Kind.SWEEP_REPAIRED)) == 1


def test_where_nothing_is_wrong_nothing_is_announced(tidying: Tidying, world: World) -> None:
    world.job(after=[world.job()])
    for _ in range(3):
        tidying.look()
    assert tidying.bench.announced(Kind.SWEEP_REPAIRED) == []


def test_the_search_goes_on_where_it_stopped_and_begins_again_at_the_end(
    tidying: Tidying, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor_module, "SEARCHED_AT_ONCE", 2)
    root = world.job()
    blocked = [world.job(after=[root]) for _ in range(5)]
    assert [tidying.look().searched_to for _ in range(5)] == [blocked[1], blocked[3], blocked[4], 0, blocked[1]]


def test_what_is_left_to_do_survives_a_failed_look(tidying: Tidying, world: World) -> None:
    batch, [job] = world.stage(world.wish())
    world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    tidying.bench.lose(tidying.janitor)
    assert tidying.janitor.next_at(tidying.clock.now()) <= tidying.clock.now() + LOOK_EVERY
    tidying.until_nothing_is_left()
    assert world.state(job) is State.QUEUED


def test_two_janitors_make_nobody_ready_twice(tidying: Tidying, world: World) -> None:
    batch, [job] = world.stage(world.wish())
    world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    for one in (tidying, Tidying(tidying.bench)):
        one.look()
    assert world.words(job) == ["queued"]
