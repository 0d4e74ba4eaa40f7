import json

import pytest

from node.stage import TERM, Bench
from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS
from paceline.core.scheduling import QueueClass
from paceline.events import Kind
from paceline.node import pump as pump_module
from paceline.node.reports import LogLine, Progress, Reports
from paceline.units.reap import end_node, give_back_jobs
from store.world import World


def test_ready_jobs_start_until_the_slots_are_full(bench: Bench, world: World) -> None:
    jobs = world.jobs(12)
    assert bench.started() == jobs[:10]
    assert bench.started() == []
    assert bench.running() == jobs[:10]


def test_what_ends_and_what_starts_in_its_place_share_one_unit(bench: Bench, world: World) -> None:
    jobs = world.jobs(11)
    bench.pumped()
    bench.returns(jobs[3], "42")
    round = bench.pumped()
    assert round.ended == [(jobs[3], State.COMPLETED)]
    assert [start.job.id for start in round.starts] == [jobs[10]]
    assert world.do(lambda tx: tx.outcomes.results([jobs[3]])) == {jobs[3]: (State.COMPLETED, None, "42")}


def test_a_node_that_stops_accepting_finishes_and_begins_nothing(bench: Bench, world: World) -> None:
    first, second = world.job(), world.job(priority=100)
    bench.pump.slots = 1
    bench.pumped()
    bench.pump.accepting = False
    bench.returns(first)
    assert bench.pumped().ended == [(first, State.COMPLETED)]
    assert world.state(second) is State.QUEUED


def test_only_agents_that_the_node_has_code_for_are_started(bench: Bench, world: World) -> None:
    other = world.do(lambda tx: tx.lanes.register("other", "elsewhere", "d", None))
    [stranger] = world.submit(world.wish()._replace(terms=world.wish().terms._replace(agent=other)))
    own = world.job()
    assert bench.started() == [own]
    bench.serve(other)
    assert bench.started() == [stranger]


def test_a_job_that_somebody_took_meanwhile_is_not_started(bench: Bench, world: World) -> None:
    bench.pumped()
    job = world.job()
    rival = world.do(lambda tx: tx.nodes.add("n9", "p9", "1", 1, tx.now, tx.now + TERM))
    world.claim(job, node=rival)
    assert bench.started() == []
    assert world.row(job).node == rival


def test_a_node_whose_picture_others_have_emptied_starts_what_is_left_at_once(bench: Bench, world: World) -> None:
    jobs = [job for _ in range(3) for job in world.jobs(100)]
    assert bench.started() == jobs[:10]
    rival = world.do(lambda tx: tx.nodes.add("n9", "p9", "1", 500, tx.now, tx.now + TERM))
    world.claim(*jobs[10:290], node=rival)
    for job in jobs[:10]:
        bench.returns(job)
    assert bench.started() == jobs[290:]


def test_work_that_comes_through_others_is_learned_from_the_log(bench: Bench, world: World) -> None:
    bench.pumped()
    first = world.running()
    behind = world.job(after=[first.id])
    assert bench.started() == []
    world.complete(first)
    assert bench.started() == [behind]


def test_the_order_is_class_then_priority_then_arrival(bench: Bench, world: World) -> None:
    batch = world.job(queue_class=QueueClass.BATCH, priority=0)
    late, early = world.job(priority=60), world.job(priority=10)
    first, second = world.job(), world.job()
    now = world.job(queue_class=QueueClass.INTERACTIVE, priority=100)
    assert bench.started() == [now, early, first, second, late, batch]


def test_a_limit_of_its_own_is_never_exceeded_by_jobs_of_any_node(world: World) -> None:
    world.do(lambda tx: tx.lanes.register("worker", "tests", "d1", 2))
    benches = [Bench(world, name=name) for name in ("n1", "n2")]
    for bench in benches:
        bench.serve(world.agent, limited=True)
    jobs = world.jobs(5)
    assert (benches[0].started(), benches[1].started()) == (jobs[:1], jobs[1:2])
    benches[0].returns(jobs[0])
    assert (benches[1].started(), benches[0].started()) == ([], [jobs[2]])


