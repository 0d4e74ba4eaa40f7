"""Whoever waits hears the end, with the result where a commit of this process has told it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from paceline.client.waiting import Waiting
from paceline.store.doors import sqlite_store
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
