import asyncio
import threading
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from library.stage import double, fail_before, forever, halve, play, refuse
from paceline import (
    Conflict,
    Context,
    JobCancelled,
    JobFailed,
    JobTimedOut,
    NotFound,
    Paceline,
    RateLimited,
    Refused,
    State,
    UsageError,
    WaitTimedOut,
    agent,
    call,
)


def test_a_job_is_submitted_with_every_option_and_answers_its_result(url: str) -> None:
    async def act(pl: Paceline) -> None:
        other = await pl.submit(double, 1)
        job = await pl.submit(
            double, 21, priority="high", queue_class="interactive", tenant="acme", after=[other], key="order-7",
            delay="10ms", timeout="1m", retries=2, session=None,
        )  # fmt: skip
        assert await job.result(timeout=5) == 42

    play(url, act)


def test_ten_thousand_jobs_answer_in_the_order_they_were_asked(url: str) -> None:
    async def act(pl: Paceline) -> None:
        jobs = await pl.submit_many(double, range(10_000))
        assert await pl.results(jobs) == [2 * n for n in range(10_000)]

    play(url, act)


def test_a_plain_function_runs_in_a_thread(url: str) -> None:
    async def act(pl: Paceline) -> None:
        assert await (await pl.submit(halve, 9)).result() == 4.5

    play(url, act)


def test_a_failed_prerequisite_fails_its_dependents_and_names_the_chain(url: str) -> None:
    async def act(pl: Paceline) -> None:
        first = await pl.submit(refuse, 7)
        second = await pl.submit(double, 1, after=[first])
        third = await pl.submit(double, 1, after=[second])
        anyway = await pl.submit(double, 5, after=[(third, "finished")])
        with pytest.raises(JobFailed, match=rf"{second.id} ← {first.id} ended: .*no 7") as caught:
            await third.result()
        assert caught.value.reason == "dependency_failed"
        assert await anyway.result() == 10

    play(url, act)


def test_a_transient_failure_is_retried_and_a_permanent_one_is_not(url: str) -> None:
    async def act(pl: Paceline) -> None:
        cured = await pl.submit(fail_before, 2, retries=1)
        lost = await pl.submit(refuse, 1, retries=5)
        assert await cured.result(timeout=5) == 2
        with pytest.raises(JobFailed, match="no 1"):
            await lost.result(timeout=5)

    play(url, act)


def test_a_rate_limit_costs_no_retry(url: str) -> None:
    seen: list[int] = []

    @agent(name="limited", max_concurrency=None)
    async def limited(ctx: Context) -> int:
        seen.append(ctx.attempt)
        if len(seen) < 2:
            raise RateLimited("slow down", retry_after=0.01)
        return ctx.epoch

    async def act(pl: Paceline) -> None:
        assert await (await pl.submit(limited, retries=0)).result(timeout=5) == 2
        assert seen == [1, 1]

    play(url, act)


def test_the_same_key_and_input_answer_the_same_job_and_another_input_is_a_conflict(url: str) -> None:
    async def act(pl: Paceline) -> None:
        first = await pl.submit(double, 1, key="a")
        assert await pl.submit(double, 1, key="a") == first
        assert await pl.submit(double, 1, key="a", tenant="other") != first
        with pytest.raises(Conflict, match="'a'"):
            await pl.submit(double, 2, key="a")
        await first.result()
        assert await pl.submit(double, 1, key="a") == first

    play(url, act)


def test_many_callers_with_one_key_get_one_job(url: str) -> None:
    async def act(pl: Paceline) -> None:
        jobs = await asyncio.gather(*(pl.submit(double, 1, key="once") for _ in range(50)))
        assert len(set(jobs)) == 1

    play(url, act)


def test_cancelling_is_final_and_a_second_time_answers_false(url: str) -> None:
    started = asyncio.Event()

    @agent(name="endless", max_concurrency=None)
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async def act(pl: Paceline) -> None:
        job = await pl.submit(endless)
        await started.wait()
        assert await job.cancel()
        assert not await job.cancel()
        with pytest.raises(JobCancelled):
            await job.result(timeout=5)

    play(url, act)


