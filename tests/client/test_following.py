"""The log of events: filters, pages, a cursor that skips nothing, and following it while others write."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.client.following import (
    Filter,
    cursor_at,
    data_of,
    filter_of,
    follow_events,
    kinds_of,
    log_line,
    logs_of,
    newest,
    page,
    severity_of,
)
from paceline.core.lifecycle import State
from paceline.core.model import SECOND
from paceline.errors import UsageError
from paceline.events import Event, Kind, Severity
from paceline.store.doors import sqlite_store
from paceline.store.protocol import Tx
from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from store.world import World, newest_events


def _note(tx: Tx, note: tuple[int, int, Kind, str | None]) -> None:
    tx.jobs.note([note], tx.now)


def words(events: list[Event]) -> list[str]:
    return [event.kind.word for event in events]


def test_pages_behind_a_cursor_make_up_the_whole_log(world: World) -> None:
    world.in_state(State.COMPLETED)
    world.in_state(State.FAILED)
    cursor, found, more = 0, [], True
    while more:
        events, cursor, more = world.do(partial(page, wanted=Filter(), cursor=cursor, most=2))
        found += events
    assert found == world.do(lambda tx: newest_events(tx, 100))


def test_the_cursor_moves_past_what_a_filter_leaves_out(world: World) -> None:
    world.in_state(State.COMPLETED)
    found = world.do(lambda tx: page(tx, filter_of(["job.failed"]), 0))
    assert (found.events, found.cursor, found.more) == ([], world.do(lambda tx: tx.events.last()), False)


def test_the_events_of_one_job_are_found_among_those_of_others(world: World) -> None:
    world.in_state(State.COMPLETED)
    job = world.in_state(State.COMPLETED)
    world.in_state(State.FAILED)
    found = world.do(lambda tx: page(tx, Filter(job=job), 0, most=2))
    assert (words(found.events), found.more) == (["job.queued", "job.started"], True)
    rest = world.do(lambda tx: page(tx, Filter(job=job), found.cursor, most=2))
    assert (words(rest.events), rest.more) == (["job.completed"], False)


def test_the_end_of_the_log_is_told_oldest_first(world: World) -> None:
    world.in_state(State.COMPLETED)
    assert words(world.do(lambda tx: newest(tx, Filter(), 2)).events) == ["job.started", "job.completed"]
    assert words(world.do(lambda tx: newest(tx, Filter((Kind.JOB_QUEUED,)), 2)).events) == ["job.queued"]


@given(
    st.lists(st.integers(min_value=0, max_value=3), min_size=1, max_size=12), st.integers(min_value=-1, max_value=40)
)
def test_the_cursor_of_a_moment_stands_before_everything_since(pauses: list[int], moment: int) -> None:
    clock = ManualClock()
    store = sqlite_store(None, clock)
    began = clock.now()
    for pause in pauses:
        clock.advance(pause * SECOND)
        store.execute(lambda tx: tx.events.announce(tx.now, Kind.NODE_STARTED))
        store.execute(lambda tx: tx.events.reserve(2))
    cursor = store.execute(lambda tx: cursor_at(tx, began + moment * SECOND))
    events = store.execute(lambda tx: newest_events(tx, 100))
    assert [event.id for event in events if event.id > cursor] == [
        event.id for event in events if event.at >= began + moment * SECOND
    ]
    store.close()


def test_log_lines_keep_level_order_and_epoch(world: World) -> None:
    job = world.running()
    for level, text in (("info", "one"), ("error", "two")):
        note = (job.id, job.epoch, Kind.JOB_LOG, f'{{"level":"{level}","text":"{text}"}}')
        world.do(partial(_note, note=note))
    assert [(line.level, line.text, line.epoch) for line in world.do(lambda tx: logs_of(tx, job.id))] == [
        ("info", "one", 1), ("error", "two", 1),
    ]  # fmt: skip


def test_a_log_event_without_words_is_an_empty_line() -> None:
    event = Event(1, 1, 1, 0, Kind.JOB_LOG, 1, None)
    assert (data_of(event), log_line(event).text, log_line(event).level) == ({}, "", "info")


def test_filters_are_words_for_kinds_subjects_and_severities() -> None:
    assert kinds_of("job.failed") == [Kind.JOB_FAILED]
    assert set(kinds_of("node")) == {Kind.NODE_STARTED, Kind.NODE_STOPPED, Kind.NODE_DIED}
    assert filter_of().kinds is None
    assert filter_of(["node"], "error").kinds == (Kind.NODE_DIED,)
    assert severity_of("Warning") is Severity.WARNING
    with pytest.raises(UsageError, match=r"did you mean job\.failed"):
        filter_of(["job.faild"])
    with pytest.raises(UsageError, match="debug, info, warning, error"):
        filter_of(severity="loud")


def test_a_filter_that_nothing_can_pass_passes_nothing() -> None:
    assert filter_of(["job.started"], "error").kinds == ()


@pytest.fixture
def file_store(tmp_path: Path) -> Store:
    return sqlite_store(tmp_path / "work.db", ManualClock(), synchronous="off")


def test_following_misses_nothing_that_others_commit_meanwhile(file_store: Store) -> None:
    """A writer commits while the follower reads: every event arrives once and in order."""

    async def act() -> list[int]:
        wakes: list[Callable[[], None]] = []

        def listen(wake: Callable[[], None]) -> Callable[[], None]:
            wakes.append(wake)
            return wakes.clear

        followed = follow_events(file_store, Filter(), 0, listen)
        found: list[int] = []
        for _ in range(40):
            file_store.execute(lambda tx: tx.events.announce(tx.now, Kind.NODE_STARTED))
            for wake in wakes:
                wake()
            found.append((await anext(followed)).id)
        await followed.aclose()
        assert wakes == [], "closing it stops listening"
        return found

    assert asyncio.run(act()) == list(range(1, 41))
    file_store.close()


def test_a_follower_finds_by_itself_what_no_hint_told(file_store: Store) -> None:
    async def act() -> Kind:
        followed = follow_events(file_store, Filter(), 0, lambda wake: lambda: None)
        waiting = asyncio.ensure_future(anext(followed))
        for _ in range(3):
            await asyncio.sleep(0)
        await file_store.read(lambda tx: None)
        file_store.execute(lambda tx: tx.events.announce(tx.now, Kind.NODE_DIED))
        event = await asyncio.wait_for(waiting, 5)
        await followed.aclose()
        return event.kind

    assert asyncio.run(act()) is Kind.NODE_DIED
    file_store.close()


def test_without_following_the_stream_ends_with_the_log(file_store: Store) -> None:
    async def act() -> list[Event]:
        return [event async for event in follow_events(file_store, Filter(), 0, None)]

    file_store.execute(lambda tx: tx.events.announce(tx.now, Kind.NODE_STARTED))
    assert words(asyncio.run(act())) == ["node.started"]
    file_store.close()
