"""Everything about one job on one screen, or as one JSON document."""

from collections.abc import Iterator, Sequence

import msgspec

from paceline.cli.looking import clock, explanation_as_json, line_as_json, progress_cell, rank_of
from paceline.cli.render import Cell, Screen, ago, cut, lasted, moment, state_cell, terminal_width
from paceline.client.following import data_of
from paceline.client.reading import Detail, Start
from paceline.core.durations import format_duration
from paceline.core.lifecycle import State
from paceline.core.lines import Linked
from paceline.core.model import Wants
from paceline.core.names import escape_for_terminal
from paceline.events import Event, Kind

FEW_EVENTS = 8
FEW_JOBS = 8
FEW_STARTS = 6
TRACE_LINES = 12


def print_all(screen: Screen, detail: Detail, now: int) -> None:
    """The screen that answers most questions about a job, and says where to ask the others."""
    line, why = detail.line, detail.explanation
    screen.cells(
        Cell(line.name, "bold"), state_cell(line.state.word), line.agent, Cell(f"from {detail.lane.origin}", "dim")
    )
    for text in why.text.split("\n"):
        screen.line(f"  {text}")
    for note in why.notes:
        screen.line(f"  {note}", "dim")
    screen.line()
    screen.facts(_facts(detail, now))
    if detail.error.trace:
        _section(screen, "error", _trace(detail))
    if detail.prerequisites:
        _section(screen, "after", _linked(detail.prerequisites, detail.counts[0]))
    if detail.dependents:
        _section(screen, "before", _linked(detail.dependents, detail.counts[2]))
    if len(detail.starts) > 1:
        _section(screen, "starts", (_start(one, now) for one in detail.starts[-FEW_STARTS:]))
    events = [event for event in detail.events if event.kind not in (Kind.JOB_LOG, Kind.JOB_PROGRESS)]
    _section(screen, "events", (_event(event, now) for event in events[-FEW_EVENTS:]))
    screen.line()
    for todo in _next(detail):
        screen.cells(Cell("do:", "dim"), todo)


def as_json(detail: Detail) -> dict[str, object]:
    """The same for programs; input and result are the values themselves."""
    return {
        **line_as_json(detail.line),
        "origin": detail.lane.origin,
        "key": detail.key,
        "session": detail.session,
        "retries": detail.row.retries,
        "timeout": detail.row.timeout / 1e6,
        "deadline": moment(detail.row.deadline),
        "node": detail.node.name if detail.node else None,
        "input": _value(detail.bodies.input),
        "result": _value(detail.bodies.result) if detail.row.state is State.COMPLETED else None,
        "error": msgspec.to_builtins(detail.error) if detail.error.type else None,
        "why": explanation_as_json(detail.explanation),
        "after": [_linked_as_json(one) for one in detail.prerequisites],
        "before": [_linked_as_json(one) for one in detail.dependents],
        "children": [f"j{job}" for job in detail.children],
        "starts": [
            {"epoch": one.epoch, "started_at": moment(one.started_at), "ended_at": moment(one.ended_at),
             "ending": one.ending or None, "detail": one.detail or None}
            for one in detail.starts
        ],
        "events": [event_as_json(event) for event in detail.events],
    }  # fmt: skip


def event_as_json(event: Event) -> dict[str, object]:
    """An event for programs."""
    return {
        "id": event.id,
        "job": f"j{event.job}" if event.job is not None else None,
        "seq": event.seq,
        "at": moment(event.at),
        "kind": event.kind.word,
        "severity": event.kind.severity.name.lower(),
        "epoch": event.epoch,
        "data": data_of(event),
    }


def said_of(event: Event) -> str:
    """What an event says, in a few words."""
    said = data_of(event)
    if event.kind is Kind.JOB_PROGRESS and isinstance(said.get("fraction"), float | int):
        return f"{said['fraction']:.0%} {said.get('note') or ''}".rstrip()
    if said.get("type"):
        return f"{said['type']}: {said.get('message', '')}"
    if "text" in said:
        return str(said["text"])
    return " ".join(f"{name} {value}" if name != "reason" else str(value) for name, value in said.items() if value)


