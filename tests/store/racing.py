"""Two units of work on two connections, the first stopped before each of its statements in turn.

Where two writing transactions may be open at once they interleave for real; where not, the second waits for its turn,
and every order in which the two can take effect is seen all the same.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Any, NamedTuple

from paceline.core.problem import Problem
from paceline.store.protocol import Unit
from store.stores import Database
from store.world import World

PATIENCE = 30


class Race(NamedTuple):
    """Two units, and what must hold whoever wins: a law over their two answers."""

    one: Unit[Any]
    other: Unit[Any]
    law: Callable[[Any, Any], None]


Scenario = Callable[[World, World], Race]


def run(database: Database, pair: tuple[World, World], scenario: Scenario) -> Iterator[str]:
    """Every way in which the two can meet; yields how, after the law has been found to hold."""
    for swapped in (False, True):
        for pause in _points(database, pair, scenario, swapped):
            _renew(pair)
            race = scenario(*pair)
            units = (race.other, race.one) if swapped else (race.one, race.other)
            answers = _meet(database, pair, units, pause)
            race.law(*(answers[::-1] if swapped else answers))
            yield f"{'other' if swapped else 'one'} stopped at statement {pause}"


def _points(database: Database, pair: tuple[World, World], scenario: Scenario, swapped: bool) -> range:
    """Before each statement of the one that is stopped, its begin and its commit among them."""
    _renew(pair)
    race = scenario(*pair)
    seen: list[None] = []
    database.watch(pair[0].store, lambda: seen.append(None))
    first = attempt(pair[0], race.other if swapped else race.one)
    database.watch(pair[0].store, None)
    second = attempt(pair[1], race.one if swapped else race.other)
    race.law(*((second, first) if swapped else (first, second)))
    return range(1, len(seen) + 1)


def _meet(database: Database, pair: tuple[World, World], units: tuple[Unit[Any], Unit[Any]], pause: int) -> Any:
    stopped, go_on = Event(), Event()
    statements = 0

    def stop() -> None:
        nonlocal statements
        statements += 1
        if statements == pause:
            stopped.set()
            assert go_on.wait(PATIENCE)

    database.watch(pair[0].store, stop)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(attempt, pair[0], units[0])
        first.add_done_callback(lambda _: stopped.set())
        assert stopped.wait(PATIENCE)
        second = threads.submit(attempt, pair[1], units[1])
        if database.interleaves:
            wait([second], timeout=0.05)  # it ends, or it waits for a row that the first one has locked
        go_on.set()
        answers = _both(first, second)
    database.watch(pair[0].store, None)
    return answers


def _both(first: "Future[Any]", second: "Future[Any]") -> tuple[Any, Any]:
    return first.result(PATIENCE), second.result(PATIENCE)


def attempt(world: World, unit: Unit[Any]) -> Any:
    """The unit's answer, or the problem it raised."""
    try:
        return world.do(unit)
    except Problem as problem:
        return problem


def _renew(pair: tuple[World, World]) -> None:
    """An agent and a node for each of its own, so that earlier meetings do not matter."""
    one, other = pair
    name = f"worker {one.do(lambda tx: tx.events.last())}"
    one.agent = other.agent = one.do(lambda tx: tx.lanes.register(name, "tests", "d", None))
    for world in pair:
        world.renew_node()
