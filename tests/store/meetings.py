"""Pairs of units that may meet on one store, each with the law that must hold whoever wins."""

from typing import Any

from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Claimed, Move
from paceline.core.problem import Problem
from paceline.events import Kind
from paceline.node.janitor import search
from paceline.node.reaper import Reaper
from paceline.node.warden import Warden
from paceline.store.protocol import Tx
from paceline.units.control import replay
from paceline.units.failing import ErrorBody, write_error
from paceline.units.reap import give_back_jobs
from paceline.units.settle import settle_postponed
from paceline.units.submit import forget, publish, stage
from store.acts import cancels, completes, dispatches, fails, gives_back, submits, times_out
from store.leadership import LEADERSHIP
from store.racing import Race, Scenario
from store.world import TERM, World

Pair = tuple[World, World]


def submit_and_complete(one: World, other: World) -> Race:
    job = one.running()

    def law(submitted: list[int], _: Any) -> None:
        assert one.state(submitted[0]) is State.QUEUED

    return Race(submits(one, after=[job.id]), completes(other, job), law)


def submit_and_fail(one: World, other: World) -> Race:
    job = one.running()

    def law(submitted: list[int], _: Any) -> None:
        assert (one.state(submitted[0]), one.row(submitted[0]).reason) == (State.FAILED, "dependency_failed")

    return Race(submits(one, after=[job.id]), fails(other, job), law)


def two_prerequisites_complete(one: World, other: World) -> Race:
    first, second = one.running(), one.running()
    dependent = one.job(after=[first.id, second.id])

    def law(*_: Any) -> None:
        assert one.words(dependent) == ["blocked", "unblocked"]

    return Race(completes(one, first), completes(other, second), law)


def one_prerequisite_completes_and_the_other_fails(one: World, other: World) -> Race:
    first, second = one.running(), one.running()
    dependent = one.job(after=[first.id, second.id])

    def law(*_: Any) -> None:
        assert one.words(dependent) == ["blocked", "failed"]

    return Race(completes(one, first), fails(other, second), law)


def cancel_and_complete(one: World, other: World) -> Race:
    job = one.running()
    dependent = one.job(after=[job.id])

    def law(cancelled: list[Any], finished: Any) -> None:
        won = State.CANCELLED if cancelled else State.COMPLETED
        assert one.state(job.id) is won
        assert (job.id, State.COMPLETED) in finished.ended or bool(cancelled)
        assert one.row(job.id).node is None
        assert one.state(dependent) is (State.FAILED if cancelled else State.QUEUED)

    return Race(cancels(job.id), completes(other, job), law)


def cancel_and_retry(one: World, other: World) -> Race:
    job = one.running(retries=1)

    def law(cancelled: list[Any], _: Any) -> None:
        assert cancelled
        assert one.state(job.id) is State.CANCELLED
        assert one.row(job.id).node is None

    return Race(cancels(job.id), fails(other, job, FailureClass.TRANSIENT), law)


def time_out_and_complete(one: World, other: World) -> Race:
    job = one.running()

    def law(ended: list[Any], _: Any) -> None:
        assert one.state(job.id) is (State.TIMED_OUT if ended else State.COMPLETED)

    return Race(times_out(job.id), completes(other, job), law)


def cancel_and_time_out(one: World, other: World) -> Race:
    job = one.job()

    def law(cancelled: list[Any], timed_out: list[Any]) -> None:
        assert bool(cancelled) != bool(timed_out)
        assert one.state(job) is (State.CANCELLED if cancelled else State.TIMED_OUT)

    return Race(cancels(job), times_out(job), law)


def claim_and_claim(one: World, other: World) -> Race:
    jobs = one.jobs(5)

    def law(mine: list[Claimed], yours: list[Claimed]) -> None:
        assert sorted(job.id for job in [*mine, *yours]) == jobs
        assert {one.row(job.id).node for job in mine} <= {one.node}
        assert {one.row(job.id).node for job in yours} <= {other.node}

    return Race(
        lambda tx: tx.jobs.claim(jobs[:4], one.node, tx.now),
        lambda tx: tx.jobs.claim(jobs[1:], other.node, tx.now),
        law,
    )


