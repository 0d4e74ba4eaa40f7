"""Lists of jobs in the order people need them, everything about one of them, and what an id means."""

from collections.abc import Iterator

import pytest

from paceline.client.finding import find_target, resolve_id
from paceline.client.reading import dead, list_jobs, overview, parse_state, screenful, show, starts_of
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass
from paceline.errors import NotFound, UsageError
from paceline.store.doors import sqlite_store
from paceline.testing.clock import ManualClock
from store.world import World


@pytest.fixture
def pruned() -> Iterator[World]:
    """A world whose first 119 jobs are gone."""
    clock = ManualClock()
    store = sqlite_store(None, clock)
    world = World(store, clock)
    world.jobs(130)
    store.execute(lambda tx: tx.listing._driver.write("delete from jobs where id < 120"))
    yield world
    store.close()


def ids(lines: list[JobLine]) -> list[int]:
    return [line.id for line in lines]


def test_the_overview_shows_open_jobs_as_they_run_and_then_what_ended_last(world: World) -> None:
    ended = [world.running() for _ in range(3)]
    blocked = world.job(after=[ended[0].id])
    delayed = world.job(delay=SECOND)
    urgent, usual = world.job(queue_class=QueueClass.INTERACTIVE), world.job()
    running = world.running().id
    for claimed in (ended[2], ended[1]):
        world.complete(claimed)
    found = world.do(lambda tx: overview(tx, ended=5))
    assert ids(found.open) == [ended[0].id, running, urgent, usual, delayed, blocked]
    assert ids(found.ended) == [ended[1].id, ended[2].id]
    assert found.more_open == 0


def test_the_overview_counts_what_it_leaves_out(world: World) -> None:
    world.jobs(8)
    found = world.do(lambda tx: overview(tx, limit=3))
    assert (len(found.open), found.more_open) == (3, 5)
    assert world.do(lambda tx: overview(tx, agent="worker", limit=3)).more_open is None


def test_a_cancelled_job_whose_code_still_runs_is_among_the_open_ones(world: World) -> None:
    claimed = world.running()
    world.cancel(claimed.id)
    found = world.do(overview)
    assert (ids(found.open), found.ended) == ([claimed.id], [])


def test_what_ended_long_ago_is_found_when_there_is_nothing_else(world: World) -> None:
    done = world.in_state(State.COMPLETED)
    world.job(tenant="acme")
    assert ids(world.do(lambda tx: overview(tx, tenant="default")).ended) == [done]


@pytest.mark.parametrize("state", State)
def test_a_list_by_state_holds_the_jobs_in_that_state_alone(world: World, state: State) -> None:
    for other in State:
        world.in_state(other)
    found = world.do(lambda tx: list_jobs(tx, states=[state]))
    assert found
    assert {line.state for line in found} == {state}


def test_ready_jobs_are_listed_by_rank_over_all_lanes(world: World) -> None:
    jobs = [world.job(priority=priority, tenant=tenant) for priority in (75, 0, 50) for tenant in ("a", "b")]
    found = world.do(lambda tx: list_jobs(tx, states=[State.QUEUED], limit=5))
    assert ids(found) == [jobs[2], jobs[3], jobs[4], jobs[5], jobs[0]]


def test_the_newest_come_first_and_pages_follow_each_other(world: World) -> None:
    jobs = world.jobs(5)
    first = world.do(lambda tx: list_jobs(tx, limit=3))
    rest = world.do(lambda tx: list_jobs(tx, limit=3, before=first[-1].id))
    assert ids(first + rest) == jobs[::-1]


def test_filters_by_agent_and_tenant_hold_together(world: World) -> None:
    world.job(tenant="acme")
    assert len(world.do(lambda tx: list_jobs(tx, agent="worker", tenant="acme"))) == 1
    assert world.do(lambda tx: list_jobs(tx, agent="worker", tenant="nobody")) == []
    with pytest.raises(NotFound, match="did you mean worker"):
        world.do(lambda tx: list_jobs(tx, agent="werker"))


def test_dead_jobs_are_those_that_failed_or_timed_out(world: World) -> None:
    made = {state: world.in_state(state) for state in State}
    assert set(ids(world.do(dead))) == {made[State.FAILED], made[State.TIMED_OUT]}


