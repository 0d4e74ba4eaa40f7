"""A clock that moves only when told to."""

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
