"""Hints between hosts, by notifications of the Postgres server that they share."""

import asyncio
import random
import select
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import get_args

import psycopg
from psycopg.pq import ExecStatus

from paceline.bus.line import NOTIFY, PARAMETERS, Line, dial, said
from paceline.bus.packing import NOTIFICATIONS
from paceline.bus.process import Pile, ProcessNotifier
from paceline.bus.protocol import Hint, Topic

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
START_S = 20.0
"""How long it may take to connect and begin to listen."""
DEAF_S = 60.0
"""How long a pooler that swallows notifications is believed to go on doing so."""
TELL_ONCE_S = 2

DEAF = "a pooler before the database swallows notifications; hints need session pooling or a URL past the pooler"
ANYTHING = tuple(Hint(topic) for topic in get_args(Topic))
"""What is told to those who may have missed something."""


class PostgresNotifier(ProcessNotifier):
    """Reaches every process on every host that listens to the same channel of the same database."""

    def __init__(self, conninfo: str, channel: str, chance: Callable[[], float] = random.random) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._chance = chance
        super().__init__()

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self._unsaid = Pile()
        self._line: Line | None = None
        self._life: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()

    async def settled(self) -> None:
        """Returns when the first attempt to listen has gone well or badly."""
        if self._life is not None:
            await self._settled.wait()

    def _join(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reason = "still connecting"
        self._life = loop.create_task(self._keep_listening())

    def _leave(self) -> None:
        """What was told in this turn of the loop is still said; nobody waits for an answer."""
        self._say()
        if self._line is not None:
            self._line.close()
        if self._life is not None and self._loop is not None and not self._loop.is_closed():
            self._life.cancel()
        self._settled.set()

    def _leave_to_parent(self) -> None:
        if self._line is not None:
            self._line.abandon()

    def _pass_on(self, hints: Sequence[Hint]) -> None:
        if self._unsaid.add(hints):
            self._soon(self._say)

    async def _keep_listening(self) -> None:
        """One session after the other, with pauses that grow while none lasts."""
        loop, settled = asyncio.get_running_loop(), self._settled
        pause = FIRST_PAUSE_S
        while True:
            began = loop.time()
            self.reason = await self._listen_until_lost()
            settled.set()
            if loop.time() - began > LONGEST_PAUSE_S:
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause * (0.5 + self._chance()))
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _listen_until_lost(self) -> str:
        """Lives through one session; answers why there is none any more."""
        try:
            async with asyncio.timeout(START_S):
                line = await self._connect()
        except Exception as error:  # of the resolver, of libpq, of the server
            return f"cannot listen: {said(error)}"
        self._line = line
        self._begin(line)
        try:
            async with asyncio.timeout(None if line.hears else DEAF_S):
                return f"the connection was lost: {await asyncio.shield(line.lost)}"
        except TimeoutError:
            return DEAF
        finally:
            line.close()
            if self._line is line:
                self._line = None
                self.reach, self.reason = "process", "its event loop has ended"

    async def _connect(self) -> Line:
        line = await dial(self._conninfo, self._channel, self._hear)
        try:
            await line.listen(self._conninfo)
        except BaseException:
            line.close()
            raise
        return line

    def _begin(self, line: Line) -> None:
        """Whatever was told while nobody listened may have been missed; what was not said yet is said."""
        if line.hears:
            self.reach, self.reason = "hosts", ""
            self._hold(ANYTHING)
        else:
            self.reason = DEAF
        self._settled.set()
        self._say()

    def _hear(self, payload: bytes) -> None:
        hints = NOTIFICATIONS.unpack(payload)
        if hints is None:
            self.ignored += 1
        elif hints:
            self._hold(hints)

    def _say(self) -> None:
        """All that is unsaid, in one notification: at the commit of each the server lets nobody else notify."""
        line = self._line
        if line is None or not line.free:
            return
        hints = self._unsaid.take()
        if hints:
            line.notify(NOTIFICATIONS.pack(hints)).add_done_callback(self._said)

    def _said(self, answer: "asyncio.Future[bytes]") -> None:
        """While an answer was due, more may have been told; without an answer the session is over."""
        if not answer.cancelled() and answer.exception() is None:
            self._say()


def tell_once(conninfo: str, channel: str, hints: Sequence[Hint]) -> bool:
    """For a program without an event loop: tells everybody who listens; False when the server has not confirmed it."""
    if not hints:
        return False
    try:
        with closing(psycopg.connect(conninfo, autocommit=True, connect_timeout=TELL_ONCE_S, **PARAMETERS)) as session:
            server = session.pgconn
            server.send_query_params(NOTIFY, (channel.encode(), NOTIFICATIONS.pack(hints)))
            server.flush()
            select.select((server.socket,), (), (), TELL_ONCE_S)
            server.consume_input()
            answer = None if server.is_busy() else server.get_result()
            return answer is not None and answer.status == ExecStatus.TUPLES_OK
    except Exception:  # a hint is never worth an error
        return False