def test_a_pool_is_leased_with_the_claim_and_free_with_the_end(bench: Bench, world: World) -> None:
    world.do(lambda tx: tx.pools.seed({"gpu": 3}))
    bench.serve(world.agent, needs={"gpu": 2, "lock:door": 1})
    jobs = world.jobs(2)
    assert bench.started() == jobs[:1]
    assert world.do(lambda tx: tx.pools.held()) == {"gpu": 2, "lock:door": 1}
    assert set(bench.dispatcher.refused.values()) <= {"gpu", "lock:door"}
    bench.returns(jobs[0])
    assert bench.started() == jobs[1:]


def test_a_slot_is_free_only_when_the_code_has_stopped(bench: Bench, world: World) -> None:
    bench.pump.slots = 1
    job, next_one = world.job(), world.job()
    bench.pumped()
    world.cancel(job)
    assert bench.started() == []
    assert world.row(job).node == bench.heartbeat.node
    bench.stops(job)
    round = bench.pumped()
    assert [start.job.id for start in round.starts] == [next_one]
    assert (round.ended, round.stale) == ([], [])
    assert world.row(job).node is None
    assert world.words(job) == ["queued", "started", "cancelled", "released"]


@pytest.mark.parametrize("ending", [Ending.RETURNED, Ending.RAISED])
def test_a_result_that_comes_after_the_cancel_is_noted_and_not_applied(
    ending: Ending, bench: Bench, world: World
) -> None:
    job = world.job()
    bench.pumped()
    world.cancel(job)
    bench.pump.ended(Ended(bench.start_of(job).job, ending, '{"type":"E","message":"m"}'))
    assert bench.pumped().stale == []
    assert world.state(job) is State.CANCELLED
    assert world.words(job)[-1] == "late"


def test_the_word_of_an_epoch_that_lost_its_job_counts_nothing_and_frees_its_slot(bench: Bench, world: World) -> None:
    bench.pump.slots = 1
    job = world.job()
    bench.pumped()
    old = bench.start_of(job).job
    world.do(lambda tx: end_node(tx, bench.heartbeat.node, "lease_expired"))
    rival = world.renew_node()
    dead = bench.heartbeat.node
    world.do(lambda tx: give_back_jobs(tx, dead, "node_died"))
    [again] = world.claim(job, node=rival)
    assert again.epoch == old.epoch + 1
    bench.pump.ended(Ended(old, Ending.RETURNED, "1"))
    assert bench.pumped().stale == [job]
    assert bench.completer.stale == 1
    assert (world.state(job), world.row(job).node, bench.running()) == (State.RUNNING, rival, [])


def test_a_node_whose_life_was_ended_claims_nothing_until_it_lives_again(bench: Bench, world: World) -> None:
    job = world.job()
    world.do(lambda tx: end_node(tx, bench.heartbeat.node, "lease_expired"))
    assert bench.started() == []
    bench.turn(bench.heartbeat)
    assert bench.started() == [job]


