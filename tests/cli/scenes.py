"""Stores with jobs in them, for commands that look at jobs, and a look for what a terminal would act upon."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from paceline.config import current
from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.model import Claimed
from paceline.events import Kind
from paceline.opening import open_store
from paceline.testing.clock import ManualClock
from paceline.units.failing import ErrorBody, write_error
from store.world import World

HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp\u2066\u200b\r\b"
"""Colours, a window title, a cleared screen, reversed and hidden text, a line written over."""

ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def assert_harmless(text: str) -> None:
    """Nothing in it acts on a terminal, and it is the hostile text that was shown."""
    assert ACTS.search(text) is None, ascii(text)
    assert "red" in text


@pytest.fixture
def scene(folder: Path) -> Iterator[World]:
    """The store of the working folder, with an agent `worker` and a node that has it; time is real."""
    opened = open_store(current())
    yield World(opened.store, ManualClock())
    opened.store.close()


def fail_with(world: World, job: Claimed, message: str, trace: str | None = None) -> None:
    """The code raised, and this is what it said."""
    body = write_error(ErrorBody("ValueError", message, "permanent", trace=trace))
    world.finish(Ended(job, Ending.RAISED, body, FailureClass.PERMANENT))


def say(world: World, job: Claimed, text: str, level: str = "info") -> None:
    """A line of `ctx.log`."""
    data = msgspec.json.encode({"level": level, "text": text}).decode()
    world.do(lambda tx: tx.jobs.note([(job.id, job.epoch, Kind.JOB_LOG, data)], tx.now))


def progress(world: World, job: Claimed, fraction: float, note: str) -> None:
    """A word of `ctx.progress`."""
    world.do(lambda tx: tx.outcomes.keep_progress([(job.id, fraction, note)]))


def after_looks(monkeypatch: pytest.MonkeyPatch, module: str, *steps: Callable[[], object]) -> None:
    """What happens while a command waits: one step each time it would sleep, then Ctrl-C."""
    waiting = list(steps)

    def sleep(seconds: float) -> None:
        if not waiting:
            raise KeyboardInterrupt
        waiting.pop(0)()

    monkeypatch.setattr(f"{module}.time.sleep", sleep)
