"""The door: keys, sessions, submissions in chunks, and what depends on what."""

import pytest

from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS, Edge, Met, Wants
from paceline.core.problem import Problem
from paceline.core.submission import Terms
from paceline.store.protocol import Tx
from paceline.units.settle import settle_postponed
from paceline.units.submit import forget, publish, stage
from store.world import World, newest_job

C, F = Wants.COMPLETED, Wants.FINISHED


def test_a_key_answers_the_same_job_whatever_became_of_it(world: World) -> None:
    job = world.job('{"a":1,"b":2}', key="k")
    assert world.job('{"b": 2, "a": 1}', key="k") == job
    world.complete(world.claim(job)[0])
    assert world.job('{"a":1,"b":2}', key="k") == job


def test_a_key_with_another_input_is_a_conflict_and_nothing_is_written(world: World) -> None:
    job = world.job("1", key="k")
    with pytest.raises(Problem) as problem:
        world.submit(world.wish("0"), world.wish("2", key="k"))
    assert (problem.value.code, problem.value.where) == ("key_conflict", f"job j{job}")
    assert world.do(newest_job) == job


def test_keys_of_two_tenants_and_of_two_agents_are_not_the_same(world: World) -> None:
    other = world.do(lambda tx: tx.lanes.register("other", "tests", "d", None))
    job = world.job(key="k")
    foreign = world.wish(key="k")
    foreign = foreign._replace(terms=foreign.terms._replace(agent=other))
    assert len({job, world.job(key="k", tenant="acme"), *world.submit(foreign)}) == 3


def test_an_unknown_key_answers_nothing_and_one_is_remembered_once(world: World) -> None:
    job = world.job()
    tenant = world.do(lambda tx: tx.lanes.tenant("default"))
    assert world.do(lambda tx: tx.submissions.keyed(tenant, world.agent, "k")) is None
    world.do(lambda tx: tx.submissions.remember_key(tenant, world.agent, "k", job))
    assert world.do(lambda tx: tx.submissions.keyed(tenant, world.agent, "k")) == (job, "1")
    with pytest.raises(Problem):
        world.do(lambda tx: tx.submissions.remember_key(tenant, world.agent, "k", job))


def test_a_job_of_a_graph_waits_for_the_job_that_a_key_answered(world: World) -> None:
    known = world.job("1", key="k")
    plain, again, last = world.submit(world.wish(), world.wish("1", key="k"), world.wish(inner=[0, 1]))
    assert again == known
    assert [edge.dependency for edge in world.do(lambda tx: tx.edges.before(last))] == [known, plain]


def test_jobs_of_one_session_wait_for_the_end_of_the_one_before(world: World) -> None:
    first, second, third = (world.job(session="s") for _ in range(3))
    assert [world.state(job) for job in (first, second, third)] == [State.QUEUED, State.BLOCKED, State.BLOCKED]
    world.fail(world.claim(first)[0])
    assert world.state(second) is State.QUEUED
    world.cancel(second)
    assert world.state(third) is State.QUEUED
    world.complete(world.claim(third)[0])
    assert world.state(world.job(session="s")) is State.QUEUED


def test_a_job_that_is_cancelled_before_its_turn_lets_nobody_pass(world: World) -> None:
    first = world.running(session="s")
    second, third = world.job(session="s"), world.job(session="s")
    assert world.do(lambda tx: tx.sessions.open_before(second)) == [first.id]
    world.cancel(second)
    assert world.state(third) is State.BLOCKED
    assert world.state(world.job(session="s")) is State.BLOCKED
    world.cancel(third)
    fourth = world.job(session="s")
    assert world.state(fourth) is State.BLOCKED
    world.do(lambda tx: tx.sessions.hand_on(second))
    world.do(lambda tx: tx.sessions.hand_on(third))
    world.complete(first)
    queued = world.do(lambda tx: tx.listing.find("newest", 9, states=[State.QUEUED]))
    assert len(queued) == 1


def test_several_jobs_of_one_session_in_one_submission_run_in_their_order(world: World) -> None:
    jobs = world.submit(*(world.wish(session="s") for _ in range(3)))
    for job in jobs:
        assert [one for one in jobs if world.state(one) is State.QUEUED] == [job]
        world.complete(world.claim(job)[0])


