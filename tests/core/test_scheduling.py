"""The order of ready jobs and how age changes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.model import SECOND
from paceline.core.problem import Problem
from paceline.core.scheduling import (
    BACKGROUND,
    NO_LIMIT,
    PRIORITY_NAMES,
    QueueClass,
    effective,
    parse_priority,
    parse_queue_class,
    rank,
    standing,
)

INTERACTIVE, STANDARD, BATCH = QueueClass
NOW = 10_000 * SECOND

classes = st.sampled_from(QueueClass)
priorities = st.integers(0, BACKGROUND)
moments = st.integers(NOW - 400 * SECOND, NOW + 10 * SECOND)


@pytest.mark.parametrize(
    "seconds, expected",
    [(0, BATCH), (19.999999, BATCH), (20, STANDARD), (39.999999, STANDARD), (40, INTERACTIVE), (9_000, INTERACTIVE)],
)
def test_a_job_rises_one_class_per_twenty_seconds(seconds: float, expected: QueueClass) -> None:
    assert effective(BATCH, 50, NOW - int(seconds * SECOND), NOW)[0] is expected


@pytest.mark.parametrize("seconds, expected", [(0, 60), (59.999999, 60), (60, 35), (120, 10), (180, 0), (9_000, 0)])
def test_a_job_rises_twenty_five_points_per_sixty_seconds(seconds: float, expected: int) -> None:
    assert effective(BATCH, 60, NOW - int(seconds * SECOND), NOW)[1] == expected


@given(classes, moments)
def test_background_never_rises(queue_class: QueueClass, ready_at: int) -> None:
    assert effective(queue_class, BACKGROUND, ready_at, NOW) == (queue_class, BACKGROUND)


@given(classes, priorities)
def test_a_job_that_is_ready_in_the_future_counts_as_new(queue_class: QueueClass, priority: int) -> None:
    assert effective(queue_class, priority, NOW + 500 * SECOND, NOW) == (queue_class, priority)


@given(classes, priorities, moments, moments, st.integers(0, 400 * SECOND))
def test_within_a_lane_the_older_always_goes_first(
    queue_class: QueueClass, priority: int, one: int, other: int, passed: int
) -> None:
    older, younger = sorted((one, other))
    later = NOW + passed
    assert rank(queue_class, priority, older, 1, later) < rank(queue_class, priority, younger, 2, later)


@given(classes, priorities, moments, st.integers(0, 400 * SECOND))
def test_a_job_never_falls_by_waiting(queue_class: QueueClass, priority: int, ready_at: int, passed: int) -> None:
    before = effective(queue_class, priority, ready_at, NOW)
    after = effective(queue_class, priority, ready_at, NOW + passed)
    assert after[0] <= before[0]
    assert after[1] <= before[1]


@given(classes, priorities, moments, moments)
def test_a_standing_names_the_youngest_job_that_has_risen_as_far(
    queue_class: QueueClass, priority: int, ready_at: int, other: int
) -> None:
    found = standing(queue_class, priority, ready_at, NOW)
    younger = max(ready_at, other)
    same = effective(queue_class, priority, younger, NOW) == found[:2]
    assert same == (younger <= found.until)
    assert found.until == NO_LIMIT or effective(queue_class, priority, found.until + 1, NOW) != found[:2]


def test_the_order_is_class_then_priority_then_arrival_then_number() -> None:
    in_order = [
        rank(INTERACTIVE, 100, NOW, 9, NOW),
        rank(STANDARD, 0, NOW, 8, NOW),
        rank(STANDARD, 50, NOW - SECOND, 7, NOW),
        rank(STANDARD, 50, NOW, 5, NOW),
        rank(STANDARD, 50, NOW, 6, NOW),
        rank(BATCH, 0, NOW - 2 * SECOND, 1, NOW),
    ]
    assert in_order == sorted(in_order)


def test_an_old_batch_job_passes_a_fresh_interactive_one() -> None:
    assert rank(BATCH, 50, NOW - 120 * SECOND, 2, NOW) < rank(INTERACTIVE, 0, NOW, 1, NOW)


@pytest.mark.parametrize("name, number", PRIORITY_NAMES.items())
def test_priorities_have_names(name: str, number: int) -> None:
    assert parse_priority(name) == parse_priority(name.upper()) == parse_priority(number) == number


def test_a_priority_may_be_a_number_in_text() -> None:
    assert parse_priority(" 7 ") == 7


@pytest.mark.parametrize(
    "value",
    [-1, 101, True, False, 1.5, float("nan"), None, "", "urgent", "-1", "101", "1e1", "٣", "9" * 300, [50]],
    ids=repr,
)
def test_anything_else_is_no_priority_and_the_allowed_ones_are_listed(value: object) -> None:
    with pytest.raises(Problem) as caught:
        parse_priority(value)  # type: ignore[arg-type]
    assert caught.value.code == "bad_priority"
    assert "0 (first) to 100 (last), or critical, high, normal, medium, low, background" in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("queue_class", QueueClass)
def test_queue_classes_have_names(queue_class: QueueClass) -> None:
    assert parse_queue_class(queue_class) is queue_class
    assert parse_queue_class(f" {queue_class.word.title()} ") is queue_class


@pytest.mark.parametrize("value", [True, False, 0, 3, None, "", "urgent", "x" * 300, 1.0], ids=repr)
def test_anything_else_is_no_queue_class_and_the_allowed_ones_are_listed(value: object) -> None:
    with pytest.raises(Problem) as caught:
        parse_queue_class(value)  # type: ignore[arg-type]
    assert caught.value.code == "bad_queue_class"
    assert "interactive, standard, batch" in str(caught.value)
    assert len(str(caught.value)) < 250


def test_what_was_found_is_shown_only_when_that_is_safe() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    for value, shown in ((Hostile(), "Hostile"), (10**5_000, "int"), (-1, "-1"), ("urgent", "'urgent'")):
        with pytest.raises(Problem, match=f"found: {shown},"):
            parse_priority(value)  # type: ignore[arg-type]
