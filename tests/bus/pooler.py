"""A pooler before Postgres, as small as it can be: it makes up numbers of sessions, and may lend them to many."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg
from psycopg.conninfo import make_conninfo

_KEY, _NOTIFICATION, _READY = b"K", b"A", b"Z"
_MADE_UP = struct.pack("!i", 1)
_GONE = (ConnectionError, asyncio.IncompleteReadError)


class Pooler:
    """Passes everything on between programs and a server, and knows when nothing is asked."""

    def __init__(self, url: str, lends: bool) -> None:
        self.lends = lends
        """As in transaction pooling: what the server says while nothing is asked belongs to nobody and is dropped."""
        self.answers = asyncio.Event()
        """While it is not set, no answer comes through."""
        self.answers.set()
        self.asked = 0
        with psycopg.connect(url) as session:
            self._host, self._port = session.info.host, session.info.port
        self._lines: list[asyncio.StreamWriter] = []
        self._served: set[asyncio.Task[None]] = set()

    async def serve(self, program: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """One program with a session of its own."""
        if self._host.startswith("/"):
            server, questions = await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        else:
            server, questions = await asyncio.open_connection(self._host, self._port)
        self._lines += (questions, answers)
        asking = asyncio.Event()
        passing = asyncio.gather(
            self._pass_questions(program, questions, asking), self._pass_answers(server, answers, asking)
        )
        with suppress(*_GONE):
            await passing

    def begin(self, program: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """Somebody connects."""
        task = asyncio.get_running_loop().create_task(self.serve(program, answers))
        self._served.add(task)

    async def end(self) -> None:
        """Nobody is served any more."""
        self.answers.set()
        for line in self._lines:
            line.close()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _pass_questions(
        self, program: asyncio.StreamReader, questions: asyncio.StreamWriter, asking: asyncio.Event
    ) -> None:
        while data := await program.read(65_536):
            asking.set()
            self.asked += 1
            questions.write(data)
        questions.close()

    async def _pass_answers(
        self, server: asyncio.StreamReader, answers: asyncio.StreamWriter, asking: asyncio.Event
    ) -> None:
        try:
            while True:
                kind, length = struct.unpack("!ci", await server.readexactly(5))
                body = await server.readexactly(length - 4)
                if kind == _NOTIFICATION and self.lends and not asking.is_set():
                    continue
                if kind == _READY:
                    asking.clear()
                await self.answers.wait()
                answers.write(kind + struct.pack("!i", length) + (_MADE_UP + body[4:] if kind == _KEY else body))
        finally:
            answers.close()


@asynccontextmanager
async def pooled(url: str, *, lends: bool) -> AsyncIterator[tuple[Pooler, str]]:
    """A pooler before the server of that URL, and what a program says to connect to it."""
    pooler = Pooler(url, lends)
    server = await asyncio.start_server(pooler.begin, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield pooler, make_conninfo(url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
    finally:
        server.close()
        await pooler.end()
