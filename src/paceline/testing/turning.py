"""An event loop whose time is virtual and whose turns are taken one by one: asyncio itself runs on it unchanged."""

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from typing import Any, TypeVar, cast

from paceline.testing.clock import ManualClock

T = TypeVar("T")


class TurningLoop:
    """One process's loop: `turn` runs what is ready, nothing else ever does."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._loop = cast(asyncio.AbstractEventLoop, self)  # as much of one as the product and asyncio ask for
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._dead = False
        self._tasks: list[asyncio.Task[Any]] = []
        self._trouble: BaseException | None = None

    def turn(self, most: int) -> None:
        """Runs at most so many of the callbacks that are ready now; raises what nobody was there to catch."""
        self._wake()
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._loop)
        try:
            for _ in range(min(most, len(self._ready))):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(before)
        self._look_after_tasks()

    def due(self) -> int | None:
        """When something can run, in awake time; None: never by itself."""
        if self._ready:
            return 0
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def die(self) -> None:
        """The process is gone: nothing that was planned happens, and no code gets another chance to act."""
        self._dead = True
        self._ready.clear()
        self._timers.clear()
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._loop)
        try:
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    cast(Coroutine[Any, Any, object], task.get_coro()).close()
        finally:
            asyncio._set_running_loop(before)
            self._tasks.clear()

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self._loop, context)
        if not self._dead:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        when = self._clock.monotonic() + max(0, math.ceil(delay * 1_000_000))
        handle = asyncio.TimerHandle(when / 1_000_000, callback, args, self._loop, context)
        if not self._dead:
            heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def time(self) -> float:
        return self._clock.monotonic() / 1_000_000

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._loop)

    def create_task(self, coro: Coroutine[Any, Any, T], **_: Any) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self._loop)
        self._tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._dead

    def is_closed(self) -> bool:
        return self._dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self._dead and isinstance(error, BaseException):
            self._trouble = self._trouble or error

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when their time comes."""

    def _wake(self) -> None:
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def _look_after_tasks(self) -> None:
        if any(task.done() for task in self._tasks):
            ended = [task for task in self._tasks if task.done() and not task.cancelled()]
            self._tasks = [task for task in self._tasks if not task.done()]
            for task in ended:
                self._trouble = self._trouble or task.exception()
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