def dispatch_and_dispatch(one: World, other: World) -> Race:
    jobs = one.jobs(3)

    def law(mine: list[int], yours: list[int]) -> None:
        assert sorted([*mine, *yours]) == jobs

    return Race(dispatches(one), dispatches(other), law)


def dispatch_of_an_agent_that_runs_one_at_a_time(one: World, other: World) -> Race:
    one.agent = other.agent = one.do(lambda tx: tx.lanes.register(f"single {tx.events.last()}", "tests", "d", 1))
    one.jobs(3)

    def law(mine: list[int], yours: list[int]) -> None:
        assert len([*mine, *yours]) == 1

    return Race(dispatches(one, limited=True), dispatches(other, limited=True), law)


def dispatch_for_a_pool_of_one(one: World, other: World) -> Race:
    lock = f"lock:{one.agent}"
    one.jobs(2)

    def law(mine: list[int], yours: list[int]) -> None:
        assert len([*mine, *yours]) == 1
        assert one.do(lambda tx: tx.pools.held())[lock] == 1

    return Race(dispatches(one, needs={lock: 1}), dispatches(other, needs={lock: 1}), law)


def dispatch_and_cancel(one: World, other: World) -> Race:
    job = one.job()

    def law(started: list[int], cancelled: list[Any]) -> None:
        assert cancelled
        row = one.row(job)
        assert (row.state, row.node) == (State.CANCELLED, one.node if started else None)

    return Race(dispatches(one), cancels(job), law)


def dispatch_and_end_of_a_life(one: World, other: World) -> Race:
    job = one.running()

    def law(finished: Any, _: int) -> None:
        if finished.stale:
            assert (one.state(job.id), one.words(job.id)[-1]) == (State.QUEUED, "given_back")
        else:
            assert one.state(job.id) is State.COMPLETED
        assert one.row(job.id).node is None

    return Race(completes(one, job), gives_back(one.node), law)


def beat_and_reap(one: World, other: World) -> Race:
    node = one.renew_node()
    one.clock.advance(TERM + 1)
    other.do(lambda tx: tx.nodes.beat(other.node, tx.now, tx.now + TERM))
    reaper = Reaper(lambda: other.node, lambda _: "unknown", other.clock.monotonic, TERM)

    def law(beaten: bool, _: Any) -> None:
        found = one.do(lambda tx: tx.reasons.node(node))
        assert found is not None
        assert beaten is (found.ended_at is None)

    return Race(lambda tx: tx.nodes.beat(node, tx.now, tx.now + TERM), reaper.unit(one.clock.now()), law)


def reap_and_reap(one: World, other: World) -> Race:
    job = one.running()

    def law(*returned: int) -> None:
        assert sum(returned) == 1
        assert one.words(job.id) == ["queued", "started", "given_back"]

    return Race(gives_back(one.node), gives_back(one.node), law)


def publish_and_dispatch(one: World, other: World) -> Race:
    batch, staged = one.stage(one.wish(), one.wish(inner=[0]))
    one.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))

    def law(_: bool, started: list[int]) -> None:
        assert started in ([], staged[:1])
        assert one.state(staged[1]) is State.BLOCKED

    return Race(lambda tx: publish(tx, batch), dispatches(other), law)


def publish_and_publish(one: World, other: World) -> Race:
    batch, staged = one.stage(one.wish(), one.wish())
    one.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))

    def law(*_: bool) -> None:
        assert [one.words(job) for job in staged] == [["queued"], ["queued"]]

    return Race(lambda tx: publish(tx, batch), lambda tx: publish(tx, batch), law)


