import pytest

from node.stage import Bench
from paceline.core.completion import Ending
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Claimed
from paceline.node import warden as warden_module
from paceline.node.warden import LOOK_EVERY, Warden, Watched
from store.world import World


class Watching:
    """A warden of a node, and what it says of code that has to stop."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.world, self.clock = bench, bench.world, bench.clock
        self.gone: set[int] = set()
        self.found: list[Watched] = []
        self.warden = Warden(lambda: bench.heartbeat.node, lambda job, epoch: job not in self.gone, self.found.append)
        self.look()

    def start(self, timeout: int = 10 * SECOND) -> Claimed:
        """A job that this node has just begun."""
        job = self.world.job(timeout=timeout)
        assert self.bench.started() == [job]
        claimed = self.bench.start_of(job).job
        self.warden.watch([claimed], self.clock.now())
        return claimed

    def look(self) -> Watched:
        self.bench.turn(self.warden)
        return self.found[-1]

    def next_look(self) -> int:
        """In how many microseconds the warden wants to come again."""
        return self.warden.next_at(self.clock.now()) - self.clock.now()


@pytest.fixture
def watching(bench: Bench) -> Watching:
    return Watching(bench)


def test_a_job_that_runs_longer_than_its_timeout_is_ended_and_its_code_told_to_stop(
    watching: Watching, world: World
) -> None:
    job = watching.start()
    watching.clock.advance(10 * SECOND - 1)
    assert watching.look().ended == []
    watching.clock.advance(1)
    found = watching.look()
    assert (found.ended, found.stop) == ([(job.id, State.TIMED_OUT)], [(job.id, 1)])
    assert (world.row(job.id).reason, world.row(job.id).node) == ("timeout", watching.bench.heartbeat.node)


def test_the_code_is_told_to_stop_at_every_look_until_it_has(watching: Watching, world: World) -> None:
    job = watching.start()
    world.cancel(job.id)
    assert watching.look().stop == [(job.id, 1)]
    assert watching.look().stop == [(job.id, 1)]
    watching.bench.stops(job.id)
    watching.bench.pumped()
    assert watching.look().stop == []


def test_only_code_of_this_node_is_told_to_stop(watching: Watching, world: World) -> None:
    elsewhere = world.running()
    world.cancel(elsewhere.id)
    assert watching.look().stop == []


def test_a_job_that_ended_in_time_is_not_looked_at_again(watching: Watching, world: World) -> None:
    job = watching.start()
    watching.bench.returns(job.id)
    watching.bench.pumped()
    watching.clock.advance(20 * SECOND)
    assert watching.look().ended == []
    assert world.state(job.id) is State.COMPLETED


def test_code_that_has_ended_but_is_not_written_down_yet_is_not_timed_out(watching: Watching) -> None:
    job = watching.start()
    watching.gone.add(job.id)
    watching.clock.advance(20 * SECOND)
    assert watching.look().ended == []


def test_the_timeout_of_an_earlier_epoch_does_not_end_a_later_one(watching: Watching, world: World) -> None:
    job = watching.start()
    watching.bench.stops(job.id, Ending.GIVEN_BACK)
    watching.clock.advance(5 * SECOND)
    assert watching.bench.started() == [job.id]
    watching.warden.watch([watching.bench.start_of(job.id).job], watching.clock.now())
    watching.clock.advance(5 * SECOND)
    assert watching.look().ended == []
    watching.clock.advance(5 * SECOND)
    assert watching.look().ended == [(job.id, State.TIMED_OUT)]


def test_a_deadline_ends_jobs_wherever_they_are(watching: Watching, world: World) -> None:
    soon = world.clock.now() + 3 * SECOND
    queued, delayed = world.job(deadline=soon), world.job(deadline=soon, delay=60 * SECOND)
    blocked = world.job(after=[delayed], deadline=soon)
    behind = world.job(after=[queued])
    _, [staged] = world.stage(world.wish(deadline=soon))
    watching.clock.advance(3 * SECOND)
    found = watching.look()
    assert dict(found.ended) == {
        queued: State.TIMED_OUT, delayed: State.TIMED_OUT, blocked: State.TIMED_OUT, behind: State.FAILED,
    }  # fmt: skip
    assert world.row(queued).reason == "deadline"
    assert world.state(staged) is State.CREATED


def test_a_running_job_whose_deadline_has_passed_is_stopped_too(watching: Watching, world: World) -> None:
    job = world.job(deadline=world.clock.now() + SECOND)
    watching.bench.pumped()
    watching.clock.advance(SECOND)
    found = watching.look()
    assert (found.ended, found.stop) == ([(job, State.TIMED_OUT)], [(job, 1)])


def test_the_warden_comes_every_second_and_when_a_timeout_passes(watching: Watching) -> None:
    assert watching.next_look() == LOOK_EVERY
    watching.start(timeout=SECOND // 4)
    assert watching.next_look() == SECOND // 4
    watching.start(timeout=SECOND // 8)
    assert watching.next_look() == SECOND // 8


def test_the_warden_comes_when_a_deadline_passes(watching: Watching, world: World) -> None:
    world.job(deadline=world.clock.now() + SECOND // 2)
    watching.look()
    assert watching.next_look() == SECOND // 2


def test_the_warden_comes_at_once_when_called_and_at_the_start(watching: Watching, bench: Bench) -> None:
    watching.warden.call()
    assert watching.next_look() == 0
    watching.look()
    assert watching.next_look() == LOOK_EVERY
    fresh = Warden(lambda: bench.heartbeat.node, lambda job, epoch: True, watching.found.append)
    assert fresh.next_at(bench.clock.now()) == bench.clock.now()


def test_a_limit_whose_unit_failed_is_looked_at_again(watching: Watching) -> None:
    job = watching.start()
    watching.clock.advance(10 * SECOND)
    watching.bench.lose(watching.warden)
    assert watching.next_look() <= 1
    assert watching.look().ended == [(job.id, State.TIMED_OUT)]


def test_an_end_that_was_committed_unheard_is_not_written_twice(watching: Watching, world: World) -> None:
    job = watching.start()
    watching.clock.advance(10 * SECOND)
    watching.bench.lose_the_answer(watching.warden)
    found = watching.look()
    assert (found.ended, found.stop) == ([], [(job.id, 1)])
    assert world.words(job.id) == ["queued", "started", "timed_out"]


def test_a_completion_and_a_timeout_meet_and_one_of_them_wins(watching: Watching, world: World) -> None:
    job = watching.start()
    watching.clock.advance(10 * SECOND)
    unit = watching.warden.unit(watching.clock.now())
    watching.bench.returns(job.id)
    watching.bench.pumped()
    found = world.do(unit)
    assert found.ended == []
    assert world.state(job.id) is State.COMPLETED


def test_many_limits_that_pass_together_are_taken_in_several_units(
    watching: Watching, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warden_module, "UNIT_ROWS", 2)
    for _ in range(3):
        watching.start()
    watching.clock.advance(10 * SECOND)
    assert len(watching.look().ended) == 2
    assert watching.next_look() <= 1
    assert len(watching.look().ended) == 1


def test_the_dependents_of_a_job_that_timed_out_are_told(watching: Watching, world: World) -> None:
    job = watching.start()
    needs, follows = world.job(after=[job.id]), world.job(finished=[job.id])
    watching.clock.advance(10 * SECOND)
    assert watching.look().ended == [(job.id, State.TIMED_OUT), (needs, State.FAILED)]
    assert world.state(follows) is State.QUEUED
