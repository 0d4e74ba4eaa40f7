import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paceline.core.model import SECOND
from paceline.errors import PacelineError, StoreError
from paceline.node.drive import FIRST_PAUSE, LONGEST_PAUSE, Driver
from paceline.store.protocol import Done, Tx
from paceline.testing.clock import ManualClock
from paceline.testing.turning import TurningLoop

LOOK_EVERY = 10 * SECOND


class Chore:
    """A loop that counts its turns and can be made to fail."""

    name = "chore"

    def __init__(self) -> None:
        self.idle = False
        self.clumsy = False
        self.next: int | None = None
        self.taken: list[object] = []
        self.failures = 0
        self.units = 0

    def unit(self, now: int) -> Callable[[Tx], Any] | None:
        if self.idle:
            return None
        self.units += 1
        return lambda tx: None

    def done(self, result: object, now: int) -> None:
        self.taken.append(result)
        if self.clumsy:
            raise RuntimeError("could not take it in")

    def failed(self, now: int) -> None:
        self.failures += 1

    def next_at(self, now: int) -> int:
        return now + LOOK_EVERY if self.next is None else self.next


class Line:
    """A store that carries out nothing: whoever tests it says what becomes of each unit."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.waiting: list[Callable[[Done], None]] = []
        self.refusal: PacelineError | None = None

    def hand_over(self, unit: Callable[[Tx], Any], tell: Callable[[Done], None]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.waiting.append(tell)


class Track:
    """A driver on an event loop whose turns are taken one by one."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.line, self.chore, self.turns = Line(self.clock), Chore(), TurningLoop(self.clock)
        self.inside(lambda: setattr(self, "driver", Driver(self.chore, self.line)))  # type: ignore[arg-type]
        self.driver: Driver

    def inside(self, act: Callable[[], object]) -> None:
        """Something that happens on the event loop, and all that follows at once."""
        self.turns.call_soon(act)
        self.settle()

    def settle(self) -> None:
        while self.turns.due() is not None and self.turns.due() <= self.clock.monotonic():  # type: ignore[operator]
            self.turns.turn(100)

    def start(self) -> None:
        self.inside(self.driver.start)

    def land(self, value: object = "done", error: BaseException | None = None) -> None:
        """The unit in flight was committed, or was not."""
        tell = self.line.waiting.pop(0)
        self.inside(lambda: tell(Done(value, error)))

    def wait(self, seconds: float) -> int:
        """How many units were begun while time passed."""
        before = self.chore.units
        self.clock.advance(round(seconds * SECOND))
        self.settle()
        return self.chore.units - before


@pytest.fixture
def track() -> Iterator[Track]:
    made = Track()
    yield made
    made.turns.die()


def test_a_started_driver_begins_at_once_and_starting_twice_is_fine(track: Track) -> None:
    track.start()
    track.start()
    assert (track.chore.units, len(track.line.waiting)) == (1, 1)


def test_before_the_start_nobody_can_make_it_begin(track: Track) -> None:
    track.inside(track.driver.poke)
    track.inside(track.driver.poke_now)
    assert track.chore.units == 0


def test_after_a_unit_it_comes_again_when_the_loop_says(track: Track) -> None:
    track.start()
    track.land("first")
    assert track.chore.taken == ["first"]
    assert track.wait(9.9) == 0
    assert track.wait(0.2) == 1


def test_it_comes_at_once_when_the_loop_has_more(track: Track) -> None:
    track.start()
    track.chore.next = 0
    track.land()
    assert track.chore.units == 2


def test_one_unit_is_in_flight_and_pokes_meanwhile_become_one_more(track: Track) -> None:
    track.start()
    for _ in range(5):
        track.inside(track.driver.poke)
        track.inside(track.driver.poke_now)
    assert track.chore.units == 1
    track.land()
    assert (track.chore.units, len(track.line.waiting)) == (2, 1)
    track.land()
    assert track.chore.units == 2


def test_a_poke_serves_everybody_who_pokes_in_one_turn(track: Track) -> None:
    track.start()
    track.land()
    track.turns.call_soon(track.driver.poke)
    track.inside(track.driver.poke)
    assert track.chore.units == 2


def test_who_pokes_now_is_in_line_before_the_next_turn(track: Track) -> None:
    track.start()
    track.land()
    seen: list[int] = []
    track.turns.call_soon(track.driver.poke)

    def poke_and_look() -> None:
        track.driver.poke_now()
        seen.append(len(track.line.waiting))

    track.inside(poke_and_look)
    assert (seen, len(track.line.waiting)) == ([1], 1)


