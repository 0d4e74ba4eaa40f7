"""One question answered: how good the answer is, what was found, what to do."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from paceline.core.problem import Problem

MEGABYTE = 1 << 20


class Grade(StrEnum):
    """How good an answer is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Verdict(NamedTuple):
    """One question answered."""

    name: str
    grade: Grade
    found: str
    todo: str = ""


def ok(name: str, found: str) -> Verdict:
    """Nothing to do."""
    return Verdict(name, Grade.OK, found)


def warn(name: str, found: str, todo: str) -> Verdict:
    """Something to know about."""
    return Verdict(name, Grade.WARN, found, todo)


def failed(name: str, problem: Problem) -> Verdict:
    """A problem as a verdict."""
    details = " ".join(part for part in (problem.what, problem.where and f"({problem.where})", problem.found) if part)
    return Verdict(name, Grade.FAIL, details, problem.todo)


def guarded(name: str, ask: Callable[[], Verdict]) -> Verdict:
    """The verdict, or the problem that asking ran into."""
    try:
        return ask()
    except Problem as problem:
        return failed(name, problem)
    except OSError as error:
        return Verdict(name, Grade.FAIL, str(error), "check owner and mode")


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first few of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def size(count: int) -> str:
    """A number of bytes in the unit that fits."""
    for unit, one in (("GB", 1 << 30), ("MB", MEGABYTE), ("kB", 1 << 10)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} bytes"
