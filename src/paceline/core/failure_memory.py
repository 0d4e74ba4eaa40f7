"""Remembers which tasks keep failing in the same way, so that nobody keeps paying for them."""

from collections.abc import Hashable
from typing import NamedTuple

from paceline.core.durations import MINUTE
from paceline.core.failures import FailureClass
from paceline.core.retrying import COUNTED

STRIKES = 3
WINDOW = MINUTE
KEPT = 5 * MINUTE
MOST_RECORDS = 100


class _Record(NamedTuple):
    """The latest failures of one task in one class, when and of which tries, and whether they ever came too fast."""

    times: tuple[int, ...]
    tries: tuple[Hashable, ...]
    repeating: bool


class FailureMemory:
    """Notices the same task failing three times in one class within a minute without a success in between.

    Such a task stays refused until it succeeds or has been quiet for five minutes. Only counted classes are
    remembered: a rate limit or a full provider makes every job fail alike, each waits by itself and costs no
    retry, and giving up on one because of it would lose work.
    """

    def __init__(self) -> None:
        self._records: dict[tuple[Hashable, FailureClass], _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def remember(self, task: Hashable, failure: FailureClass, now: int, tried: Hashable) -> None:
        """`task` failed at `now`; the failures longest ago are forgotten when there are too many.

        A failure that is told again, because nobody knows what became of its transaction, is the same failure: `tried`
        names the try.
        """
        if failure not in COUNTED:
            return
        self._forget(now)
        old = self._records.get((task, failure), _Record((), (), repeating=False))
        if tried in old.tries:
            return
        self._records.pop((task, failure), None)
        times, tries = (*old.times[1 - STRIKES :], now), (*old.tries[1 - STRIKES :], tried)
        fast = len(times) == STRIKES and times[-1] - times[0] <= WINDOW
        self._records[task, failure] = _Record(times, tries, old.repeating or fast)
        if len(self._records) > MOST_RECORDS:
            del self._records[next(iter(self._records))]

    def succeeded(self, task: Hashable) -> None:
        """`task` can work after all: nothing is held against it any more."""
        for failure in COUNTED:
            self._records.pop((task, failure), None)

    def repeating(self, task: Hashable, failure: FailureClass, now: int) -> bool:
        """Whether trying `task` again would only repeat what was seen; ask after `remember`."""
        self._forget(now)
        record = self._records.get((task, failure))
        return record is not None and record.repeating

    def _forget(self, now: int) -> None:
        """Drop what is too old; records stand in the order of their latest failure."""
        while self._records:
            key, record = next(iter(self._records.items()))
            if now - record.times[-1] <= KEPT:
                return
            del self._records[key]
