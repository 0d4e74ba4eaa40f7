"""The log of events as a stream: a page at a time behind a cursor that never skips what commits late."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from paceline.core.names import closest, shown
from paceline.errors import UsageError
from paceline.events import Event, Kind, Severity
from paceline.store.protocol import Store, Tx

LOOK_EVERY = 0.2
Listen = Callable[[Callable[[], None]], Callable[[], None]]
"""Takes what shall be called when there may be more, and answers how to stop that."""
PAGE = 1_000
WHOLE_CHAIN = 1_000_000
"""More events than one job has."""


class Filter(NamedTuple):
    """Which events are wanted; None: all."""

    kinds: tuple[Kind, ...] | None = None
    job: int | None = None

    def fits(self, event: Event) -> bool:
        """The event is one of them."""
        return (self.kinds is None or event.kind in self.kinds) and self.job in (None, event.job)


class Page(NamedTuple):
    """A stretch of the log: what fits in it, the cursor behind it, and whether there is more right now."""

    events: list[Event]
    cursor: int
    more: bool


class LogLine(NamedTuple):
    """One line that a job has written with `ctx.log`."""

    id: int
    at: int
    epoch: int
    level: str
    text: str


def filter_of(kinds: Iterable[str] = (), severity: str | Severity | None = None, job: int | None = None) -> Filter:
    """A filter from words: kinds such as `job.failed` or `job`, and the lowest severity."""
    chosen = {kind for word in kinds for kind in kinds_of(word)} or set(Kind)
    if severity is not None:
        least = severity_of(severity)
        chosen = {kind for kind in chosen if kind.severity >= least}
    return Filter(None if chosen == set(Kind) else tuple(sorted(chosen)), job)


def kinds_of(word: str) -> list[Kind]:
    """The kinds that a word means: one of them, or all of a subject."""
    found = [kind for kind in Kind if word in (kind.word, kind.word.partition(".")[0])]
    if found:
        return found
    known = [kind.word for kind in Kind]
    likely = closest(word, known)
    subjects = sorted({kind.partition(".")[0] for kind in known})
    raise UsageError(
        code="bad_kind", what="there is no such kind of event", found=shown(word),
        allowed=", ".join([*subjects, *known]), todo=f"did you mean {likely[0]}?" if likely else "",
    )  # fmt: skip


def severity_of(word: str | Severity) -> Severity:
    """A severity by its name."""
    known = {severity.name.lower(): severity for severity in Severity}
    found = word if isinstance(word, Severity) else known.get(word.strip().lower())
    if found is None:
        allowed = ", ".join(known)
        raise UsageError(code="bad_severity", what="there is no such severity", found=shown(word), allowed=allowed)
    return found


def page(tx: Tx, wanted: Filter, cursor: int, most: int = PAGE) -> Page:
    """What the log holds behind a cursor, oldest first."""
    if wanted.job is not None:
        chain = tx.events.of_job(wanted.job, cursor, WHOLE_CHAIN)
        events = [event for event in chain if wanted.fits(event)]
        return Page(events[:most], events[:most][-1].id if events else cursor, len(events) > most)
    last = tx.events.last()
    events = tx.history.after(cursor, last, wanted.kinds, most)
    full = len(events) == most
    return Page(events, events[-1].id if full else max(last, cursor), full)


def newest(tx: Tx, wanted: Filter, most: int, after: int = 0) -> Page:
    """The end of the log as far back as a cursor, oldest first, and the cursor behind it."""
    last = tx.events.last()
    if wanted.job is not None:
        chain = tx.events.of_job(wanted.job, after, WHOLE_CHAIN)
        events = [event for event in chain if wanted.fits(event)]
        return Page(events[-most:], last, len(events) > most)
    events = tx.history.before(last + 1, after, wanted.kinds, most)
    return Page(events[::-1], last, len(events) == most)


def cursor_at(tx: Tx, moment: int) -> int:
    """The cursor behind which everything from a moment on stands."""
    return tx.history.cursor_at(moment, tx.events.last())


async def follow_events(
    store: Store, wanted: Filter, cursor: int, listen: Listen | None
) -> AsyncGenerator[Event, None]:
    """Events behind a cursor; with `listen`, which is told what to call when there may be more, for ever."""
    woken = asyncio.Event()
    stop_listening = listen(woken.set) if listen is not None else None
    try:
        while True:
            woken.clear()
            found = await store.read(partial(page, wanted=wanted, cursor=cursor))
            for event in found.events:
                yield event
            cursor = found.cursor
            if listen is None and not found.more:
                return
            if not found.more:
                await _either(woken, LOOK_EVERY)
    finally:
        if stop_listening is not None:
            stop_listening()


def logs_of(tx: Tx, job: int) -> list[LogLine]:
    """What a job has written, oldest first."""
    return [log_line(event) for event in newest(tx, Filter((Kind.JOB_LOG,), job), WHOLE_CHAIN).events]


def log_line(event: Event) -> LogLine:
    """The words of a log event."""
    said = data_of(event)
    return LogLine(event.id, event.at, event.epoch, str(said.get("level", "info")), str(said.get("text", "")))


_decode = msgspec.json.Decoder(dict[str, object]).decode


def data_of(event: Event) -> dict[str, object]:
    """What an event says besides its kind."""
    return _decode(event.data) if event.data else {}


async def _either(woken: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(woken.wait(), seconds)
    except TimeoutError:
        return
