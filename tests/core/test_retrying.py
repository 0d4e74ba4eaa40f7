"""Whether a failure is tried again: which classes, how often, and when."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.failures import FailureClass
from paceline.core.retrying import (
    COUNTED,
    UNCOUNTED,
    GiveUp,
    Retry,
    RetryPolicy,
    Tally,
    WhyNot,
    decide,
    decide_crash,
)

SECOND = 1_000_000
NOW = 1_000 * SECOND
MIDDLE = 0.5
"""The chance that changes no wait."""

RATE_LIMIT, CAPACITY, TIMEOUT = FailureClass.RATE_LIMIT, FailureClass.CAPACITY, FailureClass.TIMEOUT
TRANSIENT, PERMANENT, UNKNOWN = FailureClass.TRANSIENT, FailureClass.PERMANENT, FailureClass.UNKNOWN


def wait_of(answer: Retry | GiveUp) -> float:
    assert isinstance(answer, Retry)
    return (answer.due_at - NOW) / SECOND


@pytest.mark.parametrize(
    "failure,before,retries,answer",
    [
        (TRANSIENT, Tally(), 0, WhyNot.NO_RETRIES_LEFT),
        (TRANSIENT, Tally(), 1, True),
        (TRANSIENT, Tally(counted=1), 1, WhyNot.NO_RETRIES_LEFT),
        (TRANSIENT, Tally(counted=4, timeouts=2), 5, True),
        (TIMEOUT, Tally(), 0, WhyNot.NO_RETRIES_LEFT),
        (TIMEOUT, Tally(counted=1, timeouts=1), 5, True),
        (TIMEOUT, Tally(counted=2, timeouts=2), 5, WhyNot.TOO_MANY_TIMEOUTS),
        (TIMEOUT, Tally(counted=1, timeouts=1), 1, WhyNot.NO_RETRIES_LEFT),
        (RATE_LIMIT, Tally(), 0, False),
        (RATE_LIMIT, Tally(counted=3, timeouts=2, snoozes=10_000), 0, False),
        (CAPACITY, Tally(), 0, False),
        (CAPACITY, Tally(snoozes=10_000), 3, False),
        (PERMANENT, Tally(), 9, WhyNot.NOT_RETRYABLE),
        (UNKNOWN, Tally(), 9, WhyNot.NOT_RETRYABLE),
    ],
)
def test_each_class_is_tried_again_as_often_as_it_may_be(
    failure: FailureClass, before: Tally, retries: int, answer: WhyNot | bool
) -> None:
    decision = decide(failure, before=before, retries=retries, now=NOW, jitter=MIDDLE)
    assert (decision.counted if isinstance(decision, Retry) else decision.reason) == answer


def test_every_class_is_counted_or_uncounted_or_never_tried_again() -> None:
    assert not COUNTED & UNCOUNTED
    assert set(FailureClass) - COUNTED - UNCOUNTED == {PERMANENT, UNKNOWN}


@pytest.mark.parametrize("tries,seconds", [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (6, 30), (10**9, 30)])
def test_the_wait_doubles_up_to_thirty_seconds(tries: int, seconds: int) -> None:
    counted = decide(TRANSIENT, before=Tally(counted=tries), retries=10**10, now=NOW, jitter=MIDDLE)
    uncounted = decide(RATE_LIMIT, before=Tally(snoozes=tries), retries=0, now=NOW, jitter=MIDDLE)
    assert wait_of(counted) == wait_of(uncounted) == seconds


def test_counted_failures_do_not_lengthen_the_wait_for_capacity_nor_the_reverse() -> None:
    before = Tally(counted=3, snoozes=1)
    assert wait_of(decide(CAPACITY, before=before, retries=9, now=NOW, jitter=MIDDLE)) == 2
    assert wait_of(decide(TRANSIENT, before=before, retries=9, now=NOW, jitter=MIDDLE)) == 8


@pytest.mark.parametrize("jitter,seconds", [(0.0, 0.8), (0.25, 0.9), (0.75, 1.1)])
def test_chance_moves_the_wait_by_a_fifth_at_most(jitter: float, seconds: float) -> None:
    assert wait_of(decide(TRANSIENT, before=Tally(), retries=1, now=NOW, jitter=jitter)) == seconds


@pytest.mark.parametrize("failure", [RATE_LIMIT, CAPACITY, TRANSIENT])
@pytest.mark.parametrize(
    "retry_after,at_least,at_most",
    [(0.1, 1, 1), (20, 20, 22), (300, 300, 303), (0, 1, 1), (None, 1, 1), (-5, 1, 1), (math.nan, 1, 1)],
)
def test_what_the_other_side_asks_for_is_waited_at_least(
    failure: FailureClass, retry_after: float | None, at_least: float, at_most: float
) -> None:
    decision = decide(failure, before=Tally(), retries=1, now=NOW, jitter=MIDDLE, retry_after=retry_after)
    assert at_least <= wait_of(decision) <= at_most


def test_those_who_were_told_the_same_time_do_not_come_back_at_once() -> None:
    waits = {
        wait_of(decide(RATE_LIMIT, before=Tally(), retries=0, now=NOW, jitter=n / 10, retry_after=60))
        for n in range(10)
    }
    assert len(waits) == 10
    assert min(waits) == 60


def test_an_absurd_retry_after_still_fits_the_clock() -> None:
    decision = decide(RATE_LIMIT, before=Tally(), retries=0, now=NOW, jitter=MIDDLE, retry_after=math.inf)
    assert isinstance(decision, Retry)
    assert decision.due_at < 2**63


def test_what_keeps_repeating_is_given_up_unless_waiting_is_all_it_needs() -> None:
    answers = {
        failure: decide(failure, before=Tally(), retries=9, now=NOW, jitter=MIDDLE, repeating=True)
        for failure in (TRANSIENT, TIMEOUT, RATE_LIMIT, CAPACITY)
    }
    assert answers[TRANSIENT] == answers[TIMEOUT] == GiveUp(WhyNot.REPEATING)
    assert isinstance(answers[RATE_LIMIT], Retry)
    assert isinstance(answers[CAPACITY], Retry)


def test_another_policy_changes_base_factor_cap_and_the_number_of_timeouts() -> None:
    policy = RetryPolicy(base=2 * SECOND, factor=3, cap=10 * SECOND, jitter=0, max_timeouts=0)
    waits = [
        wait_of(decide(CAPACITY, before=Tally(snoozes=n), retries=0, now=NOW, jitter=0.9, policy=policy))
        for n in range(4)
    ]
    assert waits == [2, 6, 10, 10]
    refused = decide(TIMEOUT, before=Tally(), retries=1, now=NOW, jitter=0, policy=policy)
    assert refused == GiveUp(WhyNot.TOO_MANY_TIMEOUTS)


@pytest.mark.parametrize("crashes,is_last", [(1, False), (2, False), (3, True), (4, True)])
def test_the_third_crash_of_a_job_is_its_last(crashes: int, is_last: bool) -> None:
    assert decide_crash(crashes) == (GiveUp(WhyNot.CRASHED) if is_last else None)


def test_the_number_of_crashes_can_be_set() -> None:
    assert decide_crash(3, max_crashes=5) is None
    assert decide_crash(1, max_crashes=1) == GiveUp(WhyNot.CRASHED)


@settings(max_examples=50, deadline=None)
@given(
    failure=st.sampled_from(FailureClass),
    counted=st.integers(0, 50),
    timeouts=st.integers(0, 50),
    snoozes=st.integers(0, 5_000),
    retries=st.integers(0, 20),
    jitter=st.floats(0, 1, exclude_max=True),
    retry_after=st.none() | st.floats(0, 1e12),
)
def test_a_retry_lies_in_the_future_and_never_exceeds_what_is_allowed(
    failure: FailureClass,
    counted: int,
    timeouts: int,
    snoozes: int,
    retries: int,
    jitter: float,
    retry_after: float | None,
) -> None:
    before = Tally(counted, timeouts, snoozes)
    decision = decide(failure, before=before, retries=retries, now=NOW, jitter=jitter, retry_after=retry_after)
    if isinstance(decision, GiveUp):
        assert failure not in UNCOUNTED
        return
    wait = decision.due_at - NOW
    assert isinstance(decision.due_at, int)
    assert wait >= 0.8 * SECOND
    assert wait >= min(retry_after or 0, 1e6) * SECOND
    assert retry_after is not None or wait <= 36 * SECOND
    if decision.counted:
        assert counted < retries
        assert failure is TRANSIENT or timeouts < 2
