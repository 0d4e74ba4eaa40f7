import json
from typing import Literal

import pytest

from node.stage import TERM, Bench
from paceline.core.completion import Ended, Ending
from paceline.core.leasing import Lead
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS
from paceline.events import Kind
from paceline.node.reaper import SWEEP_EVERY, Reaped, Reaper
from paceline.units.leading import REAPING
from store.world import World

Seen = Literal["alive", "dead", "unknown"]


class Sweeping:
    """A reaper of a living node, and what it can see of other processes."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.world, self.clock = bench, bench.world, bench.clock
        self.seen: dict[str, Seen] = {}
        self.reaper = Reaper(
            lambda: bench.heartbeat.node, lambda name: self.seen.get(name, "unknown"), bench.clock.monotonic, TERM
        )
        self.world.do(lambda tx: tx.nodes.end(self.world.node, tx.now, "stopped"))
        self.other = self.world.do(lambda tx: tx.nodes.add("other", "p-other", "1", 10, tx.now, tx.now + TERM))

    def sweep(self) -> Reaped:
        self.bench.turn(self.bench.heartbeat)
        found: Reaped = self.bench.turn(self.reaper)
        return found

    def pass_time(self, seconds: int) -> None:
        """Time in which this node does what it should."""
        for _ in range(seconds // 5):
            self.clock.advance(SWEEP_EVERY)
            self.sweep()

    def ending(self) -> str | None:
        rows = self.world.do(lambda tx: tx.nodes.newest(100))
        return next(row.ending for row in rows if row.id == self.other)


@pytest.fixture
def sweeping(bench: Bench) -> Sweeping:
    return Sweeping(bench)


def test_a_node_that_renews_its_lease_lives(sweeping: Sweeping) -> None:
    other = sweeping.other
    for _ in range(30):
        sweeping.pass_time(5)
        sweeping.world.do(lambda tx: tx.nodes.beat(other, tx.now, tx.now + TERM))
    assert sweeping.ending() is None


def test_a_node_whose_lease_has_expired_is_ended_and_its_jobs_come_back(sweeping: Sweeping, world: World) -> None:
    [job] = world.claim(world.job(), node=sweeping.other)
    sweeping.pass_time(55)
    assert (sweeping.ending(), world.state(job.id)) == (None, State.RUNNING)
    sweeping.pass_time(10)
    assert sweeping.ending() == "lease_expired"
    assert (world.state(job.id), world.row(job.id).node) == (State.QUEUED, None)
    assert world.words(job.id) == ["queued", "started", "given_back"]
    assert json.loads(sweeping.bench.announced(Kind.JOB_GIVEN_BACK)[0]) == {"reason": "node_died"}
    assert json.loads(sweeping.bench.announced(Kind.NODE_DIED)[0]) == {
        "node": sweeping.other,
        "ending": "lease_expired",
    }


def test_a_node_whose_process_is_gone_is_ended_at_once(sweeping: Sweeping, world: World) -> None:
    world.claim(world.job(), node=sweeping.other)
    sweeping.sweep()
    sweeping.seen["p-other"] = "dead"
    sweeping.sweep()
    assert sweeping.ending() == "process_gone"


def test_a_node_that_is_seen_for_the_first_time_is_looked_at_again_at_once(sweeping: Sweeping) -> None:
    sweeping.seen["p-other"] = "dead"
    assert sweeping.reaper.next_at(sweeping.clock.now()) == sweeping.clock.now()
    sweeping.sweep()
    assert sweeping.reaper.next_at(sweeping.clock.now()) == sweeping.clock.now()
    sweeping.sweep()
    assert sweeping.ending() == "process_gone"


def test_a_process_that_is_alive_does_not_replace_its_lease(sweeping: Sweeping) -> None:
    sweeping.seen["p-other"] = "alive"
    sweeping.pass_time(65)
    assert sweeping.ending() == "lease_expired"


def test_a_node_never_ends_itself(sweeping: Sweeping) -> None:
    sweeping.seen["process of n1"] = "dead"
    sweeping.bench.turn(sweeping.reaper)
    sweeping.clock.advance(SWEEP_EVERY)
    sweeping.bench.turn(sweeping.reaper)
    assert sweeping.bench.heartbeat.node in {row.id for row in sweeping.world.do(lambda tx: tx.nodes.live())}


def lead(world: World) -> Lead:
    found = world.do(lambda tx: tx.leaders.lead(REAPING))
    assert found is not None
    return found


def test_the_first_node_to_look_leads_and_says_so(sweeping: Sweeping, world: World) -> None:
    assert sweeping.sweep().leads
    node = sweeping.bench.heartbeat.node
    assert lead(world) == Lead(node, 1, sweeping.clock.now() + TERM // 2)
    assert [json.loads(data) for data in sweeping.bench.announced(Kind.LEADER_CHANGED)] == [
        {"name": "reaping", "node": node, "term": 1}
    ]
    sweeping.pass_time(60)
    assert (lead(world).term, len(sweeping.bench.announced(Kind.LEADER_CHANGED))) == (1, 1)


def led_by_the_other(sweeping: Sweeping, seconds: int) -> None:
    other, world = sweeping.other, sweeping.world
    world.do(lambda tx: tx.leaders.hold(REAPING, None, Lead(other, 7, tx.now + seconds * SECOND)))


def test_who_does_not_lead_ends_nobody_because_of_the_time(sweeping: Sweeping, world: World) -> None:
    late = world.do(lambda tx: tx.nodes.add("late", "p-late", "1", 10, tx.now, tx.now))
    led_by_the_other(sweeping, 12)
    sweeping.pass_time(10)
    assert late in {row.id for row in world.do(lambda tx: tx.nodes.live())}
    sweeping.pass_time(5)
    assert late not in {row.id for row in world.do(lambda tx: tx.nodes.live())}
    assert lead(world)[:2] == (sweeping.bench.heartbeat.node, 8)


def test_who_does_not_lead_still_says_that_a_process_is_gone(sweeping: Sweeping, world: World) -> None:
    late = world.do(lambda tx: tx.nodes.add("late", "p-late", "1", 10, tx.now, tx.now + TERM))
    [job] = world.claim(world.job(), node=late)
    led_by_the_other(sweeping, 600)
    sweeping.seen["p-late"] = "dead"
    for _ in range(3):
        assert not sweeping.sweep().leads
    assert (world.state(job.id), lead(world).node) == (State.QUEUED, sweeping.other)


def test_a_leader_that_died_is_replaced_in_time_for_its_own_jobs(sweeping: Sweeping, world: World) -> None:
    """It renewed its life and its lead at the very moment of its death."""
    [job] = world.claim(world.job(), node=sweeping.other)
    led_by_the_other(sweeping, TERM // 2 // SECOND)
    sweeping.pass_time(TERM // SECOND)
    assert sweeping.ending() == "lease_expired"
    sweeping.sweep()
    assert world.state(job.id) is State.QUEUED


def test_a_leader_whose_process_is_gone_is_followed_in_the_next_sweep(sweeping: Sweeping, world: World) -> None:
    led_by_the_other(sweeping, 600)
    sweeping.sweep()
    sweeping.seen["p-other"] = "dead"
    assert [sweeping.sweep().leads, sweeping.sweep().leads] == [False, True]


def test_a_leader_that_froze_finds_out_in_its_late_sweep_and_reaps_nothing(sweeping: Sweeping, world: World) -> None:
    sweeping.sweep()
    late = world.do(lambda tx: tx.nodes.add("late", "p-late", "1", 10, tx.now, tx.now + 20 * SECOND))
    sweeping.clock.advance(SWEEP_EVERY)
    unit = sweeping.reaper.unit(sweeping.clock.now())
    sweeping.clock.advance(TERM // 2 - SWEEP_EVERY)
    held, other = lead(world), sweeping.other
    assert world.do(lambda tx: tx.leaders.hold(REAPING, held, Lead(other, 2, tx.now + TERM)))
    assert not world.do(unit).leads
    assert late in {row.id for row in world.do(lambda tx: tx.nodes.live())}


def test_a_short_lease_has_a_lead_that_is_renewed_within_it(sweeping: Sweeping) -> None:
    node, now = sweeping.bench.heartbeat.node, sweeping.clock.now()
    short = Reaper(lambda: node, lambda _: "unknown", sweeping.clock.monotonic, 2 * SECOND)
    sweeping.bench.turn(short)
    sweeping.bench.turn(short)
    assert short.next_at(now) == now + SECOND // 2


def test_of_two_reapers_one_ends_a_life(sweeping: Sweeping) -> None:
    node, monotonic = sweeping.bench.heartbeat.node, sweeping.clock.monotonic
    rival = Reaper(lambda: node, lambda name: sweeping.seen.get(name, "unknown"), monotonic, TERM)
    sweeping.seen["p-other"] = "dead"
    for loop in (sweeping.reaper, rival) * 3:
        sweeping.bench.turn(loop)
    assert len(sweeping.bench.announced(Kind.NODE_DIED)) == 1


def test_after_the_host_has_slept_everybody_has_a_full_term_to_renew(sweeping: Sweeping) -> None:
    sweeping.sweep()
    sweeping.clock.suspend(3_600 * SECOND)
    sweeping.sweep()
    assert sweeping.ending() is None
    assert [json.loads(data)["seconds"] for data in sweeping.bench.announced(Kind.HOST_SUSPENDED)] == [3_600]
    sweeping.pass_time(55)
    assert sweeping.ending() is None
    sweeping.pass_time(10)
    assert sweeping.ending() == "lease_expired", "it had its chance"


def test_a_sleep_between_the_decision_and_the_commit_ends_nobody(sweeping: Sweeping) -> None:
    sweeping.pass_time(30)
    unit = sweeping.reaper.unit(sweeping.clock.now())
    sweeping.clock.suspend(3_600 * SECOND)
    sweeping.world.do(unit)
    assert sweeping.ending() is None


def test_a_reaper_that_was_frozen_itself_gives_the_others_time(sweeping: Sweeping) -> None:
    sweeping.sweep()
    sweeping.clock.advance(90 * SECOND)
    sweeping.sweep()
    assert sweeping.ending() is None
    sweeping.pass_time(65)
    assert sweeping.ending() == "lease_expired"


def test_even_after_a_sleep_a_process_that_is_gone_is_gone(sweeping: Sweeping) -> None:
    sweeping.sweep()
    sweeping.clock.suspend(3_600 * SECOND)
    sweeping.seen["p-other"] = "dead"
    sweeping.sweep()
    assert sweeping.ending() == "process_gone"


def test_many_jobs_come_back_in_several_units_without_a_pause(sweeping: Sweeping, world: World) -> None:
    for count in (UNIT_ROWS, 7):
        world.claim(*world.jobs(count), node=sweeping.other)
    sweeping.seen["p-other"] = "dead"
    sweeping.sweep()
    assert sweeping.sweep().returned == UNIT_ROWS
    assert sweeping.reaper.next_at(sweeping.clock.now()) == sweeping.clock.now()
    assert sweeping.sweep().returned == 7
    assert sweeping.sweep().returned == 0
    assert sweeping.reaper.next_at(sweeping.clock.now()) == sweeping.clock.now() + SWEEP_EVERY


def test_a_cancelled_job_of_a_dead_node_is_released_and_not_run_again(sweeping: Sweeping, world: World) -> None:
    [job] = world.claim(world.job(), node=sweeping.other)
    world.cancel(job.id)
    sweeping.seen["p-other"] = "dead"
    sweeping.sweep()
    sweeping.sweep()
    assert (world.state(job.id), world.row(job.id).node) == (State.CANCELLED, None)
    assert world.words(job.id)[-1] == "released"


def test_what_a_dead_node_leased_is_free(sweeping: Sweeping, world: World) -> None:
    [job] = world.claim(world.job(), node=sweeping.other)
    world.do(lambda tx: tx.pools.take([(job.id, "gpu", job.epoch, 2)]))
    sweeping.seen["p-other"] = "dead"
    sweeping.sweep()
    sweeping.sweep()
    assert world.do(lambda tx: tx.pools.held()) == {}


def test_a_frozen_node_that_wakes_is_fenced(sweeping: Sweeping, world: World) -> None:
    [job] = world.claim(world.job(), node=sweeping.other)
    sweeping.pass_time(65)
    [again] = world.claim(job.id, node=sweeping.bench.heartbeat.node)
    late = world.finish(Ended(job, Ending.RETURNED, '"old"'))
    assert (late.ended, late.stale) == ([], [job.id])
    assert world.complete(again, '"new"') == [(job.id, State.COMPLETED)]
    assert world.do(lambda tx: tx.outcomes.results([job.id]))[job.id][2] == '"new"'


def test_a_sweep_that_failed_is_made_again(sweeping: Sweeping) -> None:
    sweeping.sweep()
    sweeping.seen["p-other"] = "dead"
    sweeping.bench.lose(sweeping.reaper)
    assert sweeping.ending() is None
    assert sweeping.reaper.next_at(sweeping.clock.now()) <= sweeping.clock.now() + SWEEP_EVERY
    sweeping.sweep()
    assert sweeping.ending() == "process_gone"


def test_the_jobs_of_a_node_that_left_without_them_are_found(sweeping: Sweeping, world: World) -> None:
    [job] = world.claim(world.job(), node=sweeping.other)
    other = sweeping.other
    world.do(lambda tx: tx.nodes.end(other, tx.now, "stopped"))
    assert sweeping.sweep().returned == 1
    assert world.state(job.id) is State.QUEUED
