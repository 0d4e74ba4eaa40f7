"""One session with a Postgres server, on which the event loop listens and speaks without ever waiting."""

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

NOTIFY = b"select pg_notify($1, $2)"
PROOF_S = 2.0
"""How long a notification may take before it counts as swallowed."""

# The end of a session that has gone silent is noticed within half a minute.
PARAMETERS: dict[str, Any] = {
    "application_name": "paceline hints", "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
_CONNECT_TIMEOUT_S = 10
_BAD = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)

Session = psycopg.AsyncConnection[Any]
Answer = asyncio.Future[bytes]


class Line:
    """What others notify on one channel is heard, and one thing at a time is asked."""

    def __init__(self, session: Session, channel: str, hear: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self.hears = False
        """Others can be heard; where a pooler is in the way the line is good for speaking alone."""
        self.lost: asyncio.Future[str] = self._loop.create_future()
        """Why the session has ended, once it has."""
        self._session = session
        self._server = session.pgconn
        self._channel = channel.encode()
        self._hear = hear
        self._own_pid = 0
        self._answer: Answer | None = None
        self._value = b""
        self._proof = b""
        self._proven: asyncio.Future[None] = self._loop.create_future()
        self._last_words = ""
        session.add_notice_handler(self._note)
        self._writing = False
        self._number = self._server.socket
        self._loop.add_reader(self._number, self._read)

    @property
    def free(self) -> bool:
        """The session lives, and no answer is due."""
        return self._answer is None and not self.lost.done()

    def ask(self, query: bytes, *values: bytes) -> Answer:
        """The first value of what one statement answers; when the server refuses it, the session ends."""
        self._answer = answer = self._loop.create_future()
        try:
            self._server.send_query_params(query, values)
            self._flush()
        except psycopg.Error as error:
            self.close(said(error))
        return answer

    def notify(self, payload: bytes) -> Answer:
        """Tells everybody else who listens to the channel."""
        return self.ask(NOTIFY, self._channel, payload)

    async def listen(self, conninfo: str) -> None:
        """From now on the channel is heard, unless a pooler keeps what is told there to itself."""
        self._own_pid = int(await self.ask(b"select pg_backend_pid()"))
        # A pooler shows its clients a number that it made up. If it lends one session to many clients, it also says
        # yes to LISTEN, and what is notified afterwards reaches nobody.
        if self._own_pid == self._server.backend_pid or await self._proves_to_hear(conninfo):
            await self.ask(b"listen " + _quoted(self._channel))
            self.hears = True

    def close(self, reason: str = "closed") -> None:
        """Ends the session; closing twice is fine, and so is closing after the event loop."""
        if self.lost.done():
            return
        with suppress(RuntimeError):
            self._loop.remove_reader(self._number)
            self._loop.remove_writer(self._number)
        self._server.finish()
        with suppress(RuntimeError):
            self.lost.set_result(reason)
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(psycopg.OperationalError(reason))
                self._answer.exception()  # whoever asked may be gone, and asyncio complains of what nobody looks at

    def abandon(self) -> None:
        """In a forked child: ends its copy of the session, and the server hears nothing of it."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self._number)
        os.close(nothing)
        self._server.finish()

    async def _proves_to_hear(self, conninfo: str) -> bool:
        """Whether a word on a channel of its own, told by another session, comes through while nothing is asked."""
        self._proof = f"paceline_{secrets.token_hex(8)}".encode()
        await self.ask(b"listen " + _quoted(self._proof))
        other = await dial(conninfo, "", lambda _: None)
        try:
            await other.ask(NOTIFY, self._proof, b"")
            await asyncio.wait((self._proven, self.lost), timeout=PROOF_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            other.close()
        await self.ask(b"unlisten " + _quoted(self._proof))
        return self._proven.done()

    def _read(self) -> None:
        try:
            self._server.consume_input()
            self._take_answer()
            while (told := self._server.notifies()) is not None:
                if told.relname == self._proof and not self._proven.done():
                    self._proven.set_result(None)
                elif told.relname == self._channel and told.be_pid != self._own_pid:
                    self._hear(told.extra)
        except psycopg.Error as error:
            self.close(self._last_words or said(error))

    def _take_answer(self) -> None:
        """An answer is complete when the server adds nothing to it."""
        while self._answer is not None and not self._server.is_busy():
            result = self._server.get_result()
            if result is None:
                answer, self._answer = self._answer, None
                if not answer.done():
                    answer.set_result(self._value)
            elif result.status in _BAD:
                raise psycopg.OperationalError(result.get_error_message())
            else:
                self._value = (result.get_value(0, 0) if result.ntuples else None) or b""

    def _flush(self) -> None:
        """What the network does not take at once goes when it does."""
        try:
            unsent = bool(self._server.flush())
        except psycopg.Error as error:
            self.close(said(error))
            return
        if unsent and not self._writing:
            self._loop.add_writer(self._number, self._flush)
        elif self._writing and not unsent:
            self._loop.remove_writer(self._number)
        self._writing = unsent

    def _note(self, note: psycopg.errors.Diagnostic) -> None:
        """The server says why it ends a session before it does."""
        if note.severity_nonlocalized in ("FATAL", "PANIC"):
            self._last_words = note.message_primary or ""


async def dial(conninfo: str, channel: str, hear: Callable[[bytes], None]) -> Line:
    """A line to the server, which does not listen yet."""
    session = await psycopg.AsyncConnection.connect(
        conninfo, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S, **PARAMETERS
    )
    return Line(session, channel, hear)


def said(error: BaseException) -> str:
    """The words of an error in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _quoted(channel: bytes) -> bytes:
    return b'"' + channel.replace(b'"', b'""') + b'"'
