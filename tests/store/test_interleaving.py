"""Two processes on one store: whatever meets whatever, at whichever statement, the laws hold afterwards."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS
from paceline.errors import StoreError
from paceline.node.janitor import search
from paceline.store import sqlite
from paceline.store.protocol import Tx
from paceline.units.settle import settle_postponed
from paceline.units.submit import submit
from store.meetings import SCENARIOS, two_prerequisites_complete
from store.racing import Race, Scenario, run
from store.stores import Database
from store.world import World, room_for_all

Pair = tuple[World, World]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_law_holds_whoever_wins(shared: Database, pair: Pair, scenario: Scenario) -> None:
    met = list(run(shared, pair, scenario))
    assert len(met) >= 6
    assert pair[0].broken() == []


def test_the_rest_of_a_large_family_is_told_once_while_another_member_joins(shared: Database, pair: Pair) -> None:
    one, other = pair
    job = one.running()
    family = one.submit(*(one.wish(after=[job.id]) for _ in range(UNIT_ROWS)))
    family += one.submit(*(one.wish(after=[job.id]) for _ in range(10)))
    one.complete(job)
    joined: list[int] = []
    go_on = threading.Event()
    shared.watch(one.store, go_on.set)
    thread = threading.Thread(target=lambda: joined.extend(other.job(after=[job.id]) for _ in [go_on.wait(30)]))
    thread.start()
    one.do(settle_postponed)
    shared.watch(one.store, None)
    thread.join()
    while one.do(settle_postponed)[1]:
        pass
    assert {one.state(member) for member in [*family, *joined]} == {State.QUEUED}


def test_a_unit_stopped_half_way_is_seen_by_nobody(
    shared: Database, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And another writer that cannot interleave waits for its turn, but not for ever."""
    one, other = pair
    inside, go_on = threading.Event(), threading.Event()

    def half(tx: Tx) -> list[int]:
        ids = submit(tx, [one.wish()], room_for_all)
        inside.set()
        assert go_on.wait(30)
        return ids

    answers: list[list[int]] = []
    thread = threading.Thread(target=lambda: answers.append(one.do(half)))
    thread.start()
    assert inside.wait(30)
    try:
        assert other.store.look(lambda tx: tx.jobs.rows([1])) == []
        if not shared.interleaves:
            monkeypatch.setattr(sqlite, "TURN_SECONDS", 0.01)
            with pytest.raises(StoreError) as error:
                other.job()
            monkeypatch.undo()
            assert error.value.code == "store_busy"
    finally:
        go_on.set()
        thread.join()
    assert other.job() == answers[0][0] + 1


def test_every_meeting_can_go_wrong(shared: Database, pair: Pair) -> None:
    """A law that is broken on purpose is found, or the suite would prove nothing."""

    def careless(one: World, other: World) -> Race:
        race = two_prerequisites_complete(one, other)
        first: Callable[[Tx], Any] = race.one

        def without_telling(tx: Tx) -> Any:
            tx.edges.settle = lambda edges: None  # type: ignore[method-assign]
            try:
                return first(tx)
            finally:
                del tx.edges.settle

        return race._replace(one=without_telling)

    with pytest.raises(AssertionError):
        list(run(shared, pair, careless))
    pair[0].do(lambda tx: search(tx, 0))
