import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from paceline import Context, agent
from paceline.agents.function import bind
from paceline.core.completion import Ended, Ending
from paceline.core.model import Claimed
from paceline.node.dispatcher import Start
from paceline.node.reports import Reporter, Reports
from paceline.node.runner import Runner
from paceline.workers.inline import InlineWorkers

AGENT = 1


class Running:
    """A runner, and everything it said."""

    def __init__(self) -> None:
        self.workers = InlineWorkers(4)
        self.reports = Reports()
        self.ends: list[Ended] = []
        self.over = asyncio.Event()
        self.words = 0
        reporter = Reporter(lambda: self.reports, self._said)
        reporter.start()
        self.runner = Runner(self.workers, "store", reporter, self._ended)

    def serve(self, function: Callable[..., object]) -> None:
        made = agent(max_concurrency=None)(function)
        self.runner.serve(AGENT, "worker", bind(made))

    def begin(self, body: str = "null", job: int = 1, epoch: int = 1, attempt: int = 0) -> None:
        claimed = Claimed(job, epoch, 1, job, None, attempt, 0, 0, 0, 0, 10, None, 0, 1, None)
        self.runner.begin(Start(claimed, AGENT, body))

    async def end(self) -> Ended:
        """How the next epoch ended."""
        await self.over.wait()
        self.over.clear()
        return self.ends[-1]

    def _said(self) -> None:
        self.words += 1

    def _ended(self, end: Ended) -> None:
        self.ends.append(end)
        self.over.set()


def play(act: Callable[[Running], Coroutine[Any, Any, None]]) -> None:
    """One act with a runner, on an event loop of its own."""

    async def within() -> None:
        running = Running()
        async with asyncio.timeout(10):
            await act(running)
        running.workers.stop()
        assert len(running.workers) == 0

    asyncio.run(within())


def test_a_coroutine_and_a_plain_function_answer_their_result() -> None:
    async def double(n: int) -> int:
        return 2 * n

    def in_a_thread(n: int) -> list[object]:
        return [n, threading.current_thread().name.startswith("paceline-agent")]

    async def act(running: Running) -> None:
        running.serve(double)
        running.begin("21")
        assert (await running.end())[1:3] == (Ending.RETURNED, "42")
        running.serve(in_a_thread)
        running.begin("1")
        assert (await running.end())[1:3] == (Ending.RETURNED, "[1,true]")

    play(act)


def test_code_is_told_who_it_is_and_its_key_stays_the_same_over_all_tries() -> None:
    async def who(ctx: Context) -> list[object]:
        return [ctx.job, ctx.epoch, ctx.attempt, ctx.agent, ctx.idempotency_key]

    async def act(running: Running) -> None:
        running.serve(who)
        running.begin(job=7, epoch=1, attempt=0)
        assert (await running.end()).body == '["j7",1,1,"worker","store-7"]'
        running.begin(job=7, epoch=5, attempt=2)
        assert (await running.end()).body == '["j7",5,3,"worker","store-7"]'

    play(act)


def test_an_input_that_no_longer_fits_the_code_is_an_error_of_the_job() -> None:
    async def double(n: int) -> int:
        return 2 * n

    async def act(running: Running) -> None:
        running.serve(double)
        running.begin('"text"')
        end = await running.end()
        assert end.ending is Ending.RAISED
        assert "input_invalid" in end.body

    play(act)