def test_cancelling_takes_the_tree_and_fails_the_dependents(url: str) -> None:
    async def act(pl: Paceline) -> None:
        root = await pl.submit(forever)
        child = await pl.submit(forever, parent=root)
        grandchild = await pl.submit(forever, parent=child)
        dependent = await pl.submit(double, 1, after=[grandchild])
        assert await root.cancel()
        assert [await job.wait(5) for job in (root, child, grandchild)] == [State.CANCELLED] * 3
        with pytest.raises(JobFailed, match="cancelled"):
            await dependent.result(timeout=5)
        with pytest.raises(Refused, match="takes no more children"):
            await pl.submit(double, 1, parent=root)

    play(url, act)


def test_a_timeout_ends_the_running_code(url: str) -> None:
    async def act(pl: Paceline) -> None:
        with pytest.raises(JobTimedOut, match="timeout"):
            await (await pl.submit(forever, timeout="50ms")).result(timeout=5)

    play(url, act)


def test_a_deadline_counts_the_waiting_too(url: str) -> None:
    async def act(pl: Paceline) -> None:
        with pytest.raises(JobTimedOut, match="deadline"):
            await (await pl.submit(double, 1, delay="1h", deadline="50ms")).result(timeout=5)

    play(url, act)


def test_jobs_of_one_session_run_one_after_the_other(url: str) -> None:
    order: list[str] = []

    @agent(name="note", max_concurrency=None)
    async def note(n: int) -> None:
        order.append(f"in {n}")
        await asyncio.sleep(0)
        order.append(f"out {n}")

    async def act(pl: Paceline) -> None:
        jobs = [await pl.submit(note, n, session="s") for n in range(5)]
        await pl.results(jobs, timeout=5)
        assert order == [f"{where} {n}" for n in range(5) for where in ("in", "out")]

    play(url, act)


