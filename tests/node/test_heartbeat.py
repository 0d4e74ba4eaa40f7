from node.stage import BEAT, TERM, Bench, facts
from paceline.core.lifecycle import State
from paceline.core.model import NodeRow
from paceline.events import Kind
from paceline.node.heartbeat import Heartbeat
from paceline.units.reap import end_node, give_back_jobs
from store.world import World


def node_row(world: World, node: int) -> NodeRow:
    return next(row for row in world.do(lambda tx: tx.nodes.newest(100)) if row.id == node)


def test_the_first_beat_begins_a_life_that_is_announced(bench: Bench, world: World) -> None:
    row = node_row(world, bench.heartbeat.node)
    assert (row.name, row.identity, row.slots, row.ending) == ("n1", "process of n1", 10, None)
    assert row.expires_at == bench.clock.now() + TERM
    assert bench.announced(Kind.NODE_STARTED) == [f'{{"node":{row.id}}}']
    assert world.do(lambda tx: tx.nodes.serving(world.agent)) == [row.id]


def test_a_beat_is_due_at_once_and_then_at_its_interval(bench: Bench) -> None:
    fresh = Heartbeat(facts(), list, lambda: None)
    assert fresh.next_at(bench.clock.now()) == bench.clock.now()
    assert bench.heartbeat.next_at(bench.clock.now()) == bench.clock.now() + BEAT


def test_every_beat_renews_the_lease_and_announces_nothing(bench: Bench, world: World) -> None:
    node = bench.heartbeat.node
    bench.clock.advance(BEAT)
    assert bench.turn(bench.heartbeat) == node
    row = node_row(world, node)
    assert (row.beat_at, row.expires_at) == (bench.clock.now(), bench.clock.now() + TERM)
    assert len(bench.announced(Kind.NODE_STARTED)) == 1


def test_a_new_agent_is_announced_at_once(bench: Bench, world: World) -> None:
    agent = world.do(lambda tx: tx.lanes.register("second", "tests", "d", None))
    bench.serve(agent)
    assert bench.heartbeat.next_at(bench.clock.now()) == bench.clock.now()
    bench.turn(bench.heartbeat)
    assert world.do(lambda tx: tx.nodes.serving(agent)) == [bench.heartbeat.node]
    assert bench.heartbeat.next_at(bench.clock.now()) == bench.clock.now() + BEAT


def test_an_agent_whose_announcement_failed_is_announced_again(bench: Bench, world: World) -> None:
    agent = world.do(lambda tx: tx.lanes.register("second", "tests", "d", None))
    bench.serve(agent)
    bench.lose(bench.heartbeat)
    bench.turn(bench.heartbeat)
    assert world.do(lambda tx: tx.nodes.serving(agent)) == [bench.heartbeat.node]


def test_an_agent_that_comes_while_a_beat_is_under_way_is_announced_with_the_next(bench: Bench, world: World) -> None:
    agent = world.do(lambda tx: tx.lanes.register("second", "tests", "d", None))
    now = bench.clock.now()
    beat = bench.heartbeat.unit(now)
    bench.serve(agent)
    bench.heartbeat.done(world.do(beat), now)
    assert bench.heartbeat.next_at(now) == now
    bench.turn(bench.heartbeat)
    assert world.do(lambda tx: tx.nodes.serving(agent)) == [bench.heartbeat.node]


def test_a_missed_beat_is_tried_again_soon_and_the_lease_outlasts_several(bench: Bench) -> None:
    bench.clock.advance(BEAT)
    bench.lose(bench.heartbeat)
    wait = bench.heartbeat.next_at(bench.clock.now()) - bench.clock.now()
    assert 0 < wait <= BEAT // 10
    assert BEAT + 3 * wait < TERM


def test_a_node_whose_life_was_ended_begins_another_and_abandons_what_runs(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    old = bench.heartbeat.node
    world.do(lambda tx: end_node(tx, old, "lease_expired"))
    world.do(lambda tx: give_back_jobs(tx, old, "node_died"))
    assert bench.turn(bench.heartbeat) != old
    assert bench.lives_lost == 1
    assert world.do(lambda tx: tx.nodes.serving(world.agent)) == [bench.heartbeat.node]
    assert node_row(world, old).ending == "lease_expired"
    assert world.state(job) is State.QUEUED
    assert bench.started() == [job], "its new life may run it, in a new epoch"
    assert world.row(job).epoch == 2


def test_beginning_for_the_first_time_abandons_nothing(bench: Bench) -> None:
    assert bench.lives_lost == 0


def test_a_life_whose_beginning_was_committed_unheard_is_followed_by_another(world: World) -> None:
    heartbeat = Heartbeat(facts(), list, lambda: None)
    now = world.clock.now()
    world.do(heartbeat.unit(now))
    heartbeat.failed(now)
    unheard = max(row.id for row in world.do(lambda tx: tx.nodes.live()))
    heartbeat.done(world.do(heartbeat.unit(now)), now)
    assert heartbeat.node == unheard + 1
    assert heartbeat.next_at(now) == now + BEAT
