"""Where the rig keeps its jobs, and what can happen to that place: a file, or a server that is restarted."""

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg

from _measure import url as url_of
from _postgres import DURABLE, OWN, databases
from paceline.clock import DatabaseClock, SystemClock, measure_offset
from paceline.store.dialect import POSTGRES, SQLITE, Dialect
from paceline.store.doors import postgres_store, sqlite_store
from paceline.store.driver import Driver
from paceline.store.maintenance import broken_laws
from paceline.store.postgres_place import place_of
from paceline.store.statements import Statements
from postgres_server import PrivateServer, Stop, database_on

LONGEST_AWAY = 1.5
LOOKS_FOR_A_COMMIT = 300
"""So often a termination looks for a session in the middle of its commit, before it takes any."""

_AT_COMMIT = """
select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paceline'
   and datname = current_database() and state = 'active' and query ilike 'commit%' limit 1
"""
_ANYBODY = """
select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'paceline'
   and datname = current_database() order by state = 'idle', random() limit 1
"""


class Ground:
    """A SQLite file, which nothing but the rig's processes can trouble."""

    dialect: Dialect = SQLITE

    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def evidence(self) -> Iterator[tuple[Driver, int]]:
        """What asks the database about everything at one moment, and its time minus time since boot."""
        clock = SystemClock(measure_offset())
        with closing(sqlite_store(Path(self.url.removeprefix("sqlite:///")), clock)) as store:
            store._connection.begin(clock)
            (row,) = store._connection.rows("select value from meta where name = 'clock'")
            yield store._connection, int(str(row[0]).split()[-1])

    def damage(self, driver: Driver) -> list[str]:
        """What is wrong inside the database, or between its tables."""
        said = [str(row[0]) for row in driver.rows("pragma integrity_check")]
        return [line for line in said if line != "ok"] + self._broken(driver)

    def _broken(self, driver: Driver) -> list[str]:
        found = broken_laws(driver, Statements(self.dialect), measure_offset() + 2**62)
        return [f"{law.code}: {law.what} ({law.count})" for law in found if law.broken]


class PostgresGround(Ground):
    """A database on a server; one that the rig has started may be restarted, and every session may be ended."""

    dialect = POSTGRES

    def __init__(self, url: str, server: PrivateServer | None, carry: Executor | None) -> None:
        super().__init__(url)
        self._server = server
        self._carry = carry
        self._unsound: list[str] = []

    @contextmanager
    def evidence(self) -> Iterator[tuple[Driver, int]]:
        """The same; the clock is the server's own."""
        clock = DatabaseClock(measure_offset())
        self._make_indexes_anew()
        with closing(postgres_store(place_of(self.url), clock)) as store:
            store._connection.begin(clock)
            yield store._connection, clock.offset_us

    def damage(self, driver: Driver) -> list[str]:
        """The same, as far as a server can be asked."""
        return [*self._unsound, *self._broken(driver)]

    def _make_indexes_anew(self) -> None:
        """This finds rows that must be one; and every page that is read proves its checksum."""
        try:
            with psycopg.connect(self.url, autocommit=True) as db:
                db.execute("reindex schema paceline")
        except psycopg.Error as error:
            self._unsound.append(str(error))

    async def restart(self, how: Stop, away: float) -> None:
        """The server ends, is away for a while, and comes again; `immediate` is a crash."""
        assert self._server is not None
        server, loop = self._server, asyncio.get_running_loop()
        await loop.run_in_executor(self._carry, server.stop, how)
        await asyncio.sleep(away)
        await loop.run_in_executor(self._carry, server.start)

    async def terminate(self) -> str:
        """Ends one session, if one can be met in the middle of its commit then that one; says which it was."""
        return await asyncio.to_thread(self._terminate)

    def _terminate(self) -> str:
        with suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as db:
            for _ in range(LOOKS_FOR_A_COMMIT):
                if db.execute(_AT_COMMIT).fetchall():
                    return "at_commit"
            if db.execute(_ANYBODY).fetchall():
                return "anywhere"
        return "nowhere"


def away(chance: random.Random) -> float:
    """How long a server stays away: often hardly at all."""
    return chance.choice((0.0, chance.uniform(0, LONGEST_AWAY)))


@contextmanager
def ground(
    store: str, where: Path, settings: dict[str, str] | None = None, carry: Executor | None = None
) -> Iterator[Ground]:
    """The place that `--store` names; `carry` starts and stops a server of our own where it is to be."""
    with ExitStack() as until:
        if store == "sqlite":
            yield Ground(url_of(where / "chaos.db"))
        elif store == OWN:
            where.chmod(0o711)  # under root the server runs as somebody else, who must come through here
            server = PrivateServer({**DURABLE, **(settings or {})}, where)
            until.enter_context(_started(server, carry))
            yield PostgresGround(until.enter_context(database_on(server.url)), server, carry)
        else:
            yield PostgresGround(until.enter_context(databases(store)).fresh(), None, None)


@contextmanager
def _started(server: PrivateServer, carry: Executor | None) -> Iterator[None]:
    if carry is None:
        with server:
            yield
    else:
        carry.submit(server.__enter__).result()
        try:
            yield
        finally:
            carry.submit(server.__exit__, None, None, None).result()