def test_max_concurrency_is_never_exceeded_and_is_used(url: str) -> None:
    now, most = 0, 0

    @agent(name="three", max_concurrency=3)
    async def three(n: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    async def act(pl: Paceline) -> None:
        await pl.results(await pl.submit_many(three, range(300)), timeout=10)
        assert most == 3

    play(url, act)


def test_a_lock_is_held_by_one_job_at_a_time_over_all_agents(url: str) -> None:
    inside = 0

    async def alone(n: int) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1

    one = agent(name="one", needs={"lock:door": 1}, max_concurrency=None)(alone)

    async def act(pl: Paceline) -> None:
        await pl.results(await pl.submit_many(one, range(50)), timeout=10)

    play(url, act)


def test_a_pool_that_nobody_declared_is_refused(url: str) -> None:
    greedy = agent(name="greedy", needs={"gpu": 1})(lambda: None)

    async def act(pl: Paceline) -> None:
        with pytest.raises(UsageError, match="gpu"):
            await pl.submit(greedy)

    async def declared(pl: Paceline) -> None:
        await (await pl.submit(greedy)).result(timeout=5)

    play(url, act)
    play(url, declared, limits={"gpu": 2})


def test_a_graph_runs_in_the_order_its_names_say(url: str) -> None:
    order: list[str] = []

    @agent(name="step", max_concurrency=None)
    async def step(name: str) -> str:
        order.append(name)
        return name

    async def act(pl: Paceline) -> None:
        jobs = await pl.submit_graph(
            {"c": call(step, "c", after=["a", "b"]), "a": call(step, "a"), "b": call(step, "b", after=["a"])}
        )
        assert await pl.results(list(jobs.values()), timeout=5) == ["c", "a", "b"]
        assert order == ["a", "b", "c"]

    play(url, act)


def test_a_cycle_and_a_dangling_name_are_refused_and_nothing_is_written(url: str) -> None:
    async def act(pl: Paceline) -> None:
        with pytest.raises(UsageError, match="a -> b -> a"):
            await pl.submit_graph({"a": call(double, 1, after=["b"]), "b": call(double, 2, after=["a"])})
        with pytest.raises(UsageError, match="did you mean 'first'"):
            await pl.submit_graph({"first": call(double, 1), "second": call(double, 2, after=["frist"])})
        assert (await pl.submit(double, 1)).number == 1

    play(url, act)


def test_a_long_chain_and_a_wide_fan_work(url: str) -> None:
    async def act(pl: Paceline) -> None:
        chain = {f"n{n}": call(double, n, after=[f"n{n - 1}"] if n else []) for n in range(1_200)}
        jobs = await pl.submit_graph(chain)
        assert await jobs["n1199"].result(timeout=20) == 2_398
        root = await pl.submit(double, 1, delay="50ms")
        fan = await pl.submit_many(double, range(2_000), after=[root])
        assert sum(await pl.results(fan, timeout=20)) == 2 * sum(range(2_000))

    play(url, act)


def test_a_failed_root_fails_thousands_of_dependents(url: str) -> None:
    async def act(pl: Paceline) -> None:
        root = await pl.submit(refuse, 1, delay="50ms")
        fan = await pl.submit_many(double, range(1_300), after=[root])
        ends = await pl.results(fan, timeout=20, return_exceptions=True)
        assert {end.reason for end in ends} == {"dependency_failed"}

    play(url, act)


def test_a_dead_job_is_tried_again_with_those_that_waited_for_it(url: str) -> None:
    ready = False

    @agent(name="sometimes", max_concurrency=None)
    async def sometimes(n: int) -> int:
        if not ready:
            raise ValueError("not ready")
        return n

    async def act(pl: Paceline) -> None:
        nonlocal ready
        first = await pl.submit(sometimes, 1)
        second = await pl.submit(sometimes, 2, after=[first])
        assert await second.wait(5) is State.FAILED
        ready = True
        await pl.retry(first)
        assert await pl.results([first, second], timeout=5) == [1, 2]
        with pytest.raises(Refused, match="completed"):
            await pl.retry(first)

    play(url, act)


@dataclass
class Point:
    x: int
    y: int = 0


class Order(BaseModel):
    item: str
    count: int = 1


def test_models_arrive_as_what_the_annotation_says(url: str) -> None:
    @agent(name="move", max_concurrency=None)
    async def move(point: Point) -> Point:
        assert isinstance(point, Point)
        return Point(point.x + 1, point.y)

    @agent(name="order", max_concurrency=None)
    async def order(order: Order) -> Order:
        assert isinstance(order, Order)
        return Order(item=order.item, count=order.count + 1)

    async def act(pl: Paceline) -> None:
        assert await (await pl.submit(move, Point(1))).result() == {"x": 2, "y": 0}
        assert await (await pl.submit(order, Order(item="tea"))).result() == {"item": "tea", "count": 2}

    play(url, act)


def test_waiting_ends_when_the_caller_has_no_more_patience_and_the_job_goes_on(url: str) -> None:
    async def act(pl: Paceline) -> None:
        job = await pl.submit(forever)
        with pytest.raises(WaitTimedOut):
            await job.result(timeout=0.02)
        assert not (await job.state()).ended
        await job.cancel()

    play(url, act)


def test_the_bounded_queue_refuses_whole_submissions(url: str) -> None:
    async def act(pl: Paceline) -> None:
        with pytest.raises(Refused, match="max_pending = 1,000"):
            await pl.submit_many(double, range(1_001), delay="1h")
        for _ in range(2):
            await pl.submit_many(double, range(400), delay="1h")
        with pytest.raises(Refused, match="max_pending = 1,000"):
            await pl.submit_many(double, range(400), delay="1h")

    play(url, act, max_pending=1_000)


def test_a_start_that_fails_leaves_nothing_open(url: str) -> None:
    needy = agent(name="needy", needs={"tpu": 1})(lambda: None)

    async def act() -> None:
        pl = Paceline(url, agents=[needy])
        for _ in range(2):
            with pytest.raises(UsageError, match="tpu"):
                await pl.start()
            await pl.stop()

    asyncio.run(act())
    assert "paceline-writer" not in {thread.name for thread in threading.enumerate()}


def test_an_agent_of_this_program_may_be_named(url: str) -> None:
    async def act(pl: Paceline) -> None:
        assert await (await pl.submit("fail_before", 1)).result(timeout=5) == 1
        with pytest.raises(NotFound, match="fail_before"):
            await pl.submit("fail_befour", 4)

    play(url, act)


def test_the_synchronous_twin_does_the_same(url: str) -> None:
    with Paceline.sync(url, agents=[]) as pl:
        job = pl.submit(double, 21)
        assert job.result(timeout=5) == 42
        assert pl.results(pl.submit_many(double, range(10)), timeout=5) == [2 * n for n in range(10)]
        graph = pl.submit_graph({"b": call(double, 2, after=["a"]), "a": call(double, 1)})
        assert [graph[name].result(timeout=5) for name in ("a", "b")] == [2, 4]
        lost = pl.submit(refuse, 1)
        with pytest.raises(JobFailed):
            lost.result(timeout=5)
        assert pl.retry(lost).id == pl.job(lost.id).id == lost.id