def test_a_screenful_has_a_reason_for_every_line(world: World) -> None:
    for state in State:
        world.in_state(state)
    found = world.do(lambda tx: screenful(tx, [], every=True, agent=None, tenant=None, limit=100, ended=5))
    assert {line.state for line, _ in found.lines} == set(State)
    assert all(line.id == why.job for line, why in found.lines)


def test_everything_about_a_job_is_in_one_answer(world: World) -> None:
    before = world.in_state(State.COMPLETED)
    job = world.job('{"n":21}', after=[before], key="order-7", session="chat", retries=1)
    behind = world.job(after=[job])
    world.fail(world.claim(job)[0], FailureClass.TRANSIENT)
    found = world.do(lambda tx: show(tx, job, preview=4))
    assert (found.key, found.session, found.lane.origin) == ("order-7", "chat", "tests")
    assert (found.bodies.input, found.bodies.input_length) == ('{"n"', 8)
    assert ([one.job for one in found.prerequisites], [one.job for one in found.dependents]) == ([before], [behind])
    assert found.counts == (1, 0, 1)
    assert [(one.epoch, one.ending, one.detail) for one in found.starts] == [(1, "retrying", "ValueError: no")]


def test_the_starts_of_a_job_are_read_from_its_events(world: World) -> None:
    job = world.running(retries=1)
    world.fail(job, FailureClass.TRANSIENT)
    world.clock.advance(5 * SECOND)
    world.do(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now))
    world.complete(world.claim(job.id)[0])
    starts = starts_of(world.do(lambda tx: tx.events.of_job(job.id)))
    assert [(one.epoch, one.ending) for one in starts] == [(1, "retrying"), (2, "completed")]


def test_the_newest_events_of_a_long_life_are_enough(world: World) -> None:
    job = world.in_state(State.COMPLETED)
    events = world.do(lambda tx: tx.events.of_job(job, most=2))
    assert [event.kind.word for event in events] == ["job.started", "job.completed"]


@pytest.mark.parametrize("word", ["j7", "7", " J7 "])
def test_an_id_is_written_with_and_without_its_letter(world: World, word: str) -> None:
    world.jobs(8)
    assert world.do(lambda tx: resolve_id(tx, word)) == 7


def test_an_exact_id_wins_over_longer_ones_that_begin_like_it(world: World) -> None:
    world.jobs(130)
    assert world.do(lambda tx: resolve_id(tx, "j13")) == 13, "an exact id wins over j130"


def test_when_old_jobs_are_pruned_the_beginning_of_an_id_may_be_enough(pruned: World) -> None:
    assert pruned.do(lambda tx: resolve_id(tx, "13")) == 130
    with pytest.raises(UsageError) as caught:
        pruned.do(lambda tx: resolve_id(tx, "12"))
    assert caught.value.code == "ambiguous_id"
    assert caught.value.found == (
        "j120 (worker, queued), j121 (worker, queued), j122 (worker, queued), j123 (worker, queued), "
        "j124 (worker, queued) and more"
    )


@pytest.mark.parametrize("word", ["", "j", "0", "j0", "x7", "7x", "-7", "٣", "9" * 30, "1; drop table jobs", "\x1b[2J"])
def test_what_cannot_be_an_id_is_refused_without_a_look(world: World, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        world.do(lambda tx: resolve_id(tx, word))
    assert caught.value.code == "bad_job"
    assert caught.value.found.isprintable()


def test_an_agent_submitted_by_its_name_keeps_what_its_definition_says(world: World) -> None:
    text = '{"name":"patient","origin":"tests","retries":4,"priority":25,"queue_class":2,"tenant":"acme","timeout":9}'
    world.do(lambda tx: tx.lanes.register("patient", "tests", text, None))
    assert world.do(lambda tx: find_target(tx, "patient")).defaults == (25, QueueClass.BATCH, "acme", 4, 9)


def test_states_are_read_as_people_write_them() -> None:
    assert parse_state("Timed-out") is State.TIMED_OUT
    with pytest.raises(UsageError, match="did you mean failed"):
        parse_state("faild")
