"""What is remembered of failures: three fast ones of a kind, and for how long."""

import pytest

from paceline.core.failure_memory import FailureMemory
from paceline.core.failures import FailureClass

SECOND = 1_000_000
TRANSIENT, TIMEOUT = FailureClass.TRANSIENT, FailureClass.TIMEOUT


def memory_of(*failures: tuple[str, FailureClass, int]) -> FailureMemory:
    memory = FailureMemory()
    for tried, (task, failure, second) in enumerate(failures):
        memory.remember(task, failure, second * SECOND, tried)
    return memory


@pytest.mark.parametrize(
    "seconds,repeating",
    [
        ([0], False),
        ([0, 1], False),
        ([0, 1, 2], True),
        ([0, 30, 60], True),
        ([0, 30, 61], False),
        ([0, 50, 100, 105], True),
        ([0, 50, 100, 150], False),
    ],
)
def test_three_failures_within_a_minute_are_a_repetition(seconds: list[int], repeating: bool) -> None:
    memory = memory_of(*(("task", TRANSIENT, second) for second in seconds))
    assert memory.repeating("task", TRANSIENT, seconds[-1] * SECOND) is repeating


def test_a_repetition_lasts_until_five_quiet_minutes_have_passed() -> None:
    memory = memory_of(("task", TRANSIENT, 0), ("task", TRANSIENT, 1), ("task", TRANSIENT, 2), ("task", TRANSIENT, 200))
    assert memory.repeating("task", TRANSIENT, 500 * SECOND)
    assert not memory.repeating("task", TRANSIENT, 501 * SECOND)
    memory.remember("task", TRANSIENT, 502 * SECOND, "a new try")
    assert not memory.repeating("task", TRANSIENT, 502 * SECOND)


def test_a_failure_that_is_told_again_counts_once() -> None:
    memory = FailureMemory()
    for second, tried in enumerate([1, 1, 2, 1, 2, 2]):
        memory.remember("task", TRANSIENT, second * SECOND, tried)
    assert not memory.repeating("task", TRANSIENT, 5 * SECOND)
    memory.remember("task", TRANSIENT, 6 * SECOND, 3)
    assert memory.repeating("task", TRANSIENT, 6 * SECOND)


def test_a_success_wipes_the_slate_of_its_task_only() -> None:
    memory = memory_of(*((task, TRANSIENT, second) for second in range(3) for task in ("good", "bad")))
    memory.succeeded("good")
    memory.succeeded("never seen")
    memory.remember("good", TRANSIENT, 3 * SECOND, "a new try")
    assert not memory.repeating("good", TRANSIENT, 3 * SECOND)
    assert memory.repeating("bad", TRANSIENT, 3 * SECOND)


def test_tasks_and_classes_are_remembered_apart() -> None:
    memory = memory_of(("a", TRANSIENT, 0), ("a", TIMEOUT, 1), ("b", TRANSIENT, 2), ("a", TRANSIENT, 3))
    assert not any(memory.repeating(task, failure, 4) for task in "ab" for failure in (TRANSIENT, TIMEOUT))


@pytest.mark.parametrize("failure", [FailureClass.RATE_LIMIT, FailureClass.CAPACITY, FailureClass.PERMANENT])
def test_failures_that_cost_no_retry_are_not_remembered(failure: FailureClass) -> None:
    memory = memory_of(*(("task", failure, second) for second in range(5)))
    assert len(memory) == 0
    assert not memory.repeating("task", failure, 5 * SECOND)


def test_a_hundred_records_are_kept_and_the_one_quiet_for_longest_goes_first() -> None:
    memory = memory_of(*(("first", TRANSIENT, 0) for _ in range(3)), *(("second", TRANSIENT, 0) for _ in range(3)))
    for number in range(98):
        memory.remember(number, TRANSIENT, SECOND, number)
    memory.remember("first", TRANSIENT, SECOND, "a new try")
    memory.remember("one too many", TRANSIENT, SECOND, "a try")
    assert len(memory) == 100
    assert memory.repeating("first", TRANSIENT, SECOND)
    assert not memory.repeating("second", TRANSIENT, SECOND)
