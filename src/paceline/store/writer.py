"""Group commit: one thread that carries out every unit of work that waits, in one transaction."""

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from paceline.errors import StoreError

if TYPE_CHECKING:
    import asyncio

MOST_UNITS = 512


class Done(NamedTuple):
    """What became of a unit: its value, or the error that rolled it back."""

    value: Any
    error: BaseException | None


class Waiting(NamedTuple):
    """A unit of work, and whom to tell on which event loop; None: right on the writer's thread."""

    unit: Callable[[Any], Any]
    loop: "asyncio.AbstractEventLoop | None"
    tell: Callable[[Done], None]


class Writer:
    """While one commit runs the next batch gathers by itself; nobody lingers."""

    def __init__(self, commit: Callable[[list[Callable[[Any], Any]]], list[Done]]) -> None:
        self._commit = commit
        self._waiting: SimpleQueue[Waiting | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._open = False
        self._thread: threading.Thread | None = None
        self.commits = 0

    def start(self) -> None:
        """Starts the thread; starting twice is fine."""
        if self._thread is None:
            self._open = True
            self._thread = threading.Thread(target=self._run, name="paceline-writer", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Carries out what is waiting, then ends the thread; stopping twice or before starting is fine."""
        with self._closing:
            if self._open:
                self._open = False
                self._waiting.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def put(self, waiting: Waiting) -> None:
        """Hands a unit over."""
        with self._closing:
            if not self._open:
                raise StoreError(code="store_closed", what="the store is closed", todo="open it again")
            self._waiting.put(waiting)

    def _run(self) -> None:
        ending = False
        while not ending:
            batch, ending = self._next()
            if not batch:
                continue
            try:
                results = self._commit([waiting.unit for waiting in batch])
            except BaseException as error:
                results = [Done(None, error)] * len(batch)
            self.commits += 1
            self._deliver(batch, results)

    def _next(self) -> tuple[list[Waiting], bool]:
        """Whatever waits by now, and whether that is all there will ever be."""
        batch: list[Waiting] = []
        item = self._waiting.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= MOST_UNITS:
                return batch, False
            try:
                item = self._waiting.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _deliver(self, batch: list[Waiting], results: list[Done]) -> None:
        """One wake-up per event loop and commit, in the order of the units."""
        by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Callable[[Done], None], Done]]] = {}
        for waiting, done in zip(batch, results, strict=True):
            by_loop.setdefault(waiting.loop, []).append((waiting.tell, done))
        for loop, answers in by_loop.items():
            if loop is None:
                _tell_all(answers)
            else:
                with suppress(RuntimeError):  # a loop that has ended has nobody who waits
                    loop.call_soon_threadsafe(_tell_all, answers)


def _tell_all(answers: list[tuple[Callable[[Done], None], Done]]) -> None:
    """A listener that fails must not keep the others from their answers."""
    for tell, done in answers:
        try:
            tell(done)
        except Exception:
            from logging import getLogger  # only this needs it, and importing it takes milliseconds

            getLogger("paceline.store").exception("what follows a commit failed")
