"""Durations as people write them and as the code keeps them: whole microseconds."""

import math
import re
from datetime import timedelta

from paceline.core.names import shown
from paceline.core.problem import Problem

Duration = str | int | float | timedelta
"""What may be given where a duration is asked for; plain numbers are seconds."""

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
LONGEST = 10 * 365 * DAY
"""Ten years: more is a slip of the pen, and everything below fits an integer column."""

UNITS: dict[str, int] = {
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY),
}

_LONGEST_TEXT = 100
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\s*")
_BARE = re.compile(r"[+-]?[0-9.]+(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_EXAMPLES = "such as 250ms, 2s, 1.5h or 1h30m"
_STEPS = ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "m"), (MINUTE, "m", SECOND, "s"))


def parse_duration(value: object, *, field: str, minimum: int = 0, maximum: int = LONGEST) -> int:
    """`value` (a `Duration`) in microseconds, between `minimum` and `maximum`; a Problem naming `field` when it is not.

    Plain numbers are seconds. Text needs units, largest first: a bare `5` may have meant anything.
    """
    measured, fault = _measure(value)
    if measured is not None:
        fault = "is negative" if measured < 0 else "is too long" if measured > maximum else "is too short"
        if 0 <= measured <= maximum and (whole := round(measured)) >= minimum:
            return whole
    raise Problem(
        code="bad_duration",
        what=f"the duration {fault}",
        where=field,
        found=shown(value),
        allowed=f"{format_duration(minimum)} to {format_duration(maximum)}, {_EXAMPLES}",
        todo="give a number of seconds, or text with a unit",
    )


def _measure(value: object) -> tuple[float | None, str]:
    """The microseconds, not yet rounded, or None and what is wrong."""
    if isinstance(value, str):
        return _measure_text(value)
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1), ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, "is neither a number nor text"
    if isinstance(value, float) and not math.isfinite(value):
        return None, "is not a finite number"
    return value * SECOND, ""


def _measure_text(text: str) -> tuple[float | None, str]:
    bare = text.strip()
    if not bare:
        return None, "is empty"
    if len(bare) > _LONGEST_TEXT:
        return None, "is too long a text"
    if _BARE.fullmatch(bare):
        return None, "has no unit"
    if bare.startswith("-"):
        return None, "is negative"
    total, place, last = 0, 0, LONGEST
    while place < len(bare):
        part = _PART.match(bare, place)
        if part is None:
            return None, "cannot be read"
        unit = UNITS.get(part[2].lower())
        if unit is None:
            return None, f"has an unknown unit {shown(part[2])}"
        if unit >= last:
            return None, "names its units twice or out of order"
        total += _times(part[1], unit)
        place, last = part.end(), unit
    return total, ""


def _times(decimal: str, unit: int) -> int:
    """A decimal number of units in whole microseconds, without the detour through a float."""
    whole, _, tail = decimal.partition(".")
    scale: int = 10 ** len(tail)
    return (int(whole + tail) * unit + scale // 2) // scale


def format_duration(microseconds: int) -> str:
    """Short and for people: `250 ms`, `2.5 s`, `1m 30s`, `2d 3h`. Rounded down, so never more than it was."""
    if microseconds < 0:
        return "-" + format_duration(-microseconds)
    for large, large_name, small, small_name in _STEPS:
        if microseconds >= large:
            rest = microseconds % large // small
            return f"{microseconds // large}{large_name}" + (f" {rest}{small_name}" if rest else "")
    if microseconds >= SECOND:
        return _with_tenth(microseconds, SECOND, "s")
    if microseconds >= MILLISECOND:
        return _with_tenth(microseconds, MILLISECOND, "ms")
    return f"{microseconds} µs" if microseconds else "0 s"


def _with_tenth(microseconds: int, unit: int, name: str) -> str:
    tenths = microseconds * 10 // unit
    return f"{tenths // 10}.{tenths % 10} {name}" if tenths % 10 else f"{tenths // 10} {name}"