def publish_and_complete(one: World, other: World) -> Race:
    job = one.running()
    batch, staged = one.stage(one.wish(after=[job.id]))
    one.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))

    def law(*_: Any) -> None:
        assert one.state(staged[0]) is State.QUEUED

    return Race(lambda tx: publish(tx, batch), completes(other, job), law)


def accept_and_abandon(one: World, other: World) -> Race:
    batch, staged = one.stage(one.wish())

    def law(accepted: bool, _: bool) -> None:
        if accepted:
            one.accept_rest(batch)
        assert bool(one.do(lambda tx: tx.jobs.rows(staged))) is accepted

    def abandon(tx: Tx) -> bool:
        return tx.submissions.is_open(batch) and forget(tx, batch)

    return Race(lambda tx: tx.submissions.publish_batch(batch, tx.now), abandon, law)


def stage_and_abandon(one: World, other: World) -> Race:
    batch, staged = one.stage(one.wish())

    def law(more: Any, _: bool) -> None:
        left = one.do(lambda tx: tx.jobs.rows([*staged, *(more if isinstance(more, list) else [])]))
        assert left == [] or one.do(lambda tx: forget(tx, batch)) is False

    return Race(lambda tx: stage(tx, batch, [one.wish()]), lambda tx: forget(tx, batch), law)


def one_key_twice(one: World, other: World) -> Race:
    def law(mine: list[int], yours: list[int]) -> None:
        assert mine == yours

    return Race(submits(one, key="k"), submits(other, key="k"), law)


def one_key_for_two_inputs(one: World, other: World) -> Race:
    def law(*answers: Any) -> None:
        (problem,) = [answer for answer in answers if isinstance(answer, Problem)]
        assert problem.code == "key_conflict"

    return Race(submits(one, body="1", key="k"), submits(other, body="2", key="k"), law)


def two_jobs_of_one_session(one: World, other: World) -> Race:
    session = f"s{one.agent}"

    def law(mine: list[int], yours: list[int]) -> None:
        assert {one.state(mine[0]), one.state(yours[0])} == {State.QUEUED, State.BLOCKED}

    return Race(submits(one, session=session), submits(other, session=session), law)


def session_and_the_end_of_its_last_job(one: World, other: World) -> Race:
    session = f"s{one.agent}"
    job = one.running(session=session)

    def law(submitted: list[int], _: Any) -> None:
        assert one.state(submitted[0]) is State.QUEUED

    return Race(submits(one, session=session), fails(other, job), law)


def replay_and_replay(one: World, other: World) -> Race:
    job = one.in_state(State.FAILED)

    def law(*answers: Any) -> None:
        (problem,) = [answer for answer in answers if isinstance(answer, Problem)]
        assert (problem.code, one.state(job)) == ("not_dead", State.QUEUED)

    return Race(lambda tx: replay(tx, job, None), lambda tx: replay(tx, job, None), law)


def replay_and_submit(one: World, other: World) -> Race:
    job = one.in_state(State.FAILED)

    def law(_: list[int], submitted: list[int]) -> None:
        assert one.state(submitted[0]) is State.BLOCKED

    return Race(lambda tx: replay(tx, job, None), submits(other, after=[job]), law)


def replay_and_the_end_of_its_code(one: World, other: World) -> Race:
    job = one.running()
    one.cancel(job.id)

    def law(answer: Any, _: Any) -> None:
        assert one.row(job.id).node is None
        assert one.state(job.id) is (State.CANCELLED if isinstance(answer, Problem) else State.QUEUED)

    stopped = [Ended(job, Ending.STOPPED)]
    return Race(lambda tx: replay(tx, job.id, None), lambda tx: other.completer.finish(tx, stopped, leased=True), law)


def cancel_of_a_parent_and_a_new_child(one: World, other: World) -> Race:
    parent = one.job()

    def law(_: Any, child: Any) -> None:
        if isinstance(child, Problem):
            assert child.code == "parent_ended"
        else:
            assert one.state(child[0]) is State.CANCELLED

    return Race(cancels(parent), submits(other, parent=parent), law)


