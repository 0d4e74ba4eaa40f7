"""Hints inside one process, by direct call: what every notifier does, however far it reaches beyond."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from paceline.bus.protocol import Callback, Hint, Reach, merged

MOST_IDS_HELD = 10_000
MOST_HINTS_HELD = 1_000


class Pile:
    """Hints told from any thread, until somebody comes for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hints: list[Hint] = []
        self._awaited = False

    def __len__(self) -> int:
        return len(self._hints)

    def add(self, hints: Sequence[Hint]) -> bool:
        """True when nobody has been asked to come for them yet."""
        with self._lock:
            self._hints.extend(hints)
            if len(self._hints) > MOST_HINTS_HELD:
                self._hints = list(merged(self._hints, MOST_IDS_HELD))
            awaited, self._awaited = self._awaited, True
        return not awaited

    def take(self) -> tuple[Hint, ...]:
        """Everything that lies here, one hint per topic."""
        with self._lock:
            hints, self._hints = self._hints, []
            self._awaited = False
        return merged(hints, MOST_IDS_HELD)


class ProcessNotifier:
    """Tells this process, and leaves it to others how the rest of the world is told."""

    def __init__(self) -> None:
        self.reach: Reach = "process"
        self.reason = "not started"
        self.ignored = 0
        """Messages that were not hints, or not from anybody to be believed."""
        self._callbacks: dict[object, Callback] = {}
        self._pid = 0
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._held = Pile()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def start(self) -> None:
        """Begins to listen on the running event loop; `reach` and `reason` then say how far hints go."""
        loop = asyncio.get_running_loop()
        if self._pid == os.getpid() and self._loop is loop:
            return
        if self._pid not in (0, os.getpid()):
            self._leave_to_parent()
            self._callbacks = {}
        self.stop()
        self._forget_everything()
        self._loop, self._thread, self._pid = loop, threading.get_ident(), os.getpid()
        self._join(loop)

    def stop(self) -> None:
        """Ends it, on the loop's thread; in a forked child there is nothing to end."""
        if self._pid != os.getpid():
            return
        self._leave()
        self._pid = 0
        self._forget_everything()
        self.reach, self.reason = "process", "stopped"

    async def settled(self) -> None:
        """Returns when `reach` and `reason` say what came of the start."""

    def tell(self, hints: Sequence[Hint]) -> None:
        """Tells this process and all others that can be reached."""
        if hints and self._callbacks and self._pid == os.getpid():
            self._hold(hints)
        self.tell_others(hints)

    def tell_others(self, hints: Sequence[Hint]) -> None:
        """Tells the others alone: whoever listens here knows already."""
        if hints and self._pid == os.getpid():
            self._pass_on(hints)

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Everything told between two turns of the loop arrives as one call."""
        token = object()
        self._callbacks[token] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(token, None)

        return unsubscribe

    def _join(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins to reach beyond this process."""

    def _leave(self) -> None:
        """Ends what `_join` has begun."""

    def _leave_to_parent(self) -> None:
        """In a forked child: gives away what is the parent's, without the parent noticing."""

    def _pass_on(self, hints: Sequence[Hint]) -> None:
        """Tells those beyond this process, from any thread."""

    def _hold(self, hints: Sequence[Hint]) -> None:
        if self._held.add(hints):
            self._soon(self._deliver)

    def _soon(self, action: Callable[[], None]) -> None:
        loop = self._loop
        if loop is None:
            return
        with suppress(RuntimeError):  # a loop that was closed without a stop
            if threading.get_ident() == self._thread:
                loop.call_soon(action)
            else:
                loop.call_soon_threadsafe(action)

    def _deliver(self) -> None:
        hints = self._held.take()
        if not hints or self._loop is None:
            return
        for token, callback in list(self._callbacks.items()):
            if token not in self._callbacks:
                continue
            try:
                callback(hints)
            except Exception as error:
                self._loop.call_exception_handler({"message": "a listener to hints failed", "exception": error})
