import pytest

from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS, Wants
from paceline.core.problem import Problem
from paceline.core.submission import Wish
from paceline.store.protocol import Tx
from paceline.units.failing import read_error
from paceline.units.submit import forget, publish, stage, submit
from store.world import World


def counts(world: World) -> list[int]:
    """How many rows the tables have that a submission writes."""
    tables = ("jobs", "inputs", "edges", "events", "keys", "sessions", "batches")
    rows = world.store._connection.rows
    return world.do(lambda tx: [rows(f"select count(*) from {table}")[0][0] for table in tables])


def refused(world: World, code: str, *wishes: Wish) -> Problem:
    """A submission that is refused whole."""
    before = counts(world)
    with pytest.raises(Problem) as caught:
        world.submit(*wishes)
    assert caught.value.code == code
    assert counts(world) == before
    return caught.value


def test_a_job_begins_queued_and_counts_its_age_from_its_submission(world: World) -> None:
    row = world.row(world.job())
    assert (row.state, row.ready_at, row.due_at, row.root) == (State.QUEUED, world.clock.now(), None, row.id)


def test_a_delay_is_a_moment_and_age_counts_from_it(world: World) -> None:
    row = world.row(world.job(delay=5 * SECOND))
    assert (row.state, row.ready_at, row.due_at) == (State.QUEUED, row.due_at, world.clock.now() + 5 * SECOND)


def test_a_delay_goes_on_while_a_prerequisite_runs(world: World) -> None:
    first = world.running()
    soon, late = world.job(after=[first.id], delay=SECOND), world.job(after=[first.id], delay=9 * SECOND)
    assert world.row(soon).ready_at is None
    world.clock.advance(4 * SECOND)
    world.complete(first)
    assert (world.row(soon).due_at, world.row(soon).ready_at) == (None, world.clock.now())
    assert world.row(late).due_at == world.clock.now() + 5 * SECOND


@pytest.mark.parametrize("state", [state for state in State if state.ended])
@pytest.mark.parametrize("wants", list(Wants))
def test_a_prerequisite_that_has_ended_is_judged_at_once(world: World, state: State, wants: Wants) -> None:
    ended = world.in_state(state)
    edges: dict[str, list[int]] = {("after" if wants is Wants.COMPLETED else "finished"): [ended]}
    met = wants is Wants.FINISHED or state is State.COMPLETED
    assert world.state(world.job(**edges)) is (State.QUEUED if met else State.FAILED)  # type: ignore[arg-type]


def test_a_broken_prerequisite_fails_the_submitted_job_and_those_submitted_with_it(world: World) -> None:
    failed = world.in_state(State.FAILED)
    jobs = world.submit(world.wish(after=[failed]), world.wish(inner=[0]), world.wish(inner=[1]), world.wish())
    assert [world.state(job) for job in jobs] == [State.FAILED] * 3 + [State.QUEUED]
    error = read_error(world.do(lambda tx: tx.outcomes.results(jobs))[jobs[2]][2])
    assert (error.chain, error.length) == ((jobs[1], jobs[0], failed), 3)
    assert "ValueError: no" in error.message


def test_one_of_two_broken_prerequisites_is_named_and_the_job_fails_once(world: World) -> None:
    one, other = world.in_state(State.FAILED), world.in_state(State.CANCELLED)
    job = world.job(after=[one, other])
    assert world.words(job) == ["blocked", "failed"]


def test_the_same_prerequisite_twice_is_one_edge(world: World) -> None:
    first = world.running()
    job = world.job(after=[first.id, first.id])
    assert len(world.do(lambda tx: tx.edges.before(job))) == 1
    world.complete(first)
    assert world.words(job) == ["blocked", "unblocked"]


def test_one_bad_wish_refuses_all_of_them(world: World) -> None:
    refused(world, "unknown_job", world.wish(), world.wish(after=[999]), world.wish(key="k", session="s"))
    refused(world, "unknown_job", world.wish(key="k"), world.wish(parent=999))


def test_a_full_queue_refuses_roots_and_never_children(world: World) -> None:
    parent = world.running()

    def full(tx: Tx, asked: int) -> None:
        if asked:
            raise Problem(code="queue_full", what=f"{asked} too many")

    with pytest.raises(Problem, match="1 too many"):
        world.do(lambda tx: submit(tx, [world.wish(), world.wish(parent=parent.id)], full))
    [child] = world.do(lambda tx: submit(tx, [world.wish(parent=parent.id)], full))
    assert (world.row(child).parent, world.row(child).root) == (parent.id, parent.id)


def test_a_known_key_needs_no_room(world: World) -> None:
    job = world.job(key="k")

    def full(tx: Tx, asked: int) -> None:
        assert asked == 0

    assert world.do(lambda tx: submit(tx, [world.wish(key="k")], full)) == [job]


