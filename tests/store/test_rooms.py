"""Lanes, nodes, pools, and the questions that loops, waiting callers and people ask."""

import pytest

from paceline.core.failures import FailureClass
from paceline.core.leasing import Lead
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Met
from paceline.core.problem import Problem
from paceline.core.scheduling import QueueClass
from paceline.events import Kind
from paceline.store.protocol import Tx
from store.world import TERM, World, newest_events


def test_the_number_of_an_agent_stays_and_its_newest_definition_counts(world: World) -> None:
    first = world.do(lambda tx: tx.lanes.register("writer", "a", "d1", 2))
    other = world.do(lambda tx: tx.lanes.register("writer", "b", "d1", None))
    assert world.do(lambda tx: tx.lanes.register("writer", "a", "d1", 2)) == first != other
    assert world.do(lambda tx: tx.lanes.register("writer", "a", "d2", 3)) == first
    rows = world.do(lambda tx: tx.lanes.agents_named("writer"))
    assert [(row.id, row.origin, row.definition, row.max_concurrency) for row in rows] == [
        (first, "a", "d2", 3), (other, "b", "d1", None),
    ]  # fmt: skip
    assert [row.name for row in world.do(lambda tx: tx.lanes.agents())] == ["worker", "writer", "writer"]


def test_tenants_and_lanes_are_numbered_once(world: World) -> None:
    tenants = [world.do(lambda tx: tx.lanes.tenant("acme")) for _ in range(2)]
    lanes = [world.do(lambda tx: tx.lanes.lane(1, 50, tenants[0], world.agent, 7)) for _ in range(2)]
    assert (len(set(tenants)), len(set(lanes))) == (1, 1)
    assert world.do(lambda tx: tx.lanes.lane(1, 50, tenants[0], world.agent)) != lanes[0]
    facts = world.do(lambda tx: tx.lanes.facts([*lanes, 999]))
    assert list(facts) == [lanes[0]]
    assert facts[lanes[0]][1:] == (QueueClass.STANDARD, 50, tenants[0], world.agent, 7)


def test_numbers_given_in_a_unit_that_failed_are_not_remembered(world: World) -> None:
    def fail(tx: Tx) -> None:
        tx.lanes.lane(0, 0, tx.lanes.tenant("ghost"), world.agent)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        world.do(fail)
    assert world.state(world.job(tenant="ghost", queue_class=QueueClass.INTERACTIVE, priority=0)) is State.QUEUED


def test_lane_heads_come_in_order_of_age_and_then_of_submission(world: World) -> None:
    early = world.jobs(2)
    world.clock.advance(SECOND)
    late = world.jobs(2)
    lane = world.row(early[0]).lane
    world.do(lambda tx: tx.jobs.claim([early[0]], world.node, tx.now))
    world.job(delay=SECOND)
    assert [row[2] for row in world.do(lambda tx: tx.lanes.heads([(lane, -1, -1)], 10))] == [early[1], *late]
    behind = (lane, world.row(late[0]).ready_at or 0, late[0])
    assert [row[2] for row in world.do(lambda tx: tx.lanes.heads([behind], 10))] == [late[1]]


def test_heads_of_several_lanes_are_bounded_for_each(world: World) -> None:
    high = [world.job(priority=0) for _ in range(3)]
    low = [world.job(priority=100) for _ in range(3)]
    lanes = world.do(lambda tx: tx.lanes.with_ready_jobs())
    assert lanes == sorted({world.row(high[0]).lane, world.row(low[0]).lane})
    heads = world.do(lambda tx: tx.lanes.heads([(lane, -1, -1) for lane in lanes], 2))
    assert sorted(row[2] for row in heads) == sorted([*high[:2], *low[:2]])
    assert world.do(lambda tx: tx.lanes.heads([], 2)) == []


def test_a_lane_whose_last_ready_job_was_taken_is_not_ready(world: World) -> None:
    (job,) = world.jobs(1)
    world.claim(job)
    assert world.do(lambda tx: tx.lanes.with_ready_jobs()) == []


def test_a_beat_renews_a_living_node_and_no_other(world: World) -> None:
    world.clock.advance(SECOND)
    until = world.clock.now() + TERM
    assert world.do(lambda tx: tx.nodes.beat(world.node, tx.now, until))
    (row,) = world.do(lambda tx: tx.nodes.live())
    assert (row.beat_at, row.expires_at, row.ended_at) == (world.clock.now(), until, None)
    assert world.do(lambda tx: tx.nodes.end(world.node, tx.now, "stopped"))
    assert not world.do(lambda tx: tx.nodes.beat(world.node, tx.now, until))
    assert not world.do(lambda tx: tx.nodes.beat(999, tx.now, until))


