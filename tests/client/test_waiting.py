"""Whoever waits hears the end, with the result where a commit of this process has told it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from paceline.client.waiting import Waiting
from paceline.core.lifecycle import State
from paceline.store.doors import sqlite_store
from paceline.store.protocol import Store
from paceline.testing.clock import ManualClock


def play(act: Callable[[Waiting], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        store = sqlite_store(None, ManualClock())
        async with asyncio.timeout(10):
            await act(Waiting(store, lambda: True))
        store.close()

    asyncio.run(within())


def test_a_result_told_with_the_end_reaches_everybody_who_waits_for_it() -> None:
    async def act(waiting: Waiting) -> None:
        both = asyncio.create_task(waiting.ended([1, 2], None))
        one = asyncio.create_task(waiting.ended([2], None))
        await asyncio.sleep(0)
        waiting.remember([2], {2: '"two"'})
        assert await one == {2: '"two"'}
        waiting.remember([1])
        assert await both == {2: '"two"'}, "the first was told without a result and has to be read"
        assert not len(waiting)

    play(act)


def test_who_comes_after_the_end_is_told_so_and_reads_the_result() -> None:
    async def act(waiting: Waiting) -> None:
        waiting.remember([1], {1: "1"})
        assert await waiting.ended([1], None) == {}

    play(act)


def test_patience_that_ends_first_is_told_apart_from_an_end_without_a_result() -> None:
    async def act(waiting: Waiting) -> None:
        waiting.remember([1])
        assert await waiting.ended([1], 0.0) == {}
        assert await waiting.ended([2], 0.0) is None

    play(act)


class Slow:
    """A store that answers when it is let: every job that anybody asks for has ended."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked: list[list[int]] = []

    async def read(self, question: "partial[Any]") -> list[tuple[int, State]]:
        self.asked.append(question.args[0])
        await self.gate.wait()
        return [(job, State.COMPLETED) for job in question.args[0]]


def act_on(store: Slow, act: Callable[[Waiting], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(10):
            await act(Waiting(cast(Store, store), lambda: True))

    asyncio.run(within())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_hint_that_names_jobs_has_only_these_looked_at_however_many_are_waited_for() -> None:
    store = Slow()

    async def act(waiting: Waiting) -> None:
        everybody = asyncio.create_task(waiting.ended(range(1, 10_001), None))
        await turns()
        waiting.look_now([7, 20_000])
        await turns()
        waiting.look_now([9])
        store.gate.set()
        await turns()
        assert store.asked == [[7], [9]]
        everybody.cancel()

    act_on(store, act)


def test_a_hint_is_heeded_that_comes_right_after_everybody_before_has_given_up() -> None:
    store = Slow()

    async def act(waiting: Waiting) -> None:
        first = asyncio.create_task(waiting.ended([1], None))
        await turns()
        waiting.look_now([1])
        await turns(1)
        first.cancel()
        second = asyncio.create_task(waiting.ended([2], None))
        await turns()
        waiting.look_now([2])
        store.gate.set()
        assert await second == {}
        assert store.asked == [[1], [2]]

    act_on(store, act)