def test_stopped_code_is_interrupted_at_its_next_await() -> None:
    cleaned = []

    async def forever(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(ctx.cancelled)

    async def act(running: Running) -> None:
        running.serve(forever)
        running.begin()
        await asyncio.sleep(0)
        assert running.runner.holds(1, 1)
        running.runner.stop(1, 1)
        running.runner.stop(1, 1)
        assert (await running.end()).ending is Ending.STOPPED
        assert cleaned == [True]
        assert not running.runner.holds(1, 1)

    play(act)


def test_code_that_is_stopped_before_its_first_step_still_tells_its_end() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async def act(running: Running) -> None:
        running.serve(forever)
        running.begin()
        running.runner.stop(1, 1)
        assert (await running.end()).ending is Ending.STOPPED

    play(act)


def test_code_that_answers_although_it_was_stopped_is_heard_as_such() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "anyway"
        return ""

    async def act(running: Running) -> None:
        running.serve(stubborn)
        running.begin()
        await asyncio.sleep(0)
        running.runner.stop(1, 1)
        assert (await running.end())[1:3] == (Ending.RETURNED, '"anyway"')

    play(act)


def test_a_stop_for_another_epoch_or_job_reaches_nobody() -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "fine"

    async def act(running: Running) -> None:
        running.serve(wait)
        running.begin(epoch=3)
        running.runner.stop(1, 2)
        running.runner.stop(2, 3)
        gate.set()
        assert (await running.end()).ending is Ending.RETURNED

    play(act)


def test_a_thread_holds_its_slot_until_its_function_has_returned() -> None:
    began, gate, seen = threading.Event(), threading.Event(), []

    def slow(ctx: Context) -> None:
        began.set()
        gate.wait(10)
        seen.append(ctx.cancelled)

    async def act(running: Running) -> None:
        running.serve(slow)
        running.begin()
        await asyncio.to_thread(began.wait, 10)
        for _ in range(3):
            running.runner.stop(1, 1)
            await asyncio.sleep(0)
        assert (running.ends, running.runner.holds(1, 1)) == ([], True)
        gate.set()
        assert (await running.end()).ending is Ending.STOPPED
        assert seen == [True]

    play(act)


def test_what_still_runs_when_the_node_stops_is_given_back() -> None:
    gate = threading.Event()

    async def forever() -> None:
        await asyncio.Event().wait()

    def in_a_thread() -> None:
        gate.wait(10)

    async def act(running: Running) -> None:
        running.serve(forever)
        running.begin(job=1)
        running.serve(in_a_thread)
        running.begin(job=2)
        await asyncio.sleep(0)
        running.runner.give_back()
        assert await running.workers.drain(5)
        gate.set()
        assert {(end.job.id, end.ending, end.reason) for end in running.ends} == {
            (1, Ending.GIVEN_BACK, "node_stopped"),
            (2, Ending.GIVEN_BACK, "node_stopped"),
        }

    play(act)


def test_when_the_life_of_the_node_was_ended_everything_is_abandoned() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async def act(running: Running) -> None:
        running.serve(forever)
        running.begin(job=1)
        running.begin(job=2)
        await asyncio.sleep(0)
        running.runner.abandon()
        assert await running.workers.drain(5)
        assert [end.ending for end in running.ends] == [Ending.STOPPED, Ending.STOPPED]

    play(act)


def test_draining_gives_up_when_the_time_is_over() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    async def act(running: Running) -> None:
        running.serve(forever)
        running.begin()
        assert not await running.workers.drain(0.0)
        running.runner.abandon()
        assert await running.workers.drain(5)

    play(act)


def test_new_code_of_an_agent_leaves_alone_what_runs() -> None:
    gate = asyncio.Event()

    async def old() -> str:
        await gate.wait()
        return "old"

    async def new() -> str:
        return "new"

    async def act(running: Running) -> None:
        running.serve(old)
        running.begin(job=1)
        running.serve(new)
        running.begin(job=2)
        assert (await running.end()).body == '"new"'
        gate.set()
        assert (await running.end()).body == '"old"'

    play(act)


def test_lines_from_code_and_from_threads_are_kept_in_their_order() -> None:
    async def speak(ctx: Context) -> None:
        for word in ("one", "two"):
            ctx.log(word)
        ctx.progress(0.5, "half")

    def speak_in_a_thread(ctx: Context) -> None:
        for word in ("three", "four"):
            ctx.log(word, level="warning")
        ctx.progress(1.0)

    async def act(running: Running) -> None:
        for code in (speak, speak_in_a_thread):
            running.serve(code)
            running.begin()
            await running.end()
        assert [(line.text, line.level) for line in running.reports.lines] == [
            ("one", "info"), ("two", "info"), ("three", "warning"), ("four", "warning"),
        ]  # fmt: skip
        assert running.reports.progress[1][1:] == (1.0, "")
        assert running.words == 6

    play(act)


def test_the_trace_of_an_error_shows_the_code_of_the_agent() -> None:
    async def fail() -> None:
        raise ValueError("here")

    async def act(running: Running) -> None:
        running.serve(fail)
        running.begin()
        assert 'raise ValueError(\\"here\\")' in (await running.end()).body

    play(act)