def test_a_life_ends_once_and_its_number_is_not_given_again(world: World) -> None:
    assert world.do(lambda tx: tx.nodes.end(world.node, tx.now, "process_gone"))
    assert not world.do(lambda tx: tx.nodes.end(world.node, tx.now, "lease_expired"))
    assert world.do(lambda tx: tx.nodes.live()) == []
    again = world.do(lambda tx: tx.nodes.add("n1", "p2", "1", 10, tx.now, tx.now + TERM))
    assert again > world.node
    assert [row.id for row in world.do(lambda tx: tx.nodes.live())] == [again]
    assert [(row.id, row.ending) for row in world.do(lambda tx: tx.nodes.newest(10))] == [
        (again, None), (world.node, "process_gone"),
    ]  # fmt: skip
    assert [row.id for row in world.do(lambda tx: tx.nodes.newest(1))] == [again]


def test_what_an_ended_node_still_holds_is_found(world: World) -> None:
    job = world.running()
    assert world.do(lambda tx: (tx.nodes.ended_holding(), tx.nodes.load())) == ([], {world.node: 1})
    world.do(lambda tx: tx.nodes.end(world.node, tx.now, "stopped"))
    assert world.do(lambda tx: tx.nodes.ended_holding()) == [world.node]
    world.complete(job)
    assert world.do(lambda tx: (tx.nodes.ended_holding(), tx.nodes.load())) == ([], {})


def test_a_node_knows_how_much_room_others_have(world: World) -> None:
    other = world.do(lambda tx: tx.nodes.add("n2", "p2", "1", 7, tx.now, tx.now + TERM))
    world.do(lambda tx: tx.nodes.serve(other, [world.agent]))
    world.running()
    assert world.do(lambda tx: (tx.company.look(world.node).slots, tx.company.look(other).slots)) == (7, 10)

    def free() -> dict[int, int]:
        return world.do(lambda tx: tx.company.free(world.node, [world.agent, 999], tx.now, for_anybody=False))

    assert free() == {world.node: 9, other: 7}
    assert world.do(lambda tx: tx.company.free(world.node, [999], tx.now, for_anybody=True)) == {}
    for node in (world.node, other):
        world.do(lambda tx: tx.company.stand_aside(node, tx.now + SECOND))  # noqa: B023
    assert free() == {world.node: 9}
    world.clock.advance(SECOND)
    assert free() == {world.node: 9, other: 7}
    pinned = world.do(lambda tx: tx.nodes.add("n3", "p3", "1", 3, tx.now, tx.now + TERM, work_sharing=False))
    world.do(lambda tx: tx.nodes.serve(pinned, [world.agent]))
    assert free() == {world.node: 9, other: 7}
    assert world.do(lambda tx: tx.company.free(0, [world.agent], tx.now, for_anybody=True))[pinned] == 3
    for node in (other, pinned):
        world.do(lambda tx: tx.nodes.end(node, tx.now, "stopped"))  # noqa: B023
    assert (free(), world.do(lambda tx: tx.company.look(world.node).slots)) == ({world.node: 9}, 0)
    assert world.do(lambda tx: (tx.company.look(other).alive, tx.company.look(999).alive)) == (False, False)
    world.clock.advance(TERM)
    assert free() == {}


def test_living_nodes_say_once_which_agents_they_serve(world: World) -> None:
    for _ in range(2):
        world.do(lambda tx: tx.nodes.serve(world.node, [world.agent]))
    assert world.do(lambda tx: tx.nodes.serving(world.agent)) == [world.node]
    assert world.do(lambda tx: tx.reasons.served()) == [(world.node, world.agent, "worker", "tests")]
    world.do(lambda tx: tx.nodes.end(world.node, tx.now, "stopped"))
    assert world.do(lambda tx: (tx.nodes.serving(world.agent), tx.reasons.served())) == ([], [])