def test_the_same_value_written_otherwise_is_the_same_input(world: World) -> None:
    job = world.job('{"a":1,"b":[1.0,2]}', key="k")
    assert world.job('{"b": [1.0, 2], "a": 1}', key="k") == job
    assert "key_conflict" in str(refused(world, "key_conflict", world.wish('{"a":2,"b":[1.0,2]}', key="k")))


def test_a_key_twice_in_one_submission_is_refused(world: World) -> None:
    refused(world, "key_conflict", world.wish(key="k"), world.wish(key="k"))


def test_known_and_new_jobs_of_one_submission_keep_their_places(world: World) -> None:
    known = world.job("2", key="b")
    jobs = world.submit(world.wish("1", key="a"), world.wish("2", key="b"), world.wish("3", inner=[0, 1]))
    assert jobs[1] == known
    assert {edge.dependency for edge in world.do(lambda tx: tx.edges.before(jobs[2]))} == {jobs[0], known}


def test_the_jobs_of_a_session_run_in_order_whatever_becomes_of_one_in_between(world: World) -> None:
    first, second, third = (world.job(session="s") for _ in range(3))
    assert [world.state(job) for job in (first, second, third)] == [State.QUEUED, State.BLOCKED, State.BLOCKED]
    world.cancel(second)
    assert world.state(third) is State.BLOCKED, "the first has not ended"
    fourth = world.job(session="s")
    world.complete(world.claim(first)[0])
    assert [world.state(job) for job in (third, fourth)] == [State.QUEUED, State.BLOCKED]


def test_a_session_whose_newest_job_was_cancelled_before_its_turn_still_waits(world: World) -> None:
    first, second = world.job(session="s"), world.job(session="s")
    world.cancel(second)
    third = world.job(session="s")
    assert world.state(third) is State.BLOCKED
    world.fail(world.claim(first)[0])
    assert world.state(third) is State.QUEUED


def test_a_session_and_a_prerequisite_may_name_the_same_job(world: World) -> None:
    first = world.job(session="s")
    second = world.job(session="s", after=[first])
    world.fail(world.claim(first)[0])
    assert world.row(second).reason == "dependency_failed", "what was asked for is stronger than the order"


def test_chunks_of_one_submission_may_depend_on_each_other(world: World) -> None:
    batch, first = world.stage(world.wish(), world.wish(inner=[0]))
    second = world.do(lambda tx: stage(tx, batch, [world.wish(after=[first[1]]), world.wish(inner=[0])]))
    world.accept(batch)
    assert [world.state(job) for job in (*first, *second)] == [State.QUEUED, *[State.BLOCKED] * 3]
    for job in (*first, *second):
        world.complete(world.claim(job)[0])


def test_prerequisites_that_end_while_the_rest_is_staged_count(world: World) -> None:
    good, bad = world.running(), world.running()
    batch, [needs, falls] = world.stage(world.wish(after=[good.id]), world.wish(after=[bad.id]))
    [behind] = world.do(lambda tx: stage(tx, batch, [world.wish(after=[falls])]))
    world.complete(good)
    world.fail(bad)
    assert [world.state(job) for job in (needs, falls)] == [State.CREATED, State.CREATED]
    world.accept(batch)
    assert [world.state(job) for job in (needs, falls, behind)] == [State.QUEUED, State.FAILED, State.FAILED]
    assert world.words(behind) == ["blocked", "failed"]


def test_a_job_that_is_visible_while_the_rest_is_not_may_end_before_it(world: World) -> None:
    batch, first = world.stage(*(world.wish() for _ in range(UNIT_ROWS)))
    [last] = world.do(lambda tx: stage(tx, batch, [world.wish(after=[first[0]])]))
    assert world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert world.do(lambda tx: publish(tx, batch))
    world.complete(world.claim(first[0])[0])
    assert world.state(last) is State.CREATED
    world.accept_rest(batch)
    assert world.state(last) is State.QUEUED


def test_a_staged_job_cannot_be_cancelled_claimed_or_seen_to_be_pending(world: World) -> None:
    _, [job] = world.stage(world.wish())
    assert world.cancel(job) == []
    assert world.claim(job) == []
    assert world.do(lambda tx: tx.outcomes.pending()) == (0, 0, 0)
    assert world.state(job) is State.CREATED


def test_forgetting_goes_in_units_and_takes_everything(world: World) -> None:
    before = counts(world)
    batch, first = world.stage(*(world.wish() for _ in range(UNIT_ROWS)))
    world.do(lambda tx: stage(tx, batch, [world.wish(after=[first[0]])]))
    assert world.do(lambda tx: forget(tx, batch))
    assert not world.do(lambda tx: forget(tx, batch))
    assert counts(world) == before


def test_nothing_can_be_added_to_a_submission_that_was_accepted(world: World) -> None:
    batch, _ = world.stage(world.wish())
    world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    with pytest.raises(Problem, match="submission_abandoned"):
        world.do(lambda tx: stage(tx, batch, [world.wish()]))
    world.accept_rest(batch)
