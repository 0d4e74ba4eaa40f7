"""Hints between the processes of one host, by datagrams."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paceline.bus.datagrams import SUPPORTED, Mailbox, Neighbours, why_unsafe
from paceline.bus.process import ProcessNotifier
from paceline.bus.protocol import Hint

_FIRST_PAYMENT_S = 0.005
_LAST_PAYMENT_S = 1.0


class LocalNotifier(ProcessNotifier):
    """Reaches every process of this host that listens in the same folder; without a folder, this process alone."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        super().__init__()

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self._mailbox: Mailbox | None = None
        self._neighbours: Neighbours | None = None
        self._payment: asyncio.TimerHandle | None = None
        self._payment_delay = _FIRST_PAYMENT_S

    def _join(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reason = self._join_host(loop)
        self.reach = "process" if self.reason else "host"

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

    def _leave(self) -> None:
        if self._payment is not None:
            self._payment.cancel()
        if self._mailbox is not None and self._loop is not None:
            self._loop.remove_reader(self._mailbox.socket)
            self._mailbox.withdraw()
            self._mailbox.socket.close()

    def _leave_to_parent(self) -> None:
        """Closes the copy of the socket; its name and the event loop are the parent's."""
        if self._mailbox is not None:
            self._mailbox.socket.close()

    def _pass_on(self, hints: Sequence[Hint]) -> None:
        """Each neighbour costs one system call."""
        neighbours = self._neighbours
        if neighbours is not None and neighbours.send(hints):
            self._soon(self._plan_payment)

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
