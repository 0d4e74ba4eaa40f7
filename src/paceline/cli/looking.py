"""What commands that look at jobs share: the open store, ids, moments, and jobs as cells or as JSON."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from paceline.cli.arguments import Argument, Option
from paceline.cli.render import Cell, ago, moment
from paceline.client.finding import resolve_id
from paceline.core.explanation import Explanation, Why
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.scheduling import PRIORITY_NAMES, QueueClass
from paceline.errors import UsageError
from paceline.opening import Opened, open_store

if TYPE_CHECKING:
    from paceline.cli.shell import Shell

JobId = Annotated[str, Argument("the job: j42, 42 or the beginning of an id", "JOB")]
JobIds = Annotated[list[str], Argument("jobs: j42, 42 or the beginning of an id", "JOB...")]
Agent = Annotated[str | None, Option("only this agent's jobs", metavar="NAME")]
Tenant = Annotated[str | None, Option("only this tenant's jobs", metavar="NAME")]
USUAL = (QueueClass.STANDARD, PRIORITY_NAMES["normal"])
_NAMES = {number: name for name, number in reversed(PRIORITY_NAMES.items())}
_BAR = 6


@contextmanager
def looking(shell: "Shell", *, create: bool = False) -> Iterator[Opened]:
    """The store, open as long as a command looks at it or writes to it; no thread, no event loop."""
    opened = open_store(shell.settings(), create=create)
    try:
        yield opened
    finally:
        opened.store.close()


def resolve(opened: Opened, words: Sequence[str]) -> list[int]:
    """The jobs that the words mean, each once; nothing is done when one of them means none."""
    return list(dict.fromkeys(opened.store.look(lambda tx: [resolve_id(tx, word) for word in words])))


def at_least(name: str, value: int, least: int = 1) -> int:
    """A count that makes sense."""
    if value < least:
        raise UsageError(code="bad_usage", what=f"{name} cannot be this", found=str(value), allowed=f"{least} or more")
    return value


def clock(microseconds: int | None, now: int, *, exact: bool = False) -> str:
    """A moment in local time, with its date unless it was today."""
    if microseconds is None:
        return ""
    then = datetime.fromtimestamp(microseconds / 1e6, UTC).astimezone()
    today = then.date() == datetime.fromtimestamp(now / 1e6, UTC).astimezone().date()
    time = then.strftime("%H:%M:%S") + (f".{then.microsecond // 1000:03d}" if exact else "")
    return time if today else f"{then:%Y-%m-%d} {time}"


def rank_of(line: JobLine) -> str:
    """Class and priority where they are not the usual ones."""
    if (line.queue_class, line.priority) == USUAL:
        return ""
    priority = _NAMES.get(line.priority, str(line.priority))
    if line.queue_class == USUAL[0]:
        return priority
    word = QueueClass(line.queue_class).word
    return word if line.priority == USUAL[1] else f"{word} {priority}"


def time_of(line: JobLine, now: int) -> str:
    """How long the job has been running or waiting, or how long ago it ended."""
    if line.ended_at is not None:
        return ago(now, line.ended_at)
    since = line.started_at if line.state is State.RUNNING else line.created_at
    return ago(now, since).removesuffix(" ago")


def progress_cell(line: JobLine) -> Cell:
    """A bar and a share."""
    if line.fraction is None or line.state.ended:
        return Cell("")
    full = round(line.fraction * _BAR)
    done, rest = ("█", "░") if (sys.stdout.encoding or "").lower().startswith("utf") else ("#", ".")
    return Cell(f"{done * full}{rest * (_BAR - full)} {line.fraction:4.0%}", "cyan")


def why_cell(line: JobLine, why: Explanation) -> Cell:
    """The reason in a few words, loud where somebody has to do something."""
    if why.code is Why.RUNNING:
        return Cell(line.note or "")
    loud = {Why.NO_NODE: "yellow", Why.NODE_SILENT: "yellow", Why.NEVER_FITS: "red", Why.STOPPING: "yellow"}
    return Cell(why.brief, loud.get(why.code, ""))


def line_as_json(line: JobLine, why: Explanation | None = None) -> dict[str, object]:
    """A job of a listing for programs; names and units never change."""
    found: dict[str, object] = {
        "id": line.name,
        "state": line.state.word,
        "agent": line.agent,
        "tenant": line.tenant,
        "queue_class": QueueClass(line.queue_class).word,
        "priority": line.priority,
        "attempt": line.attempt,
        "epoch": line.epoch,
        "created_at": moment(line.created_at),
        "ready_at": moment(line.ready_at),
        "due_at": moment(line.due_at),
        "started_at": moment(line.started_at),
        "ended_at": moment(line.ended_at),
        "reason": line.reason,
        "progress": {"fraction": line.fraction, "note": line.note},
        "parent": f"j{line.parent}" if line.parent is not None else None,
        "root": f"j{line.root}",
    }
    return found if why is None else {**found, "why": why.code.value, "text": why.text}


def explanation_as_json(why: Explanation) -> dict[str, object]:
    """An explanation for programs."""
    return {
        "id": f"j{why.job}",
        "state": why.state.word,
        "code": why.code.value,
        "text": why.text,
        "since": moment(why.since),
        "until": moment(why.until),
        "waits_for": [f"j{job}" for job in why.waits_for],
        "held_by": [{"id": f"j{one.job}", "since": moment(one.since), "state": one.state.word} for one in why.held_by],
        "position": why.position,
        "ahead": why.ahead,
        "notes": list(why.notes),
        "todo": why.todo,
    }