def test_sessions_of_two_tenants_have_nothing_to_do_with_each_other(world: World) -> None:
    world.job(session="s")
    assert world.state(world.job(session="s", tenant="acme")) is State.QUEUED
    joined = world.do(lambda tx: tx.submissions.join_session(tx.lanes.tenant("acme"), "new", 1))
    assert joined[1] is None
    assert world.do(lambda tx: tx.submissions.join_session(tx.lanes.tenant("acme"), "new", 2)) == (joined[0], 1)


def test_a_dependent_is_ready_when_its_last_prerequisite_has_completed(world: World) -> None:
    one, two = world.running(), world.running()
    dependent = world.job(after=[one.id, two.id])
    world.complete(one)
    assert world.state(dependent) is State.BLOCKED
    world.clock.advance(SECOND)
    world.complete(two)
    row = world.row(dependent)
    assert (row.state, row.ready_at) == (State.QUEUED, world.clock.now())
    assert world.words(dependent) == ["blocked", "unblocked"]


def test_prerequisites_that_have_ended_already_hold_nobody_back(world: World) -> None:
    completed, failed = world.in_state(State.COMPLETED), world.in_state(State.FAILED)
    assert world.state(world.job(after=[completed], finished=[failed])) is State.QUEUED


def test_a_job_behind_a_failed_prerequisite_fails_at_once_and_names_it(world: World) -> None:
    failed = world.in_state(State.FAILED)
    job = world.job(after=[failed])
    row = world.row(job)
    assert (row.state, row.reason) == (State.FAILED, "dependency_failed")
    assert f"j{failed}" in str(world.do(lambda tx: tx.outcomes.results([job]))[job][2])
    assert world.words(job) == ["blocked", "failed"]


def test_a_failure_takes_the_whole_chain_behind_it(world: World) -> None:
    first = world.running()
    second = world.job(after=[first.id])
    third, spared = world.job(after=[second]), world.job(finished=[second])
    world.fail(first)
    assert [world.state(job) for job in (second, third, spared)] == [State.FAILED, State.FAILED, State.QUEUED]


def test_an_unknown_prerequisite_or_parent_is_refused_and_nothing_is_written(world: World) -> None:
    for wish in (world.wish(after=[999]), world.wish(parent=999)):
        with pytest.raises(Problem) as problem:
            world.submit(world.wish(), wish)
        assert problem.value.code == "unknown_job"
    assert world.do(newest_job) == 0


def test_a_parent_that_has_ended_takes_no_more_children(world: World) -> None:
    with pytest.raises(Problem) as problem:
        world.job(parent=world.in_state(State.COMPLETED))
    assert problem.value.code == "parent_ended"


def test_staged_jobs_are_seen_by_nobody_until_the_whole_is_accepted(world: World) -> None:
    dependency = world.running()
    batch, staged = world.stage(world.wish(), world.wish(after=[dependency.id]), world.wish(inner=[0]))
    assert world.do(lambda tx: tx.submissions.staged(batch, 10)) == staged
    assert world.do(lambda tx: tx.submissions.staged(batch, 2)) == staged[:2]
    assert world.claim(*staged) == []
    assert world.do(lambda tx: tx.lanes.with_ready_jobs()) == []
    world.accept(batch)
    assert [world.state(job) for job in staged] == [State.QUEUED, State.BLOCKED, State.BLOCKED]
    assert world.words(staged[0]) == ["queued"]
    assert world.do(lambda tx: tx.submissions.unfinished_batches(tx.now)) == []


def test_what_became_of_a_prerequisite_while_a_submission_was_staged_counts(world: World) -> None:
    completes, fails = world.running(), world.running()
    batch, staged = world.stage(world.wish(after=[completes.id]), world.wish(after=[fails.id]), world.wish(inner=[1]))
    world.complete(completes)
    world.fail(fails)
    assert {world.state(job) for job in staged} == {State.CREATED}
    world.accept(batch)
    assert [world.state(job) for job in staged] == [State.QUEUED, State.FAILED, State.FAILED]


def test_publishing_twice_makes_nobody_ready_twice(world: World) -> None:
    batch, staged = world.stage(world.wish())
    world.accept(batch)
    assert world.do(lambda tx: tx.submissions.publish(staged, tx.now)) == []
    assert world.words(staged[0]) == ["queued"]


def test_a_staged_delay_counts_from_its_submission(world: World) -> None:
    batch, (job,) = world.stage(world.wish(delay=5 * SECOND))
    world.clock.advance(SECOND)
    world.accept(batch)
    row = world.row(job)
    assert row.due_at == row.ready_at == world.clock.now() + 4 * SECOND


