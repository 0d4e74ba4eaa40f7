"""A session with Postgres may end at any statement, its commit above all: every unit is carried out once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from paceline.core.lifecycle import State
from paceline.store import postgres
from paceline.store.postgres_session import Session
from paceline.store.protocol import Tx
from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from paceline.units.submit import submit
from store.acts import completes
from store.stores import DATABASES, POSTGRES_DATABASES, Database, postgres_of
from store.world import World, newest_job, room_for_all

POSTGRES = DATABASES["postgres"]
PATIENCE = 30
NOTICED = pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])


@pytest.fixture
def database() -> Database:
    """The one that has sessions to lose."""
    return POSTGRES


def end_session(store: Store, url: str) -> None:
    """The server ends the session that the store writes with, and has done so when this returns."""
    session = postgres_of(store)._session
    assert session is not None
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s, 10000)", [session._db.info.backend_pid])


class Deaf:
    """A cursor that loses its connection when the server has committed, before the answer; libpq may not know of it."""

    def __init__(self, session: Session, noticed: bool) -> None:
        self._session, self._cursor, self._noticed = session, session._telling, noticed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, values: Any = None, *, prepare: bool | None = None) -> None:
        self._cursor.execute(sql, values, prepare=prepare)
        if sql == "commit":
            self._session._pipeline.sync()
            if self._noticed:
                self._session._db.close()
            raise psycopg.OperationalError("connection socket closed")


def lose_the_answer(store: Store, noticed: bool) -> None:
    """The server carries the next commit out, and its answer never comes."""
    session = postgres_of(store)._session
    assert session is not None
    session._telling = Deaf(session, noticed)  # type: ignore[assignment]


def statements_of(world: World, unit: Callable[[Tx], Any]) -> int:
    """How many a unit takes, its begin and its commit among them."""
    seen: list[None] = []
    POSTGRES.watch(world.store, lambda: seen.append(None))
    world.do(unit)
    POSTGRES.watch(world.store, None)
    return len(seen)


def ended_before(world: World, statement: int, url: str) -> None:
    """The session ends right before a statement of the next unit."""
    count = 0

    def watch() -> None:
        nonlocal count
        count += 1
        if count == statement:
            POSTGRES.watch(world.store, None)
            end_session(world.store, url)

    POSTGRES.watch(world.store, watch)


def one_job(world: World) -> Callable[[Tx], list[int]]:
    return lambda tx: submit(tx, [world.wish()], room_for_all)


def test_a_session_that_ends_before_any_statement_leaves_a_submission_made_once(world: World, tmp_path: Path) -> None:
    url = POSTGRES_DATABASES.url(tmp_path)
    for statement in range(1, statements_of(world, one_job(world)) + 1):
        before = jobs_of(world)
        ended_before(world, statement, url)
        (job,) = world.do(one_job(world))
        assert jobs_of(world) == [*before, job]
        assert world.words(job) == ["queued"]


def jobs_of(world: World) -> list[int]:
    return world.do(lambda tx: sorted(tx.listing.find("newest", 100)))


def test_a_session_that_ends_before_any_statement_leaves_an_outcome_written_once(world: World, tmp_path: Path) -> None:
    url = POSTGRES_DATABASES.url(tmp_path)
    for statement in range(1, statements_of(world, completes(world, world.running())) + 1):
        job = world.running()
        behind = world.job(after=[job.id])
        ended_before(world, statement, url)
        assert world.do(completes(world, job)).ended == [(job.id, State.COMPLETED)]
        assert (world.words(job.id)[-1], world.words(behind)) == ("completed", ["blocked", "unblocked"])


@NOTICED
def test_a_commit_whose_answer_is_lost_is_not_carried_out_again(world: World, noticed: bool) -> None:
    before = jobs_of(world)
    lose_the_answer(world.store, noticed)
    (job,) = world.do(one_job(world))
    assert jobs_of(world) == [*before, job]


def in_transaction(other: psycopg.Connection[Any], pid: int) -> bool:
    """That session has written something and has not committed yet."""
    found = other.execute("select backend_xid is not null from pg_stat_activity where pid = %s", [pid]).fetchone()
    return found == (True,)


class Ended(Session):
    """Its server ends it when the commit has happened and the client has not yet asked how it went."""

    url = ""

    def control(self, sql: str) -> None:
        super().control(sql)
        if sql == "commit":
            pid = self._db.info.backend_pid
            with psycopg.connect(self.url, autocommit=True) as other:
                while in_transaction(other, pid):
                    pass
                other.execute("select pg_terminate_backend(%s, 10000)", [pid])


def test_a_session_that_the_server_ends_right_behind_the_commit_has_committed(world: World, tmp_path: Path) -> None:
    before = jobs_of(world)
    session = postgres_of(world.store)._session
    assert session is not None
    Ended.url = POSTGRES_DATABASES.url(tmp_path)
    session.__class__ = Ended
    (job,) = world.do(one_job(world))
    assert jobs_of(world) == [*before, job]
    assert postgres_of(world.store)._session is not session


@NOTICED
def test_a_commit_without_events_whose_answer_is_lost_is_not_carried_out_again(world: World, noticed: bool) -> None:
    times: list[int] = []

    def note(tx: Tx) -> None:
        times.append(1)
        tx.listing.set_fact("noted", str(len(times)))

    lose_the_answer(world.store, noticed)
    world.do(note)
    assert (times, world.do(lambda tx: tx.listing.fact("noted"))) == ([1], "1")


@NOTICED
def test_units_that_shared_a_lost_commit_are_all_answered_with_what_they_did(world: World, noticed: bool) -> None:
    newest = world.do(newest_job)
    lose_the_answer(world.store, noticed)
    done = world.store.commit([one_job(world), one_job(world)])
    assert [one.error for one in done] == [None, None]
    assert jobs_of(world)[newest:] == [*done[0].value, *done[1].value]


def test_who_falls_silent_in_the_middle_of_a_unit_holds_up_others_for_seconds_and_begins_anew(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert postgres._SETTINGS["idle_in_transaction_session_timeout"] == "10000"
    monkeypatch.setitem(postgres._SETTINGS, "idle_in_transaction_session_timeout", "300")
    with closing(POSTGRES.open(tmp_path, clock)) as store, closing(POSTGRES.open(tmp_path, clock)) as another:
        one, other = World(store, clock), World(another, clock)
        limited = one.do(lambda tx: tx.lanes.register("limited", "tests", "d", 1))
        inside, go_on = Event(), Event()
        tries: list[bool] = []

        def silent(tx: Tx) -> list[int]:
            tries.append(tx.again)
            tx.guards.limits([limited])
            inside.set()
            assert go_on.wait(PATIENCE)
            return one_job(one)(tx)

        with ThreadPoolExecutor(1) as thread:
            unit = thread.submit(one.do, silent)
            assert inside.wait(PATIENCE)
            other.do(lambda tx: tx.guards.limits([limited]))
            go_on.set()
            (job,) = unit.result(PATIENCE)
        assert (tries, jobs_of(one)) == ([False, True], [job])


def test_a_question_whose_session_the_server_ends_is_asked_again(world: World, tmp_path: Path) -> None:
    job = world.job()
    tries: list[int] = []

    def ask(tx: Tx) -> State:
        tries.append(1)
        if len(tries) == 1:
            reader = world.store._reader
            assert reader is not None
            pid = postgres_session(reader[0])._db.info.backend_pid
            with psycopg.connect(POSTGRES_DATABASES.url(tmp_path), autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s, 10000)", [pid])
        return tx.jobs.rows([job])[0].state

    assert (world.store.look(ask), len(tries)) == (State.QUEUED, 2)


def postgres_session(connection: Any) -> Session:
    session = connection._session
    assert isinstance(session, Session)
    return session
