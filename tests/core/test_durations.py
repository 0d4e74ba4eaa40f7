"""Durations: what people may write, what is refused, and how they are shown."""

import math
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.durations import DAY, HOUR, LONGEST, MINUTE, SECOND, format_duration, parse_duration
from paceline.core.problem import Problem

READABLE: list[tuple[object, int]] = [
    ("2s", 2 * SECOND),
    ("1m", MINUTE),
    ("1.5h", 90 * MINUTE),
    ("250ms", 250_000),
    ("1h30m", 90 * MINUTE),
    ("10 min", 10 * MINUTE),
    (" 1 h 30 min 5 s ", HOUR + 30 * MINUTE + 5 * SECOND),
    ("2 Days", 2 * DAY),
    ("1w", 7 * DAY),
    ("850us", 850),
    ("850 µs", 850),
    ("0s", 0),
    ("0.1s", 100_000),
    ("0.0000005s", 1),
    (2, 2 * SECOND),
    (0, 0),
    (-0.0, 0),
    (0.25, 250_000),
    (0.1 + 0.2, 300_000),
    (timedelta(minutes=1, microseconds=1), MINUTE + 1),
    ("3650d", LONGEST),
]

REFUSED: list[tuple[object, str]] = [
    ("5", "has no unit"),
    (" 5 ", "has no unit"),
    ("-5", "has no unit"),
    ("1e999", "has no unit"),
    ("", "is empty"),
    ("   ", "is empty"),
    ("-5s", "is negative"),
    (-1, "is negative"),
    (-1e-9, "is negative"),
    (timedelta(seconds=-1), "is negative"),
    (math.nan, "is not a finite number"),
    (math.inf, "is not a finite number"),
    (1e999, "is not a finite number"),
    (1e308, "is too long"),
    (10**5000, "is too long"),
    ("300 years", "has an unknown unit 'years'"),
    ("3651d", "is too long"),
    ("9" * 99 + "s", "is too long"),
    ("9" * 200 + "s", "is too long a text"),
    ("5 parsecs", "has an unknown unit 'parsecs'"),
    ("1e3s", "has an unknown unit 'e'"),
    ("soon", "cannot be read"),
    ("1,5h", "cannot be read"),
    ("1h 30", "cannot be read"),
    ("\u0665s", "cannot be read"),
    ("5s\0", "cannot be read"),
    ("\ud800", "cannot be read"),
    ("30m1h", "names its units twice or out of order"),
    ("1h1h", "names its units twice or out of order"),
    (True, "is neither a number nor text"),
    (None, "is neither a number nor text"),
    ([1], "is neither a number nor text"),
    (b"5s", "is neither a number nor text"),
]

SHOWN = [
    (0, "0 s"),
    (1, "1 µs"),
    (999, "999 µs"),
    (1_500, "1.5 ms"),
    (250_000, "250 ms"),
    (999_999, "999.9 ms"),
    (2 * SECOND, "2 s"),
    (2_560_000, "2.5 s"),
    (59_999_999, "59.9 s"),
    (MINUTE, "1m"),
    (90 * SECOND, "1m 30s"),
    (HOUR + 59 * SECOND, "1h"),
    (90 * MINUTE, "1h 30m"),
    (2 * DAY + 3 * HOUR, "2d 3h"),
    (-90 * SECOND, "-1m 30s"),
]


@pytest.mark.parametrize("value,microseconds", READABLE, ids=count())
def test_a_duration_is_read_exactly(value: object, microseconds: int) -> None:
    assert parse_duration(value, field="delay") == microseconds


@pytest.mark.parametrize("value,reason", REFUSED, ids=count())
def test_what_is_no_duration_is_refused_with_the_reason(value: object, reason: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_duration(value, field="delay")
    assert (caught.value.code, caught.value.what) == ("bad_duration", f"the duration {reason}")


def test_a_refusal_says_where_what_was_found_what_is_allowed_and_what_to_do() -> None:
    with pytest.raises(Problem) as caught:
        parse_duration("5", field="timeout", minimum=1)
    assert str(caught.value) == (
        "bad_duration: the duration has no unit (where: timeout, found: '5', "
        "allowed: 1 µs to 3650d, such as 250ms, 2s, 1.5h or 1h30m) -> give a number of seconds, or text with a unit"
    )


@pytest.mark.parametrize("value,reason", [("1s", "is too short"), (0, "is too short"), ("2h", "is too long")])
def test_the_range_of_a_field_is_kept(value: object, reason: str) -> None:
    with pytest.raises(Problem) as caught:
        parse_duration(value, field="ttl", minimum=2 * SECOND, maximum=HOUR)
    assert caught.value.what == f"the duration {reason}"
    assert caught.value.allowed.startswith("2 s to 1h")


@pytest.mark.parametrize("microseconds,text", SHOWN)
def test_a_duration_is_shown_short(microseconds: int, text: str) -> None:
    assert format_duration(microseconds) == text


@settings(max_examples=50, deadline=None)
@given(st.integers(0, LONGEST))
def test_what_is_shown_can_be_read_again_and_never_says_more_than_it_was(microseconds: int) -> None:
    again = parse_duration(format_duration(microseconds), field="shown")
    assert again <= microseconds
    assert microseconds - again <= microseconds / 10


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([*"0159. -+,hmsde", "ms"]), max_size=9).map("".join) | st.floats() | st.integers())
def test_any_value_is_read_or_refused_and_nothing_else_happens(value: object) -> None:
    try:
        microseconds = parse_duration(value, field="any")
    except Problem:
        return
    assert 0 <= microseconds <= LONGEST
