"""Time at the edge: what the store counts in, and how a sleep of the host is noticed."""

import sys
import time
from functools import cache
from pathlib import Path
from typing import Protocol

# Counts on while the host sleeps. Where it has no name of its own (macOS), the monotonic clock does that.
_BOOT_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_SAMPLES = 5


class Clock(Protocol):
    """Both in integer microseconds; every row uses `now`, and only differences of `monotonic` mean something."""

    def now(self) -> int:
        """Store time: since the epoch, never stepped while the host is up, counting on while it sleeps."""

    def monotonic(self) -> int:
        """Time this host has been awake."""

    def told(self, moment: int) -> int:
        """A database with a clock of its own says what time it is; answers what counts."""


class SystemClock:
    """Store time of all processes of one host that share an offset, whatever happens to the wall clock."""

    def __init__(self, offset_us: int) -> None:
        self.offset_us = offset_us

    def now(self) -> int:
        return _since_boot() + self.offset_us

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000

    def told(self, moment: int) -> int:
        return self.now()


class DatabaseClock(SystemClock):
    """Store time where hosts share a database: that database's clock, carried on by this host between transactions.

    What rows say is always the database's own word; what this host adds to it decides only when to come again.
    """

    def told(self, moment: int) -> int:
        self.offset_us = moment - _since_boot()
        return moment


def _since_boot() -> int:
    return (time.monotonic_ns() if _BOOT_CLOCK is None else time.clock_gettime_ns(_BOOT_CLOCK)) // 1000


def measure_offset() -> int:
    """Wall time minus time since boot, now: the tightest of a few samples, as a thread may pause between two reads."""
    samples: list[tuple[int, int]] = []
    for _ in range(_SAMPLES):
        before = _since_boot()
        wall = time.time_ns() // 1000
        after = _since_boot()
        samples.append((after - before, wall - (before + after) // 2))
    return min(samples)[1]


@cache
def boot_id() -> str:
    """Names the time this host has been up since its last boot; empty where the platform has no name for it.

    Without a name an offset must not be remembered: nobody could tell that it belongs to an earlier boot.
    """
    read = _BOOT_NAMES.get(sys.platform)
    return read() if read is not None else ""


def _boot_name_on_linux() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _boot_name_on_macos() -> str:
    import ctypes  # a few milliseconds that nobody else has to pay

    name = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(name))
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", name, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else name.value.decode("ascii", "replace").lower()


_BOOT_NAMES = {"linux": _boot_name_on_linux, "darwin": _boot_name_on_macos}


class SleepDetector:
    """Compares two clocks between two looks: what store time gained over awake time is sleep, or a jump."""

    def __init__(self, expected_us: int, tolerance_us: int = 500_000) -> None:
        """`expected_us` is how far apart two looks are when the observer gets its turns."""
        self.frozen_us = 0
        self._expected = expected_us
        self._tolerance = tolerance_us
        self._last: tuple[int, int] | None = None

    def observe(self, now: int, monotonic: int) -> int:
        """Microseconds slept or jumped since the last look (negative: backwards), 0 within the tolerance.

        Sets `frozen_us`: by how much this look came too late in awake time, so that the observer itself had stopped.
        """
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return 0
        awake = monotonic - last[1]
        late = awake - self._expected
        self.frozen_us = late if late > self._tolerance else 0
        slept = now - last[0] - awake
        return slept if abs(slept) > self._tolerance else 0
