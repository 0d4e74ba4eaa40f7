"""Group commit: one thread that carries out every unit of work that waits, in one transaction."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from paceline.errors import StoreError

MOST_UNITS = 512


class Waiting(NamedTuple):
    """A unit of work and who waits for it: a future of some event loop, or of a thread."""

    unit: Callable[[Any], Any]
    loop: asyncio.AbstractEventLoop | None
    future: "asyncio.Future[Any] | Future[Any]"


class Done(NamedTuple):
    """What became of a unit: its value, or the error that rolled it back."""

    value: Any
    error: BaseException | None


class Writer:
    """While one commit runs the next batch gathers by itself; nobody lingers."""

    def __init__(self, commit: Callable[[list[Callable[[Any], Any]]], list[Done]]) -> None:
        self._commit = commit
        self._waiting: deque[Waiting] = deque()
        self._wake = threading.Condition(threading.Lock())
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.commits = 0

    def start(self) -> None:
        """Starts the thread; starting twice is fine."""
        if self._thread is None:
            self._stopping = False
            self._thread = threading.Thread(target=self._run, name="paceline-writer", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Carries out what is waiting, then ends the thread; stopping twice or before starting is fine."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def put(self, waiting: Waiting) -> None:
        """Hands a unit over."""
        with self._wake:
            if self._stopping or self._thread is None:
                raise StoreError(code="store_closed", what="the store is closed", todo="open it again")
            self._waiting.append(waiting)
            self._wake.notify()

    def _run(self) -> None:
        while batch := self._next():
            try:
                results = self._commit([waiting.unit for waiting in batch])
            except BaseException as error:
                results = [Done(None, error)] * len(batch)
            self.commits += 1
            self._deliver(batch, results)

    def _next(self) -> list[Waiting]:
        with self._wake:
            while not self._waiting and not self._stopping:
                self._wake.wait()
            count = min(len(self._waiting), MOST_UNITS)
            return [self._waiting.popleft() for _ in range(count)]

    def _deliver(self, batch: list[Waiting], results: list[Done]) -> None:
        """One wake-up per event loop and commit, in the order of the units."""
        by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Any, Done]]] = {}
        for waiting, done in zip(batch, results, strict=True):
            by_loop.setdefault(waiting.loop, []).append((waiting.future, done))
        for loop, answers in by_loop.items():
            if loop is None:
                _resolve(answers)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: list[tuple[Any, Done]]) -> None:
    for future, done in answers:
        if future.done():
            continue
        if done.error is None:
            future.set_result(done.value)
        else:
            future.set_exception(done.error)