def test_a_lead_is_held_by_whoever_saw_it_as_it_is(world: World) -> None:
    first, second, third = Lead(world.node, 1, 100), Lead(7, 2, 200), Lead(8, 2, 300)
    assert world.do(lambda tx: tx.leaders.lead("sweeping")) is None
    assert world.do(lambda tx: tx.leaders.hold("sweeping", None, first))
    assert not world.do(lambda tx: tx.leaders.hold("sweeping", None, second)), "somebody had begun before"
    assert world.do(lambda tx: tx.leaders.hold("sweeping", first, second))
    assert not world.do(lambda tx: tx.leaders.hold("sweeping", first, third)), "it had gone to somebody else"
    for other in (second._replace(node=9), second._replace(term=1), second._replace(expires_at=199)):
        assert not world.do(lambda tx: tx.leaders.hold("sweeping", other, third))  # noqa: B023
    assert world.do(lambda tx: (tx.leaders.lead("sweeping"), tx.leaders.lead("other"))) == (second, None)


def test_limits_are_seeded_once_and_the_store_stays_the_truth(world: World) -> None:
    world.do(lambda tx: tx.pools.seed({"llm": 3, "gpu": 1}))
    world.do(lambda tx: tx.pools.seed({"llm": 99}))
    assert world.do(lambda tx: tx.pools.limits()) == {"gpu": 1, "llm": 3}


def test_leases_are_summed_by_pool_and_named_by_job(world: World) -> None:
    one, two = world.running(), world.running()
    world.do(lambda tx: tx.pools.take([(one.id, "llm", 1, 2), (two.id, "llm", 1, 1), (two.id, "gpu", 1, 1)]))
    assert world.do(lambda tx: tx.pools.held()) == {"llm": 3, "gpu": 1}
    assert world.do(lambda tx: tx.pools.holders("llm")) == [(one.id, 2), (two.id, 1)]
    assert world.do(lambda tx: tx.reasons.holders(world.agent, "gpu", 10)) == [
        (two.id, world.clock.now(), State.RUNNING)
    ]
    world.complete(one)
    world.complete(two)
    assert world.do(lambda tx: tx.pools.held()) == {}


def test_only_the_epoch_that_holds_a_lease_releases_it_and_twice_is_fine(world: World) -> None:
    job = world.running()
    world.do(lambda tx: tx.pools.take([(job.id, "llm", job.epoch, 1)]))
    world.do(lambda tx: tx.pools.release([(job.id, job.epoch - 1), (job.id + 1, job.epoch)]))
    assert world.do(lambda tx: tx.pools.held()) == {"llm": 1}
    for _ in range(2):
        world.do(lambda tx: tx.pools.release([(job.id, job.epoch)]))
    assert world.do(lambda tx: tx.pools.held()) == {}


def test_a_unit_of_a_pool_is_held_once_by_a_job(world: World) -> None:
    job = world.running()
    world.do(lambda tx: tx.pools.take([(job.id, "llm", job.epoch, 1)]))
    with pytest.raises(Problem):
        world.do(lambda tx: tx.pools.take([(job.id, "llm", job.epoch + 1, 1)]))
    world.do(lambda tx: tx.pools.release([(job.id, job.epoch)]))


def test_delays_and_deadlines_come_in_order_of_time(world: World) -> None:
    assert world.do(lambda tx: (tx.watch.next_due(), tx.watch.next_deadline())) == (None, None)
    now = world.clock.now()
    late, early = world.job(delay=3 * SECOND), world.job(delay=SECOND)
    slow, urgent = world.job(deadline=now + 9 * SECOND), world.job(deadline=now + SECOND)
    world.stage(world.wish(deadline=now + SECOND))
    assert world.do(lambda tx: (tx.watch.next_due(), tx.watch.next_deadline())) == (now + SECOND, now + SECOND)
    assert world.do(lambda tx: (tx.watch.due(tx.now, 10), tx.watch.overdue(tx.now, 10))) == ([], [])
    world.clock.advance(10 * SECOND)
    assert world.do(lambda tx: tx.watch.due(tx.now, 10)) == [(early, 0), (late, 0)]
    assert world.do(lambda tx: tx.watch.due(tx.now, 1)) == [(early, 0)]
    assert world.do(lambda tx: tx.watch.overdue(tx.now, 10)) == [urgent, slow]
    assert world.do(lambda tx: tx.watch.overdue(tx.now, 1)) == [urgent]
    world.time_out(urgent)
    assert world.do(lambda tx: tx.watch.overdue(tx.now, 10)) == [slow]


def test_a_deadline_can_be_lifted(world: World) -> None:
    job = world.job(deadline=world.clock.now())
    world.do(lambda tx: tx.outcomes.lift_deadline(job))
    assert world.do(lambda tx: tx.watch.overdue(tx.now, 10)) == []


