"""What listings ask of every database beyond single jobs: the lanes that are not empty, and what ended last."""

from paceline.core.lifecycle import State
from paceline.events import Kind
from store.world import World


def test_lanes_with_ready_jobs_are_found_up_to_a_number(world: World) -> None:
    tenants = ("a", "b", "c")
    lanes = [world.row(world.job(tenant=tenant)).lane for tenant in tenants]
    world.cancel(world.job(tenant="nothing left"))
    world.job(tenant="delayed", delay=5)
    found = world.do(lambda tx: tx.listing.ready_lanes(10))
    assert [lane.id for lane in found] == lanes
    assert {lane.agent for lane in found} == {world.agent}
    assert [lane.id for lane in world.do(lambda tx: tx.listing.ready_lanes(2))] == lanes[:2]


def test_no_ready_job_means_no_lane(world: World) -> None:
    assert world.do(lambda tx: tx.listing.ready_lanes(10)) == []


def test_what_ended_last_comes_first_and_only_as_far_as_the_cursor(world: World) -> None:
    first, second = world.running(), world.running(tenant="acme")
    world.in_state(State.RUNNING)
    world.complete(second)
    cursor = world.do(lambda tx: tx.events.last())
    world.complete(first)
    kinds = (Kind.JOB_COMPLETED, Kind.JOB_FAILED)
    assert world.do(lambda tx: tx.history.ended(0, kinds, None, 10)) == [first.id, second.id]
    assert world.do(lambda tx: tx.history.ended(0, kinds, [second.lane], 10)) == [second.id]
    assert world.do(lambda tx: tx.history.ended(cursor, kinds, None, 10)) == [first.id]
    assert world.do(lambda tx: tx.history.ended(0, kinds, None, 1)) == [first.id]
    assert world.do(lambda tx: tx.history.ended(0, (Kind.JOB_FAILED,), None, 10)) == []


def test_a_job_that_lives_again_is_not_among_those_that_ended(world: World) -> None:
    job = world.in_state(State.FAILED)
    world.replay(job)
    assert world.do(lambda tx: tx.history.ended(0, (Kind.JOB_FAILED,), None, 10)) == []
