"""What is gathered from the store for an explanation, and what it comes to."""

import pytest

from paceline.client.explaining import Explainer
from paceline.core.explanation import Explanation, Why
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass
from paceline.errors import NotFound
from store.world import World

CODES = {
    State.CREATED: Why.SUBMISSION_OPEN,
    State.BLOCKED: Why.DEPENDENCIES,
    State.QUEUED: Why.IN_LINE,
    State.RUNNING: Why.RUNNING,
    State.WAITING: Why.WAITING,
    State.COMPLETED: Why.COMPLETED,
    State.FAILED: Why.FAILED,
    State.CANCELLED: Why.CANCELLED,
    State.TIMED_OUT: Why.TIMED_OUT,
}


def why(world: World, job: int, *, counting: bool = True) -> Explanation:
    return world.do(lambda tx: Explainer(tx, counting=counting).explain(job))


def agent(world: World, name: str, limit: int | None, needs: str = "{}", *, served: bool = True) -> int:
    """One more agent, which the node has code for."""

    number = world.do(lambda tx: tx.lanes.register(name, "tests", f'{{"needs":{needs}}}', limit))
    if served:
        world.do(lambda tx: tx.nodes.serve(world.node, [number]))
    return number


def job_of(world: World, number: int) -> int:
    return world.submit(world.wish()._replace(terms=world.wish().terms._replace(agent=number)))[0]


@pytest.mark.parametrize("state", State)
def test_a_job_in_any_state_is_explained_by_what_the_store_holds(world: World, state: State) -> None:
    found = why(world, world.in_state(state))
    assert (found.state, found.code) == (state, CODES[state])
    assert found.since is not None


def test_an_accepted_submission_is_told_from_one_that_is_still_written(world: World) -> None:
    batch, jobs = world.stage(world.wish())
    world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert why(world, jobs[0]).code is Why.SUBMISSION_ACCEPTED


def test_the_line_of_prerequisites_is_followed_to_its_end(world: World) -> None:
    nobody = job_of(world, agent(world, "nobody", 1, served=False))
    first = world.job(after=[nobody])
    last = world.job(after=[first])
    found = why(world, last)
    assert found.waits_for == (first,)
    assert found.notes == (
        f"in the end it waits for j{nobody}: queued, no live node has agent nobody from tests (1 node without it)",
    )


def test_a_job_waits_for_the_one_before_it_in_its_session(world: World) -> None:
    before, after = world.job(session="chat"), world.job(session="chat")
    found = why(world, after)
    assert (found.code, found.waits_for) == (Why.SESSION, (before,))


def test_an_agent_at_its_limit_is_held_by_the_jobs_that_run_or_have_not_stopped(world: World) -> None:
    writer = agent(world, "writer", 1)
    holder, waiting = job_of(world, writer), job_of(world, writer)
    claimed = world.claim(holder)[0]
    assert [one.job for one in why(world, waiting).held_by] == [holder]
    world.cancel(holder)
    assert why(world, holder).code is Why.STOPPING
    assert [one.state for one in why(world, waiting).held_by] == [State.CANCELLED]
    world.stop(claimed)
    assert why(world, waiting).code is Why.IN_LINE


def test_a_lock_is_held_by_whoever_has_its_lease(world: World) -> None:
    locked = agent(world, "locked", None, '{"lock:deploy":1}')
    holder, waiting = job_of(world, locked), job_of(world, locked)
    claimed = world.claim(holder)[0]
    world.do(lambda tx: tx.pools.take([(holder, "lock:deploy", claimed.epoch, 1)]))
    found = why(world, waiting)
    assert (found.code, [one.job for one in found.held_by]) == (Why.LOCK_HELD, [holder])


def test_only_nodes_whose_lease_runs_can_start_a_job(world: World) -> None:
    job = world.job()
    world.clock.advance(61 * SECOND)
    assert why(world, job).text == "no node is running; it needs one that has agent worker from tests"


def test_a_running_job_says_that_its_node_has_gone_silent(world: World) -> None:
    job = world.running().id
    world.clock.advance(61 * SECOND)
    assert why(world, job).code is Why.NODE_SILENT


def test_an_agent_of_the_same_name_from_elsewhere_is_pointed_out(world: World) -> None:
    other = world.do(lambda tx: tx.lanes.register("worker", "elsewhere", "{}", None))
    assert why(world, job_of(world, other)).notes == (
        "node n1 has another agent worker, from tests: it never takes this one's jobs",
    )


def test_a_back_off_names_the_error_that_caused_it(world: World) -> None:
    claimed = world.running(retries=2)
    world.fail(claimed, FailureClass.TRANSIENT)
    found = why(world, claimed.id)
    assert (found.code, found.until) == (Why.BACKING_OFF, world.row(claimed.id).due_at)
    assert found.text.startswith("ValueError: no ended its last start")


def test_full_nodes_are_the_reason_when_nothing_else_is(world: World) -> None:
    for _ in range(10):
        world.running()
    assert why(world, world.job()).text == "every slot of the nodes that have agent worker is used: n1 10/10"


def test_place_in_the_lane_and_jobs_of_other_lanes_that_go_first_are_counted(world: World) -> None:
    world.jobs(3)
    mine = world.job()
    world.job(priority=0)
    world.job(queue_class=QueueClass.BATCH)
    job_of(world, agent(world, "unserved", None, served=False))
    found = why(world, mine)
    assert (found.position, found.ahead) == (4, 4)
    assert why(world, mine, counting=False).position is None


def test_age_moves_a_job_past_younger_ones_of_a_better_class(world: World) -> None:
    old = world.job(queue_class=QueueClass.BATCH)
    world.clock.advance(50 * SECOND)
    world.job()
    assert why(world, old).ahead == 0


def test_a_dependent_tells_the_chain_and_a_failure_why_it_is_final(world: World) -> None:
    claimed = world.running()
    dependent = world.job(after=[world.job(after=[claimed.id])])
    world.fail(claimed)
    assert why(world, claimed.id).notes == ("not tried again: failures of class permanent never are",)
    assert why(world, dependent).todo == f"paceline retry j{claimed.id}: this one follows by itself"


def test_a_job_that_does_not_exist_is_refused_with_its_neighbours(world: World) -> None:
    job = world.job()
    with pytest.raises(NotFound) as caught:
        why(world, job + 5)
    assert (caught.value.code, caught.value.allowed) == ("unknown_job", f"the nearest: j{job}")


def test_a_job_whose_own_node_is_full_waits_for_it_where_others_do_not_share(world: World) -> None:
    def node(slots: int) -> int:
        number = world.do(lambda tx: tx.nodes.add("n2", "p2", "1", slots, tx.now, tx.now + 60 * SECOND, False))
        world.do(lambda tx: tx.nodes.serve(number, [world.agent]))
        return number

    world.do(lambda tx: tx.nodes.end(world.node, tx.now, "stopped"))
    home, _ = node(1), node(1)
    world.claim(world.job(home=home), node=home)
    job = world.job(home=home)
    assert (why(world, job).code, why(world, world.job()).code) == (Why.PINNED, Why.IN_LINE)
    world.do(lambda tx: tx.nodes.end(home, tx.now, "stopped"))
    assert why(world, job).code is Why.IN_LINE