def test_a_node_sees_what_it_holds_and_what_others_have_ended(world: World) -> None:
    one, two = world.running(), world.running()
    assert world.do(lambda tx: tx.watch.held_by_node(world.node, 10)) == [one.id, two.id]
    assert world.do(lambda tx: tx.watch.held_by_node(world.node, 1)) == [one.id]
    assert world.do(lambda tx: tx.watch.held_by_lane()) == [(one.lane, 2)]
    assert world.do(lambda tx: tx.watch.ended_but_held(world.node, 10)) == []
    world.cancel(two.id)
    assert world.do(lambda tx: tx.watch.ended_but_held(world.node, 10)) == [(two.id, two.epoch)]
    assert world.do(lambda tx: tx.watch.held_by_lane()) == [(one.lane, 2)]
    world.stop(two)
    assert world.do(lambda tx: tx.watch.held_by_lane()) == [(one.lane, 1)]


def test_children_are_found_and_cancelled_with_their_parent(world: World) -> None:
    parent = world.running()
    child = world.job(parent=parent.id)
    grandchild = world.job(parent=child)
    assert world.row(grandchild).root == parent.id
    assert world.do(lambda tx: tx.watch.children([parent.id, child], 10)) == [child, grandchild]
    assert world.do(lambda tx: tx.watch.open_children([parent.id, child], 1)) == [child]
    world.cancel(parent.id)
    assert {world.state(job) for job in (child, grandchild)} == {State.CANCELLED}
    assert world.do(lambda tx: tx.watch.open_children([parent.id, child], 10)) == []
    world.stop(parent)


def test_outcomes_are_answered_for_what_exists(world: World) -> None:
    done, failed, ready = world.in_state(State.COMPLETED), world.in_state(State.FAILED), world.job("[1]")
    assert sorted(world.do(lambda tx: tx.outcomes.states([ready, 999, failed, done]))) == [
        (done, State.COMPLETED), (failed, State.FAILED), (ready, State.QUEUED),
    ]  # fmt: skip
    found = world.do(lambda tx: tx.outcomes.results([ready, done, 999]))
    assert found == {done: (State.COMPLETED, None, "2"), ready: (State.QUEUED, None, None)}
    assert world.do(lambda tx: tx.outcomes.input(ready)) == "[1]"
    world.do(lambda tx: tx.outcomes.set_input(ready, "[2]"))
    assert world.do(lambda tx: tx.outcomes.input(ready)) == "[2]"
    assert world.do(lambda tx: tx.reasons.bodies(done, 100)).result == "2"


def test_what_waits_is_counted_exactly(world: World) -> None:
    ready = world.job()
    world.job(delay=SECOND)
    world.job(after=[ready])
    world.job(parent=ready)
    world.stage(world.wish())
    world.running()
    assert world.do(lambda tx: tx.outcomes.pending()) == (2, 1, 1)
    assert world.do(lambda tx: tx.outcomes.pending_roots()) == 3


def test_the_newest_progress_is_kept(world: World) -> None:
    job = world.running()
    for fraction, note in ((0.25, "a"), (None, "b")):
        world.do(lambda tx: tx.outcomes.keep_progress([(job.id, fraction, note)]))  # noqa: B023
    (line,) = world.do(lambda tx: tx.listing.by_ids([job.id]))
    assert (line.fraction, line.note) == (None, "b")


def test_jobs_are_listed_by_shelf_newest_first_where_that_helps(world: World) -> None:
    made = {state: world.in_state(state) for state in State}
    shelves = {
        "dead": {State.FAILED, State.TIMED_OUT},
        "running": {State.RUNNING},
        "blocked": {State.BLOCKED},
        "staged": {State.CREATED},
    }
    for shelf, states in shelves.items():
        found = world.do(lambda tx: tx.listing.find(shelf, 100))  # type: ignore[arg-type]  # noqa: B023
        assert set(found) == {made[state] for state in states}, shelf
    newest = world.do(lambda tx: tx.listing.find("newest", 100))
    assert newest == sorted(newest, reverse=True)
    assert newest[2:4] == world.do(lambda tx: tx.listing.find("newest", 2, before=newest[1]))
    assert world.do(lambda tx: tx.listing.find("newest", 9, states=[State.FAILED])) == [made[State.FAILED]]
    delayed = [world.job(delay=2 * SECOND), world.job(delay=SECOND)]
    assert world.do(lambda tx: tx.listing.find("delayed", 9)) == delayed[::-1]