def test_a_submission_is_accepted_once_and_closed_to_more(world: World) -> None:
    batch, _ = world.stage(world.wish())
    assert world.do(lambda tx: tx.submissions.is_open(batch))
    assert world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert not world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert not world.do(lambda tx: tx.submissions.is_open(batch))
    with pytest.raises(Problem) as problem:
        world.do(lambda tx: stage(tx, batch, [world.wish()]))
    assert problem.value.code == "submission_abandoned"


def test_a_closed_submission_is_not_open(world: World) -> None:
    batch = world.do(lambda tx: tx.submissions.open_batch(tx.now))
    for _ in range(2):
        world.do(lambda tx: tx.submissions.close_batch(batch))
    assert not world.do(lambda tx: tx.submissions.is_open(batch))
    assert not world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))


def test_an_abandoned_submission_leaves_nothing_and_can_never_be_accepted(world: World) -> None:
    dependency = world.job()
    batch, staged = world.stage(world.wish(after=[dependency]), world.wish(inner=[0]))
    moment = world.clock.now()
    assert world.do(lambda tx: tx.submissions.unfinished_batches(moment - 1)) == []
    assert world.do(lambda tx: tx.submissions.unfinished_batches(moment)) == [(batch, None)]
    assert world.do(lambda tx: tx.submissions.abandon_batch(batch))
    world.do(lambda tx: tx.submissions.forget(staged[:1]))
    assert not world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert not world.do(lambda tx: forget(tx, batch))
    assert world.do(lambda tx: tx.jobs.rows(staged)) == []
    assert world.do(lambda tx: tx.edges.before(staged[0])) == []


def test_the_number_of_an_abandoned_submission_is_not_given_to_another(world: World) -> None:
    batch, _ = world.stage(world.wish())
    assert not world.do(lambda tx: forget(tx, batch))
    world.clock.advance(1)
    other, _ = world.stage(world.wish())
    with pytest.raises(Problem):
        world.do(lambda tx: stage(tx, batch, [world.wish()]))
    assert other != batch


def test_a_submission_of_more_than_one_unit_becomes_visible_step_by_step(world: World) -> None:
    batch, first = world.stage(*(world.wish() for _ in range(UNIT_ROWS)))
    rest = world.do(lambda tx: stage(tx, batch, [world.wish()]))
    assert world.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
    assert world.do(lambda tx: publish(tx, batch))
    assert (world.state(first[-1]), world.state(rest[0])) == (State.QUEUED, State.CREATED)
    assert world.do(lambda tx: tx.submissions.unfinished_batches(0)) == [(batch, world.clock.now())]
    assert not world.do(lambda tx: publish(tx, batch))
    assert world.state(rest[0]) is State.QUEUED


def test_children_that_become_visible_after_their_parent_was_cancelled_are_cancelled_too(world: World) -> None:
    parent = world.job()
    batch, (child,) = world.stage(world.wish(parent=parent))
    world.cancel(parent)
    assert world.state(child) is State.CREATED
    world.accept(batch)
    assert (world.state(child), world.row(child).reason) == (State.CANCELLED, "parent_cancelled")
    assert world.do(lambda tx: tx.watch.orphans([parent, child])) == [child]


def test_edges_stay_when_they_are_settled_and_are_settled_once(world: World) -> None:
    first, second = world.running(), world.running()
    dependent = world.job(after=[first.id], finished=[second.id])
    assert world.do(lambda tx: tx.edges.open_from([first.id, second.id, 999], 10)) == [
        Edge(first.id, dependent, C, Met.OPEN),
        Edge(second.id, dependent, F, Met.OPEN),
    ]
    assert len(world.do(lambda tx: tx.edges.open_from([first.id, second.id], 1))) == 1
    world.complete(first)
    late = Edge(first.id, dependent, C, Met.BROKEN)
    world.do(lambda tx: tx.edges.settle([late]))
    assert world.do(lambda tx: tx.edges.before(dependent)) == [
        Edge(first.id, dependent, C, Met.MET),
        Edge(second.id, dependent, F, Met.OPEN),
    ]
    assert Edge(first.id, dependent, C, Met.MET) in world.do(lambda tx: tx.edges.before(dependent))


