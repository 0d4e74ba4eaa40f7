"""What a caller may say about a submission, made exact."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from paceline.core.durations import parse_duration
from paceline.core.model import Wants
from paceline.core.names import check_name, closest, shown
from paceline.core.problem import Problem
from paceline.core.scheduling import QueueClass, parse_priority, parse_queue_class
from paceline.core.submission import Terms

if TYPE_CHECKING:
    from paceline.client.job import Job

MOST_RETRIES = 1_000
FAR = 2**62
"""Beyond every id and every count."""

Duration = str | int | float | timedelta
After = "Job | str | int | tuple[Job | str | int, str]"


class Options(TypedDict, total=False):
    """The keyword arguments of every way to submit."""

    priority: int | str
    queue_class: QueueClass | str
    tenant: str
    delay: Duration
    timeout: Duration
    deadline: Duration
    retries: int
    key: str | None
    session: str | None
    parent: "Job | str | int | None"


class Defaults(NamedTuple):
    """What an agent's definition says where the caller says nothing."""

    priority: int = 50
    queue_class: QueueClass = QueueClass.STANDARD
    tenant: str = "default"
    retries: int = 0
    timeout: int = 3_600_000_000


def job_number(value: object) -> int:
    """The number behind a job handle, `j42`, `42` or 42."""
    number = getattr(value, "number", value)
    if isinstance(number, str):
        text = number.strip().removeprefix("j")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63:
        return number
    raise Problem(code="bad_job", what="this does not name a job", found=shown(value), allowed="a job, j42 or 42")


_WANTS = {"completed": Wants.COMPLETED, "finished": Wants.FINISHED}


def edges_of(after: Iterable[object]) -> tuple[tuple[int, Wants], ...]:
    """What a job waits for: `job`, or `(job, "finished")` for any end."""
    if isinstance(after, str) or not isinstance(after, Iterable):
        raise Problem(
            code="bad_dependency", what="what a job waits for is given as a list", where="after", found=shown(after),
            allowed="[job], [(job, 'finished')]",
        )  # fmt: skip
    found = []
    for item in after:
        job, wants = item if isinstance(item, tuple) and len(item) == 2 else (item, "completed")
        found.append((job_number(job), wants_of(wants)))
    return tuple(found)


def wants_of(word: object) -> Wants:
    """`completed` or `finished`."""
    if isinstance(word, str) and word in _WANTS:
        return _WANTS[word]
    raise Problem(
        code="bad_dependency", what="no such condition on a dependency", where="after", found=shown(word),
        allowed="'completed', 'finished'",
    )  # fmt: skip


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number in its range."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise Problem(
        code=f"bad_{name}", what=f"{name} must be a whole number in its range", where=name, found=shown(value),
        allowed=f"{low} to {high}",
    )  # fmt: skip


def patience(timeout: object) -> float:
    """How many seconds a caller waits."""
    return parse_duration(timeout, field="timeout") / 1_000_000


def terms_of(agent: int, defaults: Defaults, options: Mapping[str, object], now: int, home: int = 0) -> Terms:
    """The options checked one by one, with the agent's defaults for what was left unsaid."""
    said = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(said.keys() - Options.__annotations__.keys())
    if unknown:
        likely = closest(unknown[0], Options.__annotations__)
        raise Problem(
            code="unknown_option", what="no such option of a submission", found=", ".join(unknown),
            allowed=", ".join(sorted(Options.__annotations__)), todo=f"did you mean {likely[0]}?" if likely else "",
        )  # fmt: skip
    deadline = said.get("deadline")
    return Terms(
        agent=agent,
        tenant=check_name("tenant", said.get("tenant", defaults.tenant)),
        queue_class=parse_queue_class(said.get("queue_class", defaults.queue_class)),  # type: ignore[arg-type]
        priority=parse_priority(said.get("priority", defaults.priority)),  # type: ignore[arg-type]
        retries=whole("retries", said["retries"], 0, MOST_RETRIES) if "retries" in said else defaults.retries,
        timeout=parse_duration(said["timeout"], field="timeout", minimum=1) if "timeout" in said else defaults.timeout,
        delay=parse_duration(said.get("delay", 0), field="delay"),
        deadline=None if deadline is None else now + parse_duration(deadline, field="deadline", minimum=1),
        key=check_name("key", said["key"]) if "key" in said else None,
        session=check_name("session", said["session"]) if "session" in said else None,
        parent=job_number(said["parent"]) if "parent" in said else None,
        home=home,
    )


def names_of(after: Sequence[object]) -> tuple[list[tuple[str, Wants]], list[object]]:
    """Splits what a node of a graph waits for into names inside the graph and jobs outside."""
    inside: list[tuple[str, Wants]] = []
    outside: list[object] = []
    for item in after:
        target, wants = item if isinstance(item, tuple) and len(item) == 2 else (item, "completed")
        if isinstance(target, str):
            inside.append((target, wants_of(wants)))
        else:
            outside.append(item)
    return inside, outside
