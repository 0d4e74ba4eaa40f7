"""Runs code in the node's own process: coroutines as tasks, plain functions in threads."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Key = tuple[int, int]
"""(job, epoch)"""
Outcome = tuple[object, BaseException | None]


class InlineWorkers:
    """Quick, trusted code; a thread cannot be stopped from outside, so what it holds stays held until it returns."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: ThreadPoolExecutor | None = None
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def run(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        """Starts a coroutine, which must call `ended` as its last word."""
        self._tasks[key] = asyncio.get_running_loop().create_task(work)

    def ended(self, key: Key) -> None:
        """The coroutine is at its end."""
        self._tasks.pop(key, None)

    def in_thread(self, function: Callable[[], object]) -> "asyncio.Future[Outcome]":
        """Runs a plain function beside the event loop; the answer is its value or what it raised."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._most, thread_name_prefix="paceline-agent")
        return asyncio.get_running_loop().run_in_executor(self._threads, _outcome, function)

    def cancel(self, key: Key) -> None:
        """Asks code to stop at its next await; one that has not begun yet begins first, so that it can tell its end."""
        task = self._tasks.get(key)
        if task is not None:
            asyncio.get_running_loop().call_soon(task.cancel)

    async def drain(self, timeout: float) -> bool:
        """Waits for everything that runs; False when the time was up first."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        while self._tasks and loop.time() < until:
            await asyncio.wait(list(self._tasks.values()), timeout=until - loop.time())
        return not self._tasks

    def stop(self) -> None:
        """Waits for nobody; stopping twice or before starting is fine."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _outcome(function: Callable[[], object]) -> Outcome:
    """A future refuses to carry some exceptions, and whoever waits for it would wait for ever."""
    try:
        return function(), None
    except BaseException as error:
        return None, error