def test_an_edge_that_exists_stays_as_it_is(world: World) -> None:
    first = world.running()
    dependent = world.job(after=[first.id])
    world.do(lambda tx: tx.edges.insert([Edge(first.id, dependent, F, Met.MET)]))
    assert world.do(lambda tx: tx.edges.before(dependent)) == [Edge(first.id, dependent, C, Met.OPEN)]


def test_only_blocked_jobs_without_an_open_edge_are_freed(world: World) -> None:
    waits, runs = world.job(after=[world.job()]), world.running()
    assert world.do(lambda tx: tx.edges.freed([waits, runs.id, 999])) == []


def test_the_end_of_a_job_with_many_dependents_is_told_in_several_units(world: World) -> None:
    first = world.running()
    dependents = [*world.submit(*(world.wish(after=[first.id]) for _ in range(UNIT_ROWS)))]
    dependents += world.submit(*(world.wish(after=[first.id]) for _ in range(UNIT_ROWS)))
    world.complete(first)
    assert world.do(lambda tx: tx.edges.postponed(10)) == [first.id]
    assert sum(world.state(job) is State.QUEUED for job in dependents) == UNIT_ROWS
    while world.do(settle_postponed)[1]:
        pass
    assert {world.state(job) for job in dependents} == {State.QUEUED}


def test_what_is_postponed_is_noted_once_and_answered_by_id(world: World) -> None:
    jobs = [world.in_state(State.COMPLETED) for _ in range(3)]
    before = world.do(lambda tx: tx.edges.postponements)
    for _ in range(2):
        world.do(lambda tx: tx.edges.postpone([jobs[2], jobs[0], jobs[1]]))
    assert world.do(lambda tx: tx.edges.postponed(2)) == jobs[:2]
    world.do(lambda tx: tx.edges.settled(jobs))
    assert world.do(lambda tx: tx.edges.postponed(10)) == []
    assert world.do(lambda tx: tx.edges.postponements) == before + 2


def test_a_lost_step_is_found_by_looking_at_blocked_jobs(world: World) -> None:
    first = world.running()
    dependent = world.job(after=[first.id])
    assert world.do(lambda tx: tx.watch.blocked(0, 10)) == [dependent]
    assert world.do(lambda tx: tx.watch.blocked(dependent, 10)) == []

    def end_without_telling(tx: Tx) -> list[int]:
        tx.jobs.complete([(first.id, first.epoch, "0")], tx.now)
        found = tx.watch.untold([dependent])
        tx.edges.postpone([first.id])
        return found + tx.watch.untold([dependent])

    assert world.do(end_without_telling) == [first.id]
    assert world.do(settle_postponed)[1]
    assert world.state(dependent) is State.QUEUED


def test_broken_edges_are_answered_with_the_first_of_them_and_open_again_for_another_try(world: World) -> None:
    first, second = world.in_state(State.FAILED), world.in_state(State.CANCELLED)
    dependent = world.job(after=[first, second])
    assert world.do(lambda tx: tx.edges.broken([dependent, 999])) == [(dependent, first)]

    def reopen_and_look(tx: Tx) -> list[Met]:
        tx.edges.reopen(tx.edges.broken_behind([first], 10))
        seen = [edge.met for edge in tx.edges.before(dependent)]
        tx.edges.settle([Edge(first, dependent, C, Met.BROKEN)])
        return seen

    assert world.do(reopen_and_look) == [Met.OPEN, Met.BROKEN]


def test_another_try_of_a_failed_job_brings_back_those_that_failed_because_of_it(world: World) -> None:
    first = world.running()
    second = world.job(after=[first.id])
    third = world.job(after=[second])
    world.fail(first, FailureClass.PERMANENT)
    assert sorted(world.replay(first.id)) == [first.id, second, third]
    assert [world.state(job) for job in (first.id, second, third)] == [State.QUEUED, State.BLOCKED, State.BLOCKED]
    world.complete(world.claim(first.id)[0])
    assert world.state(second) is State.QUEUED


def test_terms_of_jobs_in_one_submission_may_differ(world: World) -> None:
    wish = world.wish()
    jobs = world.submit(*(wish._replace(terms=Terms(world.agent, priority=number)) for number in (0, 50, 100)))
    lanes = world.do(lambda tx: tx.lanes.facts([row.lane for row in tx.jobs.rows(jobs)]))
    assert sorted(facts.priority for facts in lanes.values()) == [0, 50, 100]
