"""Hints inside one process by direct call, and between the processes of one host by datagrams."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from paceline.bus.datagrams import SUPPORTED, Mailbox, Neighbours, why_unsafe
from paceline.bus.protocol import Callback, Hint, Reach, merged

MOST_IDS_HELD = 10_000
_MOST_HINTS_HELD = 1_000
_FIRST_PAYMENT_S = 0.005
_LAST_PAYMENT_S = 1.0


class LocalNotifier:
    """Reaches every process of this host that listens in the same folder; without a folder, this process alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self.reach: Reach = "process"
        self.reason = "not started"
        self.ignored = 0
        """Datagrams that were not hints, or not from this user."""
        self._folder = folder
        self._callbacks: dict[object, Callback] = {}
        self._lock = threading.Lock()
        self._pid = 0
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._held: list[Hint] = []
        self._delivery_planned = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._mailbox: Mailbox | None = None
        self._neighbours: Neighbours | None = None
        self._payment: asyncio.TimerHandle | None = None
        self._payment_delay = _FIRST_PAYMENT_S

    def start(self) -> None:
        """Begins to listen on the running event loop; `reach` and `reason` then say how far hints go."""
        loop = asyncio.get_running_loop()
        if self._pid == os.getpid() and self._loop is loop:
            return
        if self._pid not in (0, os.getpid()):
            self._leave_to_parent()
        self.stop()
        self._forget_everything()
        self._loop, self._thread, self._pid = loop, threading.get_ident(), os.getpid()
        self.reason = self._join_host(loop)
        self.reach = "process" if self.reason else "host"

    def stop(self) -> None:
        """Ends it, on the loop's thread; in a forked child there is nothing to end."""
        if self._pid != os.getpid():
            return
        self._pid = 0
        if self._payment is not None:
            self._payment.cancel()
        if self._mailbox is not None and self._loop is not None:
            self._loop.remove_reader(self._mailbox.socket)
            self._mailbox.withdraw()
            self._mailbox.socket.close()
        self._forget_everything()
        self.reach, self.reason = "process", "stopped"

    def tell(self, hints: Sequence[Hint]) -> None:
        """Tells this process and its neighbours; each neighbour costs one system call."""
        if hints and self._callbacks and self._pid == os.getpid():
            self._hold(hints)
        self.tell_others(hints)

    def tell_others(self, hints: Sequence[Hint]) -> None:
        """Tells the neighbours alone: whoever listens here knows already."""
        if not hints or self._pid != os.getpid():
            return
        neighbours = self._neighbours
        if neighbours is not None and neighbours.send(hints):
            self._soon(self._plan_payment)

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Everything told between two turns of the loop arrives as one call."""
        token = object()
        self._callbacks[token] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(token, None)

        return unsubscribe

    def _join_host(self, loop: asyncio.AbstractEventLoop) -> str:
        """Binds this process's socket; answers why it could not, or nothing."""
        folder = self._folder
        if folder is None:
            return "no folder was given"
        if not SUPPORTED:
            return "this platform has no Unix sockets"
        with suppress(OSError, ValueError):
            os.mkdir(folder, 0o700)
        if problem := why_unsafe(folder):
            return problem
        try:
            self._mailbox = Mailbox(folder)
        except OSError as error:
            return f"cannot listen in {folder}: {error}"
        self._neighbours = Neighbours(folder, self._mailbox.socket, self._mailbox.name)
        loop.add_reader(self._mailbox.socket, self._receive)
        return ""

    def _leave_to_parent(self) -> None:
        """In a forked child: closes the copy of the socket; its name and the event loop are the parent's."""
        if self._mailbox is not None:
            self._mailbox.socket.close()
        self._lock = threading.Lock()
        self._callbacks = {}

    def _hold(self, hints: Iterable[Hint]) -> None:
        with self._lock:
            self._held.extend(hints)
            if len(self._held) > _MOST_HINTS_HELD:
                self._held = list(merged(self._held, MOST_IDS_HELD))
            planned, self._delivery_planned = self._delivery_planned, True
        if not planned:
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
        with self._lock:
            held, self._held = self._held, []
            self._delivery_planned = False
        hints = merged(held, MOST_IDS_HELD)
        if not hints or self._loop is None:
            return
        for token, callback in list(self._callbacks.items()):
            if token not in self._callbacks:
                continue
            try:
                callback(hints)
            except Exception as error:
                self._loop.call_exception_handler({"message": "a listener to hints failed", "exception": error})

    def _receive(self) -> None:
        if self._mailbox is None:
            return
        hints, ignored = self._mailbox.read()
        self.ignored += ignored
        if hints:
            self._hold(hints)

    def _plan_payment(self) -> None:
        self._payment_delay = _FIRST_PAYMENT_S
        self._pay_later()

    def _pay_later(self) -> None:
        if self._payment is not None:
            self._payment.cancel()
        if self._loop is not None:
            self._payment = self._loop.call_later(self._payment_delay, self._pay)

    def _pay(self) -> None:
        if self._neighbours is not None and self._neighbours.pay():
            self._payment_delay = min(2 * self._payment_delay, _LAST_PAYMENT_S)
            self._pay_later()
