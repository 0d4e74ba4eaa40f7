"""Hints by notifications of a real Postgres: how many, how large, what happens when the session is lost."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
import uvloop

import paceline.bus.line
import paceline.bus.postgres
from bus.hearing import PATIENCE_S, READY, in_a_loop, living, turn, until
from bus.pooler import pooled
from paceline.bus.packing import NOTIFICATIONS
from paceline.bus.postgres import ANYTHING, PostgresNotifier, tell_once
from paceline.bus.protocol import Hint
from paceline.config import Settings
from paceline.health.users import _hints
from paceline.health.verdicts import Grade
from paceline.opening import open_store

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


class Witness:
    """A session of its own that takes down every notification of a channel."""

    def __init__(self, session: psycopg.Connection) -> None:
        self._session = session
        self._notified: list[str] = []

    def notified(self) -> list[str]:
        """Everything so far."""
        self._session.execute("select 1")
        self._notified += [told.payload for told in self._session.notifies(timeout=0)]
        return self._notified


@contextmanager
def witness(database: str, channel: str) -> Iterator[Witness]:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(f'listen "{channel}"'.encode())
        yield Witness(session)


OURS = "from pg_stat_activity where application_name = 'paceline hints' and datname = current_database()"


def sessions(database: str) -> int:
    """How many sessions of notifiers the server has."""
    with psycopg.connect(database, autocommit=True) as session:
        return len(session.execute(f"select pid {OURS}".encode()).fetchall())


def end_sessions(database: str, but: int = 0) -> None:
    """Ends the sessions of notifiers, as an administrator would."""
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(f"select pg_terminate_backend(pid) {OURS} and pid <> {but}".encode())


def test_hints_of_one_turn_travel_as_one_notification(database: str, channel: str) -> None:
    async def scene() -> None:
        with witness(database, channel) as seen:
            async with (
                living(PostgresNotifier(database, channel)) as (one, _),
                living(PostgresNotifier(database, channel)) as (_, by_other),
            ):
                for job in range(100):
                    one.tell([Hint("ended", (job,)), READY])
                await by_other.until(READY)
                assert by_other.calls == [(Hint("ended", tuple(range(100))), READY)]
                assert len(seen.notified()) == 1

    in_a_loop(scene)


def test_what_is_told_while_an_answer_is_due_travels_together_when_it_has_come(database: str, channel: str) -> None:
    async def scene() -> None:
        with witness(database, channel) as seen:
            async with (
                pooled(database, lends=False) as (pooler, conninfo),
                living(PostgresNotifier(conninfo, channel)) as (one, _),
            ):
                asked = pooler.asked
                pooler.answers.clear()
                for job in range(1, 100):
                    one.tell_others([Hint("ended", (job,))])
                    await until(lambda: pooler.asked > asked)
                pooler.answers.set()
                await until(lambda: len(seen.notified()) == 2)
            rest = NOTIFICATIONS.pack([Hint("ended", tuple(range(2, 100)))]).decode()
            assert seen.notified() == ['[["ended",[1]]]', rest]

    in_a_loop(scene)


def test_more_ids_than_a_notification_holds_become_a_hint_without_ids(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            living(PostgresNotifier(database, channel)) as (one, _),
            living(PostgresNotifier(database, channel)) as (_, by_other),
        ):
            one.tell([Hint("ended", tuple(range(501))), Hint("cancel", (1,))])
            await by_other.until(Hint("cancel", (1,)))
            one.tell([Hint("cancel", tuple(range(10**18, 10**18 + 500)))])
            await by_other.until(Hint("cancel"))
            assert by_other.hints == [Hint("ended"), Hint("cancel", (1,)), Hint("cancel")]

    in_a_loop(scene)


@pytest.mark.parametrize(("digits", "length"), [(4, 7_998), (5, 7_999), (6, 14), (7, 14)])
def test_the_longest_payload_that_is_packed_is_the_longest_that_postgres_takes(
    database: str, digits: int, length: int
) -> None:
    first = 10 ** (digits - 1)
    payload = NOTIFICATIONS.pack([Hint("ended", (first, *range(10**18, 10**18 + 399)))])
    assert len(payload) == length
    with psycopg.connect(database, autocommit=True) as session:
        session.execute("select pg_notify('any', %s)", (payload.decode(),))
        with pytest.raises(psycopg.Error, match="too long"):
            session.execute("select pg_notify('any', %s)", ("x" * 8_000,))


def test_a_loop_of_another_make_serves_as_well(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            living(PostgresNotifier(database, channel)) as (one, by_one),
            living(PostgresNotifier(database, channel)) as (_, by_other),
        ):
            one.tell([READY])
            await by_other.until(READY)
            end_sessions(database)
            await by_one.until(ANYTHING[-1])
            assert one.reach == "hosts"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scene())


def test_channels_do_not_hear_each_other_whatever_their_names(database: str, channel: str) -> None:
    async def scene() -> None:
        strange = f'{channel}"; select 1 --'
        async with (
            living(PostgresNotifier(database, strange)) as (one, _),
            living(PostgresNotifier(database, strange)) as (_, by_other),
            living(PostgresNotifier(database, channel)) as (_, by_stranger),
        ):
            one.tell([READY])
            await by_other.until(READY)
            tell_once(database, channel, [Hint("nodes")])
            await by_stranger.until(Hint("nodes"))
            assert (by_other.hints, by_stranger.hints) == ([READY], [Hint("nodes")])

    in_a_loop(scene)


GARBAGE = ["", "ready", '[["burn",[1]]]', '[["ended",["1"]]]', '[["ended",[1],2]]', "[" * 7_000, '[["ready",[]]] more']


def test_garbage_is_ignored_and_counted_and_the_next_hint_arrives(database: str, channel: str) -> None:
    async def scene() -> None:
        async with living(PostgresNotifier(database, channel)) as (notifier, heard):
            with psycopg.connect(database, autocommit=True) as stranger:
                for payload in GARBAGE:
                    stranger.execute("select pg_notify(%s, %s)", (channel, payload))
            assert await asyncio.to_thread(tell_once, database, channel, [READY])
            await heard.until(READY)
            assert (heard.hints, notifier.ignored) == ([READY], len(GARBAGE))

    in_a_loop(scene)


def test_a_lost_session_is_replaced_and_whoever_listens_is_told_to_look(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            living(PostgresNotifier(database, channel)) as (one, by_one),
            living(PostgresNotifier(database, channel)) as (other, by_other),
        ):
            for _ in range(2):
                by_one.calls.clear()
                by_other.calls.clear()
                end_sessions(database)
                await until(lambda: one.reach == "process")
                assert one.reason == "the connection was lost: terminating connection due to administrator command"
                await by_one.until(ANYTHING[0])
                await by_other.until(ANYTHING[0])
                assert by_one.calls == by_other.calls == [ANYTHING]
                assert (one.reach, one.reason) == ("hosts", "")
                other.tell([Hint("ended", (5,))])
                await by_one.until(Hint("ended", (5,)))

    in_a_loop(scene)


def test_what_is_told_while_the_session_is_away_reaches_others_when_it_is_back(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            living(PostgresNotifier(database, channel)) as (one, _),
            living(PostgresNotifier(database, channel)) as (other, by_other),
        ):
            assert other._line is not None
            end_sessions(database, but=other._line._own_pid)
            await until(lambda: one.reach == "process")
            for job in range(20_000):
                one.tell_others([Hint("ended", (job,)), Hint("cancel", (job % 7,))])
            assert len(one._unsaid) <= 1_001
            await by_other.until(Hint("cancel", (0, 1, 2, 3, 4, 5, 6)))
            assert by_other.hints == [Hint("ended"), Hint("cancel", (0, 1, 2, 3, 4, 5, 6))]

    in_a_loop(scene)


def test_a_server_that_refuses_a_notification_is_left_and_asked_again(database: str, channel: str) -> None:
    async def scene() -> None:
        async with living(PostgresNotifier(database, channel)) as (one, by_one):
            assert one._line is not None
            one._line._channel = b""
            one.tell_others([READY])
            await until(lambda: one.reach == "process")
            assert "channel name cannot be empty" in one.reason
            await by_one.until(ANYTHING[0])
            assert one.reach == "hosts"

    in_a_loop(scene)


@pytest.mark.parametrize("conninfo", [NOWHERE, "postgresql://%zz", "nonsense"])
def test_a_server_that_cannot_be_reached_leaves_the_process_to_itself(conninfo: str) -> None:
    async def scene() -> None:
        async with living(PostgresNotifier(conninfo, "any")) as (notifier, heard):
            assert notifier.reach == "process"
            assert notifier.reason.startswith("cannot listen: ")
            notifier.tell([READY])
            await turn()
            assert heard.calls == [(READY,)]

    in_a_loop(scene)
    assert not tell_once(conninfo, "any", [READY])


def test_pauses_between_attempts_grow_up_to_a_few_seconds_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    enough = asyncio.Event()
    let_others_run = asyncio.sleep

    async def remember(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 10:
            enough.set()
            await asyncio.Event().wait()
        await let_others_run(0)

    async def refuse(*_: object) -> None:
        raise OSError("the network is down")

    async def scene() -> None:
        chances = iter([0.0, 1.0] * 5)
        notifier = PostgresNotifier(NOWHERE, "any", chance=lambda: next(chances))
        monkeypatch.setattr(asyncio, "sleep", remember)
        monkeypatch.setattr(paceline.bus.postgres, "dial", refuse)
        notifier.start()
        async with asyncio.timeout(PATIENCE_S):
            await enough.wait()
        assert notifier.reason == "cannot listen: the network is down"
        notifier.stop()

    in_a_loop(scene)
    assert pauses == pytest.approx([0.025, 0.15, 0.1, 0.6, 0.4, 2.4, 1.6, 7.5, 2.5, 7.5])


def test_behind_a_pooler_that_lends_sessions_nothing_is_heard_and_others_are_still_told(
    database: str, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paceline.bus.line, "PROOF_S", 0.2)

    async def scene() -> None:
        async with (
            pooled(database, lends=True) as (_, conninfo),
            living(PostgresNotifier(conninfo, channel)) as (deaf, by_deaf),
        ):
            assert deaf.reach == "process"
            assert "pooler" in deaf.reason
            async with living(PostgresNotifier(database, channel)) as (other, by_other):
                deaf.tell([Hint("ended", (1,))])
                await by_other.until(Hint("ended", (1,)))
                other.tell([Hint("ended", (2,))])
                deaf.tell([READY])
                await by_other.until(READY)
                assert by_deaf.hints == [Hint("ended", (1,)), READY]

    in_a_loop(scene)


def test_behind_a_pooler_that_keeps_sessions_apart_hints_are_heard_once(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            pooled(database, lends=False) as (_, conninfo),
            living(PostgresNotifier(conninfo, channel)) as (one, by_one),
        ):
            assert (one.reach, one.reason) == ("hosts", "")
            async with living(PostgresNotifier(conninfo, channel)) as (other, by_other):
                one.tell([Hint("ended", (1,))])
                await by_other.until(Hint("ended", (1,)))
                other.tell([Hint("ended", (2,))])
                await by_one.until(Hint("ended", (2,)))
                assert by_one.hints == by_other.hints == [Hint("ended", (1,)), Hint("ended", (2,))]

    in_a_loop(scene)


def test_a_pooler_is_tried_again_now_and_then(database: str, channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paceline.bus.line, "PROOF_S", 0.2)
    monkeypatch.setattr(paceline.bus.postgres, "DEAF_S", 0.01)

    async def scene() -> None:
        async with (
            pooled(database, lends=True) as (pooler, conninfo),
            living(PostgresNotifier(conninfo, channel)) as (notifier, heard),
        ):
            assert "pooler" in notifier.reason
            pooler.lends = False
            await heard.until(ANYTHING[0])
            assert (notifier.reach, notifier.reason) == ("hosts", "")

    in_a_loop(scene)


def test_a_stop_ends_the_session_on_the_server(database: str, channel: str) -> None:
    async def scene() -> None:
        async with living(PostgresNotifier(database, channel)):
            assert sessions(database) > 0
        await until(lambda: sessions(database) == 0)

    in_a_loop(scene)


def test_an_attempt_that_fails_half_way_leaves_no_session_behind(
    database: str, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise psycopg.OperationalError("no more channels")

    async def scene() -> None:
        monkeypatch.setattr(paceline.bus.line.Line, "listen", refuse)
        async with living(PostgresNotifier(database, channel, chance=lambda: 1_000.0)) as (notifier, _):
            assert (notifier.reach, notifier.reason) == ("process", "cannot listen: no more channels")
            await until(lambda: sessions(database) == 0)

    in_a_loop(scene)


def test_telling_once_tells_everybody_or_says_that_it_could_not(database: str, channel: str) -> None:
    async def scene() -> None:
        async with (
            living(PostgresNotifier(database, channel)) as (_, by_one),
            living(PostgresNotifier(database, channel)) as (_, by_other),
        ):
            assert await asyncio.to_thread(tell_once, database, channel, [Hint("cancel", (4,)), READY])
            for heard in (by_one, by_other):
                await heard.until(READY)
                assert heard.hints == [Hint("cancel", (4,)), READY]

    in_a_loop(scene)
    assert not tell_once(database, channel, [])
    assert not tell_once(database, "", [READY])


def test_a_store_on_postgres_is_opened_with_hints_between_all_who_use_it(database: str) -> None:
    async def scene() -> None:
        one, other = (open_store(Settings(store=database)) for _ in range(2))
        try:
            async with living(one.notifier()) as (by_one, heard), living(other.notifier()) as (_, by_other):
                by_one.tell([Hint("ended", (1,))])
                await by_other.until(Hint("ended", (1,)))
                await asyncio.to_thread(other.tell, [Hint("cancel", (2,))])
                await heard.until(Hint("cancel", (2,)))
        finally:
            one.store.close()
            other.store.close()

    in_a_loop(scene)


def test_a_schema_with_the_longest_name_has_a_channel_too(database: str) -> None:
    opened = open_store(Settings(store=f"{database}{'&' if '?' in database else '?'}schema={'s' * 63}"))

    async def scene() -> None:
        async with living(opened.notifier()) as (notifier, heard):
            assert (notifier.reach, notifier.reason) == ("hosts", "")
            await asyncio.to_thread(opened.tell, [READY])
            await heard.until(READY)

    in_a_loop(scene)
    opened.store.close()


def test_doctor_says_how_far_hints_reach_or_why_not(database: str, channel: str) -> None:
    reached = asyncio.run(_hints(PostgresNotifier(database, channel)))
    assert (reached.grade, reached.found) == (Grade.OK, "reach every process of every host")
    alone = asyncio.run(_hints(PostgresNotifier(NOWHERE, channel)))
    assert alone.grade is Grade.WARN
    assert "cannot listen" in alone.found