def _facts(detail: Detail, now: int) -> Iterator[tuple[str, str | Cell]]:
    row, line = detail.row, detail.line
    queue = ", ".join(
        part for part in (rank_of(line), "" if line.tenant == "default" else f"tenant {line.tenant}") if part
    )
    yield "queue", queue
    yield "submitted", f"{clock(row.created_at, now)} ({ago(now, row.created_at)})"
    yield "key", detail.key or ""
    yield "session", detail.session or ""
    if row.due_at is not None and row.state is State.QUEUED:
        yield "due", f"{clock(row.due_at, now)} ({ago(now, row.due_at)})"
    if row.started_at is not None:
        took = lasted(row.started_at, row.ended_at) if row.ended_at else ""
        yield "started", f"{clock(row.started_at, now)} ({ago(now, row.started_at)})"
        yield "ended", f"{clock(row.ended_at, now)} after {took}" if took else ""
    elif row.ended_at is not None:
        yield "ended", clock(row.ended_at, now)
    yield "node", detail.node.name if detail.node else ""
    yield "retries", f"{row.attempt} of {row.retries} used" if row.retries or row.attempt else ""
    yield "deadline", f"{clock(row.deadline, now)} ({ago(now, row.deadline)})" if row.deadline else ""
    if not row.state.ended:
        yield "timeout", format_duration(row.timeout)
        yield "progress", f"{progress_cell(line).text} {line.note or ''}".strip()
    yield "parent", f"j{row.parent}" if row.parent is not None else ""
    yield "children", _names(detail.children)
    yield "input", _preview(detail.bodies.input, detail.bodies.input_length)
    if row.state is State.COMPLETED:
        yield "result", _preview(detail.bodies.result, detail.bodies.result_length)


def _next(detail: Detail) -> Iterator[str]:
    id = detail.line.name
    if detail.explanation.todo and not detail.explanation.todo.startswith("paceline show"):
        yield detail.explanation.todo
    elif detail.row.state in (State.FAILED, State.TIMED_OUT):
        yield f"paceline retry {id}"
    logs = sum(event.kind is Kind.JOB_LOG for event in detail.events)
    if logs:
        yield f"paceline logs {id} ({logs} line{'s' if logs > 1 else ''})"
    if not detail.row.state.ended:
        yield f"paceline explain {id}, paceline wait {id}, paceline cancel {id}"
    if detail.row.state is State.COMPLETED and (detail.bodies.result_length or 0) > _room():
        yield f"paceline show {id} -o json has the whole result"


def _section(screen: Screen, title: str, rows: Iterator[str] | Sequence[str]) -> None:
    screen.line()
    screen.line(title, "dim")
    for row in rows:
        screen.line(f"  {row}")


def _trace(detail: Detail) -> Iterator[str]:
    lines = (detail.error.trace or "").rstrip().splitlines()
    if len(lines) > TRACE_LINES:
        yield f"… {len(lines) - TRACE_LINES} lines before"
    yield from lines[-TRACE_LINES:]
    yield f"{detail.error.type}: {detail.error.message}"


def _linked(jobs: Sequence[Linked], count: int) -> Iterator[str]:
    for one in jobs[:FEW_JOBS]:
        any_end = "  (any end will do)" if one.wants is Wants.FINISHED else ""
        reason = f": {one.reason}" if one.state.ended and one.reason else ""
        yield f"j{one.job:<6} {one.state.word.replace('_', ' '):<10} {one.agent}{reason}{any_end}"
    if count > FEW_JOBS:
        yield f"and {count - FEW_JOBS:,} more"


def _start(one: Start, now: int) -> str:
    ending = one.ending.replace("_", " ") or "running"
    detail = f": {one.detail}" if one.detail else ""
    took = lasted(one.started_at, one.ended_at or now)
    return f"#{one.epoch}  {clock(one.started_at, now)}  {took:>8}  {ending}{detail}"


def _event(event: Event, now: int) -> str:
    return f"{clock(event.at, now, exact=True)}  {event.kind.word.removeprefix('job.'):<10}  {said_of(event)}".rstrip()


def _preview(text: str | None, length: int | None) -> str:
    if text is None:
        return ""
    room = _room()
    shown = cut(escape_for_terminal(text[: 2 * room]), room)
    return shown + (f" ({length:,} characters)" if length and length > room else "")


def _room() -> int:
    """Characters of an input or result that fit into about three lines."""
    return max(40, 3 * terminal_width() - 20)


def _names(jobs: Sequence[int]) -> str:
    shown = ", ".join(f"j{job}" for job in jobs[:FEW_JOBS])
    return shown + (f" and {len(jobs) - FEW_JOBS} more" if len(jobs) > FEW_JOBS else "")


def _linked_as_json(one: Linked) -> dict[str, object]:
    return {
        "id": f"j{one.job}", "state": one.state.word, "agent": one.agent, "reason": one.reason,
        "wants": one.wants.name.lower(), "met": one.met.name.lower(),
    }  # fmt: skip


def _value(text: str | None) -> object:
    return None if text is None else msgspec.json.decode(text)
