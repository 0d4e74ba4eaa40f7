"""Store time, the name of a boot, and noticing that the host slept or that we did."""

import sys
import time
from pathlib import Path

import pytest

from paceline import clock
from paceline.clock import Clock, SleepDetector, SystemClock, boot_id, measure_offset
from paceline.testing.clock import ManualClock

SECOND = 1_000_000
HOUR = 3_600 * SECOND


def test_store_time_starts_at_wall_time() -> None:
    now = SystemClock(measure_offset()).now()
    assert abs(now - time.time_ns() // 1000) < SECOND


def test_a_stepped_wall_clock_does_not_move_store_time(monkeypatch: pytest.MonkeyPatch) -> None:
    system = SystemClock(measure_offset())
    before = system.now()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - HOUR * 1000)
    assert 0 <= system.now() - before < SECOND
    assert abs(measure_offset() - (system.offset_us - HOUR)) < SECOND


def test_clocks_that_share_an_offset_agree() -> None:
    one, other = SystemClock(5), SystemClock(5)
    readings = [one.now(), other.now(), one.now(), other.now()]
    assert readings == sorted(readings)
    assert readings[-1] - readings[0] < SECOND


def test_awake_time_only_grows() -> None:
    system: Clock = SystemClock(0)
    first = system.monotonic()
    assert 0 <= system.monotonic() - first < SECOND


def test_the_offset_comes_from_the_reading_that_was_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sample reads boot, wall, boot; all but the third are interrupted between the first two reads."""
    boot = iter([0, 900, 1_000, 1_800, 2_000, 2_002, 3_000, 3_700, 4_000, 4_600])
    wall = iter([10_900, 11_800, 12_001, 13_700, 14_600])
    monkeypatch.setattr(clock, "_since_boot", lambda: next(boot))
    monkeypatch.setattr(time, "time_ns", lambda: next(wall) * 1000)
    assert measure_offset() == 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own name of the boot is compared")
def test_a_boot_has_the_name_that_the_kernel_gave_it() -> None:
    assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip() != ""


def test_a_boot_has_no_name_where_the_platform_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    assert boot_id.__wrapped__() == ""


def watched(manual: ManualClock, every: int = 5 * SECOND) -> SleepDetector:
    """A detector that has looked once and expects to look again soon."""
    detector = SleepDetector(every)
    assert detector.observe(manual.now(), manual.monotonic()) == 0
    return detector


def look(detector: SleepDetector, manual: ManualClock) -> tuple[int, int]:
    return detector.observe(manual.now(), manual.monotonic()), detector.frozen_us


def test_a_host_that_slept_is_noticed_once_with_the_time_it_slept() -> None:
    manual = ManualClock()
    detector = watched(manual)
    manual.advance(2 * SECOND)
    manual.suspend(8 * HOUR)
    manual.advance(3 * SECOND)
    assert look(detector, manual) == (8 * HOUR, 0)
    manual.advance(5 * SECOND)
    assert look(detector, manual) == (0, 0)


def test_an_observer_that_was_frozen_is_told_how_late_it_looks() -> None:
    manual = ManualClock()
    detector = watched(manual)
    manual.advance(65 * SECOND)
    assert look(detector, manual) == (0, 60 * SECOND)
    manual.advance(5 * SECOND)
    assert look(detector, manual) == (0, 0)


def test_sleeping_and_being_frozen_are_told_apart_when_both_happen() -> None:
    manual = ManualClock()
    detector = watched(manual)
    manual.advance(10 * SECOND)
    manual.suspend(HOUR)
    assert look(detector, manual) == (HOUR, 5 * SECOND)


def test_a_clock_that_is_put_back_shows_as_a_negative_jump() -> None:
    manual = ManualClock()
    detector = watched(manual)
    manual.set(manual.now() - HOUR)
    assert look(detector, manual) == (-HOUR, 0)


@pytest.mark.parametrize("jump", [500_000, -500_000])
def test_a_difference_within_the_tolerance_is_nothing(jump: int) -> None:
    manual = ManualClock()
    detector = watched(manual)
    manual.suspend(jump)
    assert look(detector, manual) == (0, 0)
    manual.suspend(jump * 2)
    assert look(detector, manual) == (jump * 2, 0)


def test_looking_a_little_late_or_early_is_not_being_frozen() -> None:
    manual = ManualClock()
    detector = watched(manual)
    for gap in (5 * SECOND + 500_000, 1, 0):
        manual.advance(gap)
        assert look(detector, manual) == (0, 0)


def test_a_manual_clock_moves_only_when_told() -> None:
    manual = ManualClock(now=1_000)
    assert (manual.now(), manual.now(), manual.monotonic()) == (1_000, 1_000, 0)
    manual.advance(10)
    assert (manual.now(), manual.monotonic()) == (1_010, 10)
    manual.suspend(100)
    assert (manual.now(), manual.monotonic()) == (1_110, 10)
    manual.set(2_000)
    assert (manual.now(), manual.monotonic()) == (2_000, 900)
    manual.set(5)
    assert (manual.now(), manual.monotonic()) == (5, 900)
    with pytest.raises(ValueError, match="forwards"):
        manual.advance(-1)