def test_a_unit_that_failed_tells_again_what_had_ended(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.returns(job)
    bench.lose(bench.pump)
    assert bench.pump.busy()
    assert bench.pumped().ended == [(job, State.COMPLETED)]
    assert not bench.pump.busy()


def test_an_end_that_was_committed_unheard_is_told_again_and_changes_nothing(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.returns(job)
    bench.lose_the_answer(bench.pump)
    words = world.words(job)
    assert bench.pumped().stale == [job]
    assert (world.words(job), bench.running()) == (words, [])


def test_after_a_failed_unit_everything_is_looked_at_anew(bench: Bench, world: World) -> None:
    bench.pumped()
    job = world.job()
    bench.lose(bench.pump)
    assert bench.started() == [job]


def test_a_claim_that_was_committed_unheard_goes_back_and_is_made_again(bench: Bench, world: World) -> None:
    world.do(lambda tx: tx.pools.seed({"gpu": 3}))
    bench.serve(world.agent, needs={"gpu": 1})
    kept = world.job()
    bench.pumped()
    lost = world.job()
    assert [start.job.id for start in bench.lose_the_answer(bench.pump).starts] == [lost]
    assert bench.started() == [lost]
    assert bench.running() == [kept, lost]
    assert (world.row(kept).epoch, world.row(lost).epoch) == (1, 2)
    assert world.words(lost) == ["queued", "started", "given_back", "started"]
    assert world.do(lambda tx: tx.pools.held()) == {"gpu": 2}


def test_a_retry_waits_its_pause_and_keeps_its_rank(bench: Bench, world: World) -> None:
    bench.pump.slots = 1
    first = world.job(retries=1)
    bench.pumped()
    bench.clock.advance(SECOND)
    younger = world.job()
    bench.raises(first)
    assert bench.started() == [younger]
    row = world.row(first)
    assert (row.state, row.attempt, row.reason) == (State.QUEUED, 1, "transient")
    assert row.due_at == bench.clock.now() + SECOND
    bench.clock.advance(SECOND)
    youngest = world.job()
    bench.returns(younger)
    assert bench.started() == [first], "it came first, and goes first"
    bench.returns(first)
    assert bench.started() == [youngest]


def test_a_delayed_job_wakes_the_pump_in_time(bench: Bench, world: World) -> None:
    job = world.job(delay=SECOND // 4)
    assert bench.started() == []
    now = bench.clock.now()
    assert bench.pump.next_at(now) == now + SECOND // 4
    bench.clock.advance(SECOND // 4)
    round = bench.pumped()
    assert ([start.job.id for start in round.starts], round.due_in) == ([job], None)
    assert world.words(job) == ["queued", "due", "started"]


def test_without_delays_the_pump_looks_every_second(bench: Bench, world: World) -> None:
    world.job(delay=60 * SECOND)
    bench.pumped()
    now = bench.clock.now()
    assert bench.pump.next_at(now) == now + SECOND
    bench.lose(bench.pump)
    assert bench.pump.next_at(now) == now + SECOND


def test_many_delays_that_end_together_end_in_several_units(bench: Bench, world: World) -> None:
    world.submit(*(world.wish(delay=SECOND) for _ in range(UNIT_ROWS)))
    world.submit(*(world.wish(delay=SECOND) for _ in range(5)))
    bench.clock.advance(SECOND)
    assert bench.pumped().due_in == 0
    assert bench.pump.next_at(bench.clock.now()) <= bench.clock.now() + 1
    assert bench.pumped().due_in is None


def test_a_permanent_failure_ends_the_job_and_those_behind_it(bench: Bench, world: World) -> None:
    job = world.job(retries=5)
    behind = world.job(after=[job])
    bench.pumped()
    bench.raises(job, FailureClass.PERMANENT)
    assert bench.pumped().ended == [(job, State.FAILED), (behind, State.FAILED)]
    assert (world.row(job).reason, world.row(behind).reason) == ("permanent", "dependency_failed")


def test_a_rate_limit_waits_as_long_as_it_was_told_and_costs_nothing(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.raises(job, FailureClass.RATE_LIMIT, retry_after=20.0)
    bench.pumped()
    row = world.row(job)
    assert row.due_at is not None
    assert row.due_at >= bench.clock.now() + 20 * SECOND
    assert (row.state, row.attempt, row.snoozes) == (State.QUEUED, 0, 1)


def test_the_same_task_that_fails_three_times_in_a_minute_is_given_up(bench: Bench, world: World) -> None:
    job = world.job(retries=100)
    for _ in range(3):
        assert bench.started() == [job]
        bench.raises(job)
        bench.pumped()
        bench.clock.advance(30 * SECOND // 4)
    assert (world.state(job), world.row(job).reason) == (State.FAILED, "repeating")


def test_a_failure_is_one_failure_however_often_its_unit_had_to_be_carried_out(bench: Bench, world: World) -> None:
    job = world.job(retries=5)
    bench.pumped()
    bench.raises(job)
    for _ in range(5):
        bench.lose(bench.pump)
    bench.pumped()
    assert (world.state(job), world.row(job).attempt) == (State.QUEUED, 1)


def test_a_success_between_failures_clears_the_memory(bench: Bench, world: World) -> None:
    jobs = [world.job(retries=100) for _ in range(4)]
    bench.pumped()
    for job in jobs[:2]:
        bench.raises(job)
    bench.pumped()
    bench.pump.ended(Ended(bench.start_of(jobs[2]).job, Ending.RETURNED, "1", task=7))
    bench.pumped()
    bench.raises(jobs[3])
    bench.pumped()
    assert world.row(jobs[3]).reason == "transient"


def test_a_job_given_back_goes_to_its_old_place_at_no_cost(bench: Bench, world: World) -> None:
    bench.pump.slots = 1
    job, _ = world.job(retries=0), world.job()
    bench.pumped()
    bench.stops(job, Ending.GIVEN_BACK, "node_stopped")
    round = bench.pumped()
    assert (round.ended, [start.job.id for start in round.starts]) == ([], [job])
    assert (world.row(job).attempt, world.row(job).epoch) == (0, 2)
    assert json.loads(bench.announced(Kind.JOB_GIVEN_BACK)[0])["reason"] == "node_stopped"


def test_more_dependents_than_a_unit_holds_are_left_to_the_janitor(bench: Bench, world: World) -> None:
    job = world.job()
    for _ in range(2):
        world.submit(*(world.wish(after=[job]) for _ in range(400)))
    bench.pumped()
    bench.returns(job)
    assert bench.pumped().postponed
    assert not bench.pumped().postponed


def test_more_ends_than_a_unit_holds_are_written_in_several(
    bench: Bench, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_module, "UNIT_ROWS", 3)
    jobs = world.jobs(4)
    assert bench.pumped().more
    bench.pumped()
    for job in jobs:
        bench.returns(job)
    assert len(bench.pumped().ended) == 3
    assert bench.pump.busy()
    assert len(bench.pumped().ended) == 1


def test_what_agents_say_is_kept_in_order_and_only_the_newest_progress(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    epoch = world.row(job).epoch
    bench.pump.reports.lines += [LogLine(job, epoch, "info", text) for text in ("one", "two", "three")]
    bench.pump.reports.progress[job] = Progress(epoch, 0.25, "a")
    bench.pump.reports.progress[job] = Progress(epoch, 0.5, "b")
    bench.pumped()
    assert [json.loads(data)["text"] for data in bench.announced(Kind.JOB_LOG)] == ["one", "two", "three"]
    assert [json.loads(data) for data in bench.announced(Kind.JOB_PROGRESS)] == [{"fraction": 0.5, "note": "b"}]


def test_what_agents_say_is_written_soon_and_not_word_by_word(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.pump.reports.lines.append(LogLine(job, 1, "info", "a word"))
    now = bench.clock.now()
    assert now < bench.pump.next_at(now) <= now + SECOND // 10
    assert not bench.pump.busy()


def test_what_an_old_epoch_says_is_not_kept(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.pump.reports.lines.append(LogLine(job, 99, "info", "late"))
    bench.pump.reports.progress[job] = Progress(99, 0.5, "late")
    bench.pumped()
    assert (bench.announced(Kind.JOB_LOG), bench.announced(Kind.JOB_PROGRESS)) == ([], [])


def test_words_are_kept_before_the_end_that_follows_them(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.pump.reports.lines.append(LogLine(job, 1, "info", "nearly done"))
    bench.returns(job)
    bench.pumped()
    assert world.words(job) == ["queued", "started", "log", "completed"]


def test_words_of_a_failed_unit_come_before_those_said_since(bench: Bench, world: World) -> None:
    job = world.job()
    bench.pumped()
    bench.pump.reports.lines.append(LogLine(job, 1, "info", "first"))
    bench.pump.reports.progress[job] = Progress(1, 0.1, "old")
    bench.lose(bench.pump)
    bench.pump.reports.lines.append(LogLine(job, 1, "info", "second"))
    bench.pump.reports.progress[job] = Progress(1, 0.9, "new")
    bench.pumped()
    assert [json.loads(data)["text"] for data in bench.announced(Kind.JOB_LOG)] == ["first", "second"]
    assert [json.loads(data)["note"] for data in bench.announced(Kind.JOB_PROGRESS)] == ["new"]
    assert not Reports()
