"""Nodes beside each other: none takes everything first, and nothing waits for one that does not come."""

from node.stage import Bench
from paceline.core.model import SECOND
from paceline.core.sharing import PAUSE
from store.world import World


def beside(world: World, slots: int = 10) -> tuple[Bench, Bench]:
    one = Bench(world, slots, name="n1")
    other = Bench(world, slots, name="n2")
    return one, other


def shares(world: World, benches: tuple[Bench, ...], turns: list[int]) -> list[int]:
    """Lets each node take a round in its turn, in which everything that it runs ends; how many each has run."""
    counts = [0] * len(benches)
    for turn in turns:
        bench = benches[turn]
        for job in bench.running():
            bench.returns(job)
        counts[turn] += len(bench.started())
        world.clock.advance(SECOND // 1_000)
    return counts


def test_a_node_leaves_others_their_share(world: World) -> None:
    one, other = beside(world)
    jobs = world.jobs(10)
    assert (one.started(), other.started()) == (jobs[:5], jobs[5:])


def test_work_for_all_is_not_divided(world: World) -> None:
    one, other = beside(world)
    jobs = world.jobs(25)
    assert (one.started(), other.started()) == (jobs[:10], jobs[10:20])


def test_a_single_job_is_taken_at_once(world: World) -> None:
    one, _ = beside(world)
    jobs = world.jobs(1)
    assert one.started() == jobs


def test_what_others_do_not_take_is_taken_at_the_next_look(world: World) -> None:
    one, _ = beside(world)
    jobs = world.jobs(10)
    round = one.pumped()
    assert round.offers
    assert len(round.starts) == 5
    assert one.started() == [], "they have a moment"
    look = one.pump.next_at(world.clock.now())
    assert PAUSE <= look - world.clock.now() <= SECOND
    world.clock.set(look)
    assert one.started() == jobs[5:]


def test_nothing_is_left_for_a_while_for_nodes_that_took_nothing(world: World) -> None:
    one, _ = beside(world, slots=100)
    world.jobs(10)
    one.pumped()
    world.clock.advance(PAUSE)
    one.pumped()
    assert len(one.started()) == 0
    world.jobs(10)
    assert len(one.started()) == 10
    world.clock.advance(SECOND)
    world.jobs(10)
    assert len(one.started()) < 10


def test_a_node_without_code_for_the_agent_is_left_nothing(world: World) -> None:
    one, other = beside(world)
    agent = world.do(lambda tx: tx.lanes.register("other", "tests", "d", None))
    one.serve(agent)
    one.turn(one.heartbeat)
    world.agent = agent
    assert len(world.jobs(10)) == len(one.started())
    assert other.started() == []


def test_a_claim_that_was_rolled_back_has_left_nothing(world: World) -> None:
    one, _ = beside(world)
    world.jobs(10)
    one.lose(one.pump)
    assert len(one.started()) == 5


def test_two_nodes_of_equal_room_end_alike_whoever_comes_first(world: World) -> None:
    """Waves of short jobs, each wave less than one node could take alone."""
    benches = beside(world, slots=100)
    done = [0, 0]
    for _ in range(40):
        world.jobs(60)
        for place, count in enumerate(shares(world, benches, [0, 1, 0, 1, 0])):
            done[place] += count
        world.clock.advance(SECOND)
    assert sum(done) == 2_400
    assert 0.4 <= done[0] / sum(done) <= 0.6, done


def test_two_nodes_end_alike_although_one_comes_more_often(world: World) -> None:
    benches = beside(world, slots=100)
    done = [0, 0]
    for _ in range(40):
        world.jobs(60)
        for place, count in enumerate(shares(world, benches, [0, 0, 0, 1, 0, 0, 1])):
            done[place] += count
        world.clock.advance(SECOND)
    assert sum(done) == 2_400
    assert 0.4 <= done[0] / sum(done) <= 0.6, done


def test_a_pool_that_all_share_is_shared_by_all(world: World) -> None:
    """One node has all of it, and whatever ends there is free for both."""
    world.do(lambda tx: tx.lanes.register("worker", "tests", "d1", 64))
    one = Bench(world, 1_000, name="n1")
    one.serve(world.agent, limited=True)
    for _ in range(5):
        world.jobs(500)
    assert len(one.started()) == 64
    other = Bench(world, 1_000, name="n2")
    other.serve(world.agent, limited=True)
    done = [0, 0]
    for turn in range(600):
        for bench in (one, other):
            for job in bench.running()[: 1 + turn % 7]:
                bench.returns(job)
        for place, bench in enumerate((one, other)):
            done[place] += len(bench.started())
        world.clock.advance(SECOND // 500)
    assert sum(done) > 2_000
    assert 0.4 <= done[0] / sum(done) <= 0.6, done


def pinned(world: World) -> tuple[Bench, Bench]:
    return Bench(world, name="n1", work_sharing=False), Bench(world, name="n2", work_sharing=False)


def test_at_equal_rank_a_node_starts_its_own_submissions_first(world: World) -> None:
    one, other = beside(world, slots=2)
    theirs = [world.job(home=other.heartbeat.node) for _ in range(3)]
    mine = [world.job(home=one.heartbeat.node) for _ in range(3)]
    assert (one.started(), other.started()) == (mine[:2], theirs[:2])


def test_a_node_with_nothing_of_its_own_takes_what_others_submitted(world: World) -> None:
    one, other = beside(world)
    jobs = [world.job(home=one.heartbeat.node) for _ in range(4)]
    assert (one.started(), other.started()) == (jobs[:2], jobs[2:])


def test_a_node_that_does_not_share_work_takes_its_own_and_what_nobody_is_at_home_for(world: World) -> None:
    one, other = pinned(world)
    mine, theirs, anybodys = (world.job(home=home) for home in (one.heartbeat.node, other.heartbeat.node, 0))
    stranded = world.job(home=world.node)
    assert (one.started(), other.started()) == ([mine, anybodys], [theirs, stranded])


def test_work_of_a_node_that_died_is_stranded_nowhere(world: World) -> None:
    one, other = pinned(world)
    job = world.job(home=other.heartbeat.node)
    assert one.started() == []
    world.do(lambda tx: tx.nodes.end(other.heartbeat.node, tx.now, "process_gone"))
    assert one.started() == [job]


def test_a_node_in_its_next_life_knows_what_it_submitted_in_an_earlier_one(world: World) -> None:
    one, _ = pinned(world)
    job = world.job(home=one.heartbeat.node)
    world.do(lambda tx: tx.nodes.end(one.heartbeat.node, tx.now, "lease_expired"))
    one.turn(one.heartbeat)
    assert one.started() == [job]


def test_a_node_that_was_outrun_looks_again_in_the_same_claim(world: World) -> None:
    one, other = beside(world, slots=2)
    jobs = world.jobs(40)
    assert (one.started(), other.started()) == (jobs[:2], jobs[2:4])
    for _ in range(10):
        for job in one.running():
            one.returns(job)
        one.pumped()
    for job in other.running():
        other.returns(job)
    assert other.started() == jobs[24:26]
