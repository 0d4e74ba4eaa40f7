"""Places, types and errors in words: short, on one line, whatever the value's own code does."""

from typing import Any, TypeAlias

from paceline.core.names import escape_for_terminal, shown, storable
from paceline.core.problem import Problem
from paceline.errors import UsageError

Trail: TypeAlias = "tuple[Trail, str | int] | None"
"""The way from the root of a value to a part of it, last step first."""

_LONGEST_PATH = 300
_LONGEST_COMPLAINT = 300


def refusal(kind: str, suffix: str, **fields: str) -> Problem:
    """What is wrong with an input is the caller's mistake; what is wrong with a result is a fact about the job."""
    return (UsageError if kind == "input" else Problem)(code=f"{kind}_{suffix}", **fields)


def path_of(trail: Trail) -> str:
    """The way as people write it: `$.items[3].when`."""
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        named = isinstance(step, str) and step.isascii() and step.isidentifier()
        steps.append(f".{step}" if named else f"[{shown(step)}]")
    path = "$" + "".join(reversed(steps))
    return path if len(path) <= _LONGEST_PATH else f"{path[:200]}…{path[-80:]}"


def place(where: str, detail: str) -> str:
    """A place within a place; the root of a value needs no mention."""
    return where if where and detail == "$" else f"{where}, {detail}" if where else detail


def type_name(kind: Any) -> str:
    """A type as its author wrote it; generic ones with their arguments."""
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def complaint(error: BaseException) -> str:
    """What an error says, as its first line within bounds; for a pydantic error its first finding."""
    try:
        findings = getattr(error, "errors", None)
        if callable(findings) and (found := findings()):
            said = f"{found[0]['msg']} (at {path_of(_trail_of(found[0]['loc']))})"
        else:
            said = str(error).strip().split("\n", 1)[0]
    except Exception:
        return f"<unprintable {type_name(type(error))}>"
    return escape_for_terminal(storable(said, _LONGEST_COMPLAINT)) or type_name(type(error))


def _trail_of(steps: tuple[str | int, ...]) -> Trail:
    trail: Trail = None
    for step in steps:
        trail = (trail, step)
    return trail