def test_a_loop_that_wants_to_come_earlier_says_so(track: Track) -> None:
    track.start()
    track.land()
    track.chore.next = track.clock.now() + SECOND
    track.inside(track.driver.plan)
    assert track.wait(1) == 1


def test_a_loop_with_nothing_to_do_is_asked_again_in_its_own_time(track: Track) -> None:
    track.chore.idle = True
    track.start()
    assert (track.chore.units, track.line.waiting) == (0, [])
    track.chore.idle = False
    assert track.wait(10) == 1


def test_a_store_error_is_survived_with_growing_pauses_and_said_once(
    track: Track, caplog: pytest.LogCaptureFixture
) -> None:
    track.start()
    pauses = []
    for _ in range(9):
        track.land(error=StoreError(code="store_full", what="the disk is full"))
        pause = 0.0
        while track.chore.units == track.chore.failures:
            pause += 0.05
            track.wait(0.05)
        pauses.append(round(pause, 2))
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LONGEST_PAUSE, LONGEST_PAUSE]
    assert track.driver.trouble is not None
    assert [record.getMessage() for record in caplog.records] == ["chore: store_full: the disk is full"]
    assert caplog.records[0].exc_info is None, "no traceback for what is not a bug"


def test_when_the_store_works_again_the_trouble_is_over(track: Track) -> None:
    track.start()
    for _ in range(3):
        track.land(error=StoreError(code="store_busy", what="locked"))
        track.wait(LONGEST_PAUSE)
    track.land()
    assert track.driver.trouble is None
    track.inside(track.driver.poke)
    track.land(error=StoreError(code="store_busy", what="locked"))
    assert track.wait(FIRST_PAUSE) == 1, "the next trouble begins with a short pause"


def test_a_unit_that_raises_is_a_bug_that_is_logged_and_survived(
    track: Track, caplog: pytest.LogCaptureFixture
) -> None:
    track.start()
    track.land(error=KeyError("oops"))
    assert track.driver.trouble is not None
    assert track.driver.trouble.code == "bug"
    assert caplog.records[0].exc_info is not None
    assert track.wait(FIRST_PAUSE) == 1


def test_a_store_that_takes_nothing_is_asked_again(track: Track) -> None:
    track.line.refusal = StoreError(code="store_gone", what="somebody deleted the file")
    track.start()
    assert (track.chore.failures, track.line.waiting) == (1, [])
    track.line.refusal = None
    assert track.wait(FIRST_PAUSE) == 1
    assert len(track.line.waiting) == 1


def test_a_loop_object_that_raises_does_not_end_the_loop(track: Track, caplog: pytest.LogCaptureFixture) -> None:
    track.start()
    track.chore.clumsy = True
    track.land()
    assert "could not take in" in caplog.text
    assert track.wait(10) == 1


def test_poking_during_a_pause_does_not_make_a_second_timer(track: Track) -> None:
    track.start()
    track.land(error=StoreError(code="store_busy", what="locked"))
    track.inside(track.driver.poke)
    assert track.chore.units == 2
    track.land()
    assert track.wait(1) == 0


def test_stopping_waits_for_the_unit_in_flight_and_begins_no_other(track: Track) -> None:
    track.start()
    track.inside(track.driver.poke)
    stopping = track.turns.create_task(track.driver.stop())
    track.settle()
    assert not stopping.done()
    track.land("last")
    assert stopping.done()
    assert track.chore.taken == ["last"]
    assert track.wait(60) == 0


@pytest.mark.parametrize("error", [None, StoreError(code="store_busy", what="locked")])
def test_stopping_twice_is_fine_whatever_became_of_the_last_unit(track: Track, error: StoreError | None) -> None:
    track.start()
    first = track.turns.create_task(track.driver.stop())
    track.settle()
    track.land(error=error)
    second = track.turns.create_task(track.driver.stop())
    track.settle()
    assert first.done()
    assert second.done()
    assert track.wait(60) == 0


def test_stopping_before_the_start_is_fine(track: Track) -> None:
    stopping = track.turns.create_task(track.driver.stop())
    track.settle()
    assert stopping.done()


def test_the_trouble_of_the_last_unit_is_logged_by_its_own_name(track: Track, caplog: pytest.LogCaptureFixture) -> None:
    track.start()
    track.land(error=StoreError(code="store_full", what="full"))
    assert [(record.name, record.levelno) for record in caplog.records] == [("paceline.node", logging.ERROR)]
