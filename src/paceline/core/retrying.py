"""Whether a failed job is tried again, and when."""

import math
from enum import StrEnum
from typing import NamedTuple

from paceline.core.durations import LONGEST, SECOND
from paceline.core.failures import FailureClass

COUNTED = frozenset({FailureClass.TIMEOUT, FailureClass.TRANSIENT})
"""Each costs one of the job's retries."""

UNCOUNTED = frozenset({FailureClass.RATE_LIMIT, FailureClass.CAPACITY})
"""Nobody's fault: the job waits and comes back, however often that is."""

MAX_CRASHES = 3

_STEEPEST = 64


class RetryPolicy(NamedTuple):
    """How long to wait before the next try; times in microseconds."""

    base: int = SECOND
    factor: float = 2.0
    cap: int = 30 * SECOND
    jitter: float = 0.2
    """The wait is spread by this share to either side, so that those who failed together do not return together."""
    max_timeouts: int = 2


class Tally(NamedTuple):
    """What a job has been through before the failure at hand."""

    counted: int = 0
    """Counted failures of this job, timeouts included."""
    timeouts: int = 0
    snoozes: int = 0
    """Uncounted failures in a row."""


class WhyNot(StrEnum):
    """Why a job is not tried again."""

    NOT_RETRYABLE = "not_retryable"
    NO_RETRIES_LEFT = "no_retries_left"
    TOO_MANY_TIMEOUTS = "too_many_timeouts"
    REPEATING = "repeating"
    CRASHED = "crashed"


class Retry(NamedTuple):
    """Try again at `due_at`; `counted` says whether this costs one of the job's retries."""

    due_at: int
    counted: bool


class GiveUp(NamedTuple):
    """The failure is final."""

    reason: WhyNot


DEFAULT_POLICY = RetryPolicy()


def decide(
    failure: FailureClass,
    *,
    before: Tally,
    retries: int,
    now: int,
    jitter: float,
    retry_after: float | None = None,
    repeating: bool = False,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Retry | GiveUp:
    """What follows a failure: `jitter` is chance in [0, 1), `retry_after` seconds that the other side asked for.

    A rate limit or a lack of capacity is never given up: the job comes back for as long as its deadline allows.
    """
    counted = failure in COUNTED
    if counted:
        refusal = _refusal(failure, before, retries, repeating, policy)
        if refusal is not None:
            return GiveUp(refusal)
    elif failure not in UNCOUNTED:
        return GiveUp(WhyNot.NOT_RETRYABLE)
    tries = before.counted if counted else before.snoozes
    return Retry(due_at=now + _wait(tries, jitter, retry_after, policy), counted=counted)


def decide_crash(crashes: int, max_crashes: int = MAX_CRASHES) -> GiveUp | None:
    """What follows the death of a job's process, this one included in `crashes`; None means requeue it now."""
    return GiveUp(WhyNot.CRASHED) if crashes >= max_crashes else None


def _refusal(failure: FailureClass, before: Tally, retries: int, repeating: bool, policy: RetryPolicy) -> WhyNot | None:
    if before.counted >= retries:
        return WhyNot.NO_RETRIES_LEFT
    if failure is FailureClass.TIMEOUT and before.timeouts >= policy.max_timeouts:
        return WhyNot.TOO_MANY_TIMEOUTS
    return WhyNot.REPEATING if repeating else None


def _wait(tries: int, jitter: float, retry_after: float | None, policy: RetryPolicy) -> int:
    backed_off = min(policy.base * policy.factor ** min(tries, _STEEPEST), policy.cap)
    wait = backed_off * (1 + policy.jitter * (2 * jitter - 1))
    if retry_after is not None and retry_after > 0:
        asked = min(retry_after * SECOND, LONGEST)
        wait = max(wait, asked + policy.jitter * jitter * min(asked, policy.cap))  # spread, but never too early
    return math.ceil(wait)