def test_jobs_are_listed_by_agent_and_tenant(world: World) -> None:
    world.job()
    job = world.job(tenant="acme", priority=7)
    lanes = world.do(lambda tx: tx.listing.lanes_of("worker", "acme"))
    assert world.do(lambda tx: tx.listing.find("newest", 9, lanes=lanes)) == [job]
    assert world.do(lambda tx: tx.listing.lanes_of("nobody", None)) == []
    assert world.do(lambda tx: tx.listing.find("newest", 9, lanes=[])) == []


def test_lines_come_in_the_order_in_which_they_were_asked_for(world: World) -> None:
    jobs = world.jobs(3)
    asked = [jobs[2], 999, jobs[0], jobs[1]]
    lines = world.do(lambda tx: tx.listing.by_ids(asked))
    assert [line.id for line in lines] == [jobs[2], jobs[0], jobs[1]]
    assert (lines[0].agent, lines[0].tenant) == ("worker", "default")


def test_an_id_is_found_by_its_first_digits_and_the_exact_one_alone(world: World) -> None:
    world.jobs(25)
    assert world.do(lambda tx: tx.listing.starting_with("2", 10)) == [2]
    world.do(lambda tx: tx.jobs.rows([1]))
    assert world.do(lambda tx: tx.listing.starting_with("26", 10)) == []
    assert world.do(lambda tx: tx.listing.nearest(40)) == [25]


def test_a_fact_is_kept_until_it_is_written_anew(world: World) -> None:
    assert world.do(lambda tx: tx.listing.fact("colour")) is None
    for value in ("blue", "grün"):
        world.do(lambda tx: tx.listing.set_fact("colour", value))  # noqa: B023
    assert world.do(lambda tx: tx.listing.fact("colour")) == "grün"


def test_reasons_name_what_holds_a_job_back(world: World) -> None:
    first, second = world.running(key="k", session="s"), world.running()
    dependent = world.job(after=[first.id], finished=[second.id])
    world.complete(first)
    links = world.do(lambda tx: tx.reasons.prerequisites(dependent, 10))
    assert [(link.job, link.met) for link in links] == [(second.id, Met.OPEN), (first.id, Met.MET)]
    assert [link.job for link in world.do(lambda tx: tx.reasons.dependents(second.id, 10))] == [dependent]
    assert world.do(lambda tx: tx.reasons.count_edges(dependent)) == (2, 1, 0)
    tenant = world.do(lambda tx: tx.lanes.tenant("default"))
    assert world.do(lambda tx: tx.reasons.names(first.id, tenant, world.agent)) == ("k", "s")
    assert world.do(lambda tx: tx.reasons.names(second.id, tenant, world.agent)) == (None, None)
    assert world.do(lambda tx: tx.reasons.held_by_agent()) == {world.agent: 1}
    holders = world.do(lambda tx: tx.reasons.holders(world.agent, f"agent:{world.agent}", 9))
    assert holders == [(second.id, world.clock.now(), State.RUNNING)]


def test_reasons_count_what_stands_ahead_and_name_lanes_and_nodes(world: World) -> None:
    jobs = world.jobs(5)
    row = world.row(jobs[3])
    border = (row.lane, row.ready_at or 0, row.id)
    assert world.do(lambda tx: tx.reasons.ahead([border], 10)) == 3
    assert world.do(lambda tx: tx.reasons.ahead([border], 2)) == 2
    assert world.do(lambda tx: tx.reasons.agent_of_lane(row.lane)).name == "worker"
    found = world.do(lambda tx: (tx.reasons.node(world.node), tx.reasons.node(999)))
    assert found[0] is not None
    assert (found[0].name, found[1]) == ("n1", None)


def test_reasons_tell_whether_a_staged_job_is_accepted(world: World) -> None:
    batch, (job,) = world.stage(world.wish())
    assert not world.do(lambda tx: tx.reasons.accepted(job))
    world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert world.do(lambda tx: tx.reasons.accepted(job))
    world.accept_rest(batch)


def test_failures_of_different_classes_keep_their_tallies(world: World) -> None:
    job = world.running(retries=3)
    world.fail(job, FailureClass.TIMEOUT)
    row = world.row(job.id)
    assert (row.attempt, row.timeouts, row.state) == (1, 1, State.QUEUED)
    assert row.due_at is not None
    assert world.do(lambda tx: newest_events(tx, 1))[0].kind is Kind.JOB_RETRYING


def test_a_fact_that_somebody_else_has_written_stays(world: World) -> None:
    world.do(lambda tx: tx.listing.add_fact("colour", "red"))
    world.do(lambda tx: tx.listing.add_fact("colour", "blue"))
    assert world.do(lambda tx: tx.listing.fact("colour")) == "red"
