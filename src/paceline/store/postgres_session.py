"""One session with a Postgres server, as a pipeline, and statements as its protocol wants them.

A journey to the server costs more than most statements. So what needs no answer is sent and not waited for, and an
error of it is raised by the next statement that is, at the latest by the commit.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

import psycopg
from psycopg import pq
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumperUnknown

from paceline.store.driver import Bindings, Row, Value
from paceline.store.postgres_place import Place

APPLICATION = "paceline"
MOST_PREPARED = 500
MOST_BEHIND = 10_000
_KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip

_BINDING = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_LISTS = re.compile(r"select \* from rows from \(.*\) as v", re.DOTALL)


class Session:
    """Lives until it is closed or lost; a lost one is never mended.

    `soiled`: a statement has failed. What was sent behind it was passed over, its preparation perhaps too, so that
    nobody knows any more which statements are prepared: such a session ends with its transaction.
    """

    def __init__(self, place: Place) -> None:
        self._db: psycopg.Connection[Row] = psycopg.connect(
            place.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor, application_name=APPLICATION,
            client_encoding="utf8", **_KEEPALIVE,
        )  # fmt: skip
        self._db.prepare_threshold = 1 if place.prepare else None
        self._db.prepared_max = MOST_PREPARED
        self._db.adapters.register_dumper(int, _Whole)
        self._db.adapters.register_dumper(str, StrDumperUnknown)
        self._until_closed = ExitStack()
        self._pipeline = self._until_closed.enter_context(self._db.pipeline())
        self._asking, self._telling = self._db.cursor(), self._db.cursor()
        self.soiled = False

    @property
    def lost(self) -> bool:
        """Nothing can be said any more."""
        return bool(self._db.closed)

    @property
    def server(self) -> int:
        """The server's version, as 180001 for 18.1."""
        return self._db.info.server_version

    @property
    def in_transaction(self) -> bool:
        """What was begun is neither committed nor undone."""
        open_states = (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)
        return not self.lost and self._db.info.transaction_status in open_states

    @property
    def backend(self) -> int:
        """The process at the other end, as it was named when the session began."""
        return self._db.info.backend_pid

    def rows(self, sql: str, values: Sequence[Value] | None = None) -> list[Row]:
        """All rows of one statement."""
        try:
            self._asking.execute(sql, values)
            self._pipeline.sync()
            return self._asking.fetchall()
        except psycopg.Error as error:
            self._spoil(error)
            raise

    def count(self, sql: str, values: Sequence[Value] | None = None) -> int:
        """How many rows a statement changed."""
        try:
            self._asking.execute(sql, values)
        except psycopg.Error as error:
            self._spoil(error)
            raise
        self.wait()
        return self._asking.rowcount

    def send(self, sql: str, values: Sequence[Value] | None = None, prepare: bool | None = None) -> None:
        """A statement whose answer nobody waits for.

        Until something is waited for, the server does not see that the transaction is idle, and no timeout runs.
        """
        try:
            self._telling.execute(sql, values, prepare=prepare)
        except psycopg.Error as error:
            self._spoil(error)
            raise

    def control(self, sql: str) -> None:
        """Begins or ends something: never prepared, so that it works whatever went wrong before."""
        self.send(sql, prepare=False)

    def wait(self) -> str | None:
        """Everything that was sent has been carried out, or the first error of it is raised; answers the last word."""
        try:
            self._pipeline.sync()
        except psycopg.Error as error:
            self._spoil(error)
            raise
        return self._telling.statusmessage

    def settle(self) -> None:
        """After an error the server passes over what was sent behind it, up to here; each of these is an error too."""
        for _ in range(MOST_BEHIND):
            with suppress(psycopg.Error):
                self.wait()
                return
            if self.lost:
                return

    def _spoil(self, error: psycopg.Error) -> None:
        self.soiled = True
        # What has no SQLSTATE never came from the server: whatever libpq believes, this session is over.
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            if not isinstance(error, psycopg.errors.PipelineAborted):
                self.close()

    def close(self) -> None:
        """Ends it without waiting for anything that may still be under way."""
        with suppress(psycopg.Error):
            self._db.close()
        with suppress(psycopg.Error):
            self._until_closed.close()


class _Whole(Int8Dumper):
    """A number whose type the statement says: one plan serves it and an absent one."""

    oid = 0


@cache
def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1, $2 …` for its `:names`, and the names in that order."""
    names = tuple(dict.fromkeys(_BINDING.findall(sql)))
    return _BINDING.sub(lambda found: f"${names.index(found[1]) + 1}", sql), names


@cache
def for_one_row(sql: str, columns: int) -> str:
    """An insert of lists as the insert of a single row."""
    row = ", ".join(f"${place}" for place in range(1, columns + 1))
    return _LISTS.sub(lambda _: f"values ({row})", sql)


def bound(sql: str, bindings: Bindings) -> tuple[str, list[Value]]:
    """A statement with its values in the order of their numbers."""
    text, names = numbered(sql)
    values = [bindings[name] for name in names] if isinstance(bindings, Mapping) else bindings
    return text, [_without_nul(value) for value in values]


def _without_nul(value: Value) -> Value:
    """Postgres keeps every character but this one."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
