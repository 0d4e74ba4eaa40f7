"""Clocks that move only when told to."""

from paceline.clock import Clock

START = 1_700_000_000_000_000


class ManualClock:
    """A `Clock` for tests and simulations."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._monotonic = 0

    def now(self) -> int:
        return self._now

    def told(self, moment: int) -> int:
        """Nobody else's clock counts in a test."""
        return self.now()

    def monotonic(self) -> int:
        return self._monotonic

    def advance(self, microseconds: int) -> None:
        """Lets time pass on both clocks."""
        if microseconds < 0:
            raise ValueError(f"time passes forwards, not by {microseconds}")
        self._now += microseconds
        self._monotonic += microseconds

    def set(self, now: int) -> None:
        """Goes to a moment: forwards as time passes, backwards as a clock that is put back."""
        self._monotonic += max(0, now - self._now)
        self._now = now

    def suspend(self, jump: int) -> None:
        """The host sleeps: store time goes on, awake time stands still."""
        self._now += jump


class SkewedClock:
    """What another process takes for the time: wrong by a constant, as clocks of hosts are; only awake time agrees."""

    def __init__(self, clock: Clock, wrong_by: int) -> None:
        self._clock = clock
        self._wrong_by = wrong_by

    def now(self) -> int:
        return self._clock.now() + self._wrong_by

    def told(self, moment: int) -> int:
        """The database's word counts in its transactions, and nowhere else."""
        return moment

    def monotonic(self) -> int:
        return self._clock.monotonic()