def due_and_cancel(one: World, other: World) -> Race:
    job = one.job(delay=SECOND)
    one.clock.advance(SECOND)

    def law(*_: Any) -> None:
        assert one.state(job) is State.CANCELLED

    return Race(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now), cancels(job), law)


def complete_and_search(one: World, other: World) -> Race:
    job = one.running()
    dependent = one.job(after=[job.id])

    def law(_: Any, found: Any) -> None:
        assert not found.readied
        assert one.words(dependent) == ["blocked", "unblocked"]

    return Race(completes(one, job), lambda tx: search(tx, 0), law)


def the_same_new_names(one: World, other: World) -> Race:
    name = f"t{one.agent}"

    def number(tx: Tx) -> tuple[int, int, int]:
        tenant = tx.lanes.tenant(name)
        agent = tx.lanes.register(name, "tests", "d", None)
        return tenant, agent, tx.lanes.lane(1, 1, tenant, agent)

    def law(mine: tuple[int, ...], yours: tuple[int, ...]) -> None:
        assert mine == yours

    return Race(number, number, law)


def told_later_and_replay(one: World, other: World) -> Race:
    job = one.running()
    behind = one.job(after=[job.id])

    def fail_and_tell_later(tx: Tx) -> None:
        tx.jobs.move([Move(job.id, State.RUNNING, job.epoch, State.FAILED, ended_at=tx.now)], Kind.JOB_FAILED, tx.now)
        tx.jobs.keep_results([(job.id, write_error(ErrorBody("ValueError", "no")))])
        tx.edges.postpone([job.id])

    one.do(fail_and_tell_later)

    def law(*_: Any) -> None:
        while one.do(settle_postponed)[1]:
            pass
        assert (one.state(job.id), one.state(behind)) == (State.QUEUED, State.BLOCKED)

    return Race(settle_postponed, lambda tx: replay(tx, job.id, None), law)


def time_out_and_the_next_epoch(one: World, other: World) -> Race:
    job = one.running(timeout=SECOND)
    warden = Warden(lambda: one.node, lambda *_: True, lambda _: None)
    warden.watch([job], one.clock.now())
    one.clock.advance(2 * SECOND)

    def goes_on_elsewhere(tx: Tx) -> None:
        give_back_jobs(tx, one.node, "node_died")
        tx.jobs.claim([job.id], other.node, tx.now)

    def law(*_: Any) -> None:
        row = one.row(job.id)
        assert (row.state, row.epoch) in ((State.TIMED_OUT, 1), (State.RUNNING, 2))

    return Race(warden.unit(one.clock.now()), goes_on_elsewhere, law)


SCENARIOS: tuple[Scenario, ...] = (
    submit_and_complete, submit_and_fail, two_prerequisites_complete, one_prerequisite_completes_and_the_other_fails,
    cancel_and_complete, cancel_and_retry, time_out_and_complete, cancel_and_time_out, claim_and_claim,
    dispatch_and_dispatch, dispatch_of_an_agent_that_runs_one_at_a_time, dispatch_for_a_pool_of_one,
    dispatch_and_cancel, dispatch_and_end_of_a_life, beat_and_reap, reap_and_reap, publish_and_dispatch,
    publish_and_publish, publish_and_complete, accept_and_abandon, stage_and_abandon, one_key_twice,
    one_key_for_two_inputs, two_jobs_of_one_session, session_and_the_end_of_its_last_job, replay_and_replay,
    replay_and_submit, replay_and_the_end_of_its_code, cancel_of_a_parent_and_a_new_child, due_and_cancel,
    complete_and_search, the_same_new_names, told_later_and_replay, time_out_and_the_next_epoch, *LEADERSHIP,
)  # fmt: skip
