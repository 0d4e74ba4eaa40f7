"""Everything wrong that an agent's code can return or raise, and the one clear error that its job ends with.

The node goes on: a job that runs meanwhile completes, and so does one that is submitted afterwards.
"""

import asyncio
import concurrent.futures
import logging
import math
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Never

import pytest

from paceline import (
    Agent,
    JobFailed,
    Paceline,
    PermanentError,
    TransientError,
    UsageError,
    agent,
)
from paceline.agents.registry import registry
from paceline.sync import SyncPaceline

HALF = "\ud800"
NEVER_RETRIED = ("permanent", "unknown")


class Unspeakable(Exception):
    """Every look at it raises, even with what no honest error is."""

    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Hostile(Exception):
    """Its attributes raise as well."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise KeyboardInterrupt


class Picky(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first: int, *, second: int) -> None:
        super().__init__(f"{first} and {second}")


class OfNoKind(BaseException):
    """Not even an Exception."""


@dataclass
class Point:
    x: int
    y: object = None


class Bad(NamedTuple):
    """What the code of an agent does, and what the error of its job names."""

    act: Callable[[], object]
    type: str
    says: tuple[str, ...]
    annotation: object
    reason: str


def returning(make: Callable[[], object], code: str, *says: str, annotation: object = object) -> Bad:
    """A result that cannot be kept, or that is not what the annotation promises."""
    return Bad(make, "paceline.core.problem.Problem", (f"{code}: ", *says), annotation, "permanent")


def raising(error: BaseException, type: str, *says: str, reason: str = "") -> Bad:
    """An exception."""

    def act() -> Never:
        raise error

    return Bad(act, type, says, object, reason)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


async def not_awaited() -> int:
    return 1


def too_deep() -> Never:
    too_deep()


def without_a_trace() -> Never:
    compiled = compile("raise ValueError('from nowhere')", "<no file\x1b[31m>", "exec")
    eval(compiled)  # noqa: S307 - code whose file has a name that must not reach a terminal
    raise AssertionError


RESULTS = {
    "a set": returning(lambda: {1}, "result_not_json", "set", "use a list"),
    "bytes": returning(lambda: b"x", "result_not_json", "bytes", "base64"),
    "a moment deep inside": returning(lambda: {"items": [{"when": datetime(2024, 1, 1, tzinfo=UTC)}]},
                                      "result_not_json", "$.items[0].when", "datetime"),
    "an object": returning(object, "result_not_json", "object"),
    "an exception": returning(Unspeakable, "result_not_json", "Unspeakable"),
    "a generator": returning(lambda: (n for n in [1]), "result_not_json", "generator"),
    "an open file": returning(lambda: open(__file__, encoding="utf-8"), "result_not_json", "TextIOWrapper"),  # noqa: SIM115
    "not a number": returning(lambda: math.nan, "result_not_json", "nan", "finite"),
    "more than every number": returning(lambda: [math.inf], "result_not_json", "$[0]", "inf"),
    "an integer beyond 64 bits": returning(lambda: 2**63, "result_not_json", "64 bits"),
    "a NUL": returning(lambda: "a\0b", "result_not_json", "NUL"),
    "half a surrogate": returning(lambda: [HALF], "result_not_json", "U+D800", "$[0]"),
    "a key that is not text": returning(lambda: {1: 2}, "result_not_json", "text keys"),
    "a list in itself": returning(endless, "result_not_json", "contains itself"),
    "a thousand levels": returning(lambda: nested(1_000), "result_not_json", "too deeply"),
    "ten million bytes": returning(lambda: "x" * 10_000_000, "result_too_large", "10,000,000"),
    "a point with a hole": returning(lambda: Point(1, object()), "result_not_json", "object", annotation=Point),
    "text instead of a number": returning(lambda: "1", "result_invalid", "str", "int", annotation=int),
    "nothing instead of a number": returning(lambda: None, "result_invalid", "null", "int", annotation=int),
    "the wrong fields": returning(lambda: {"x": "1"}, "result_invalid", "$.x", "int", annotation=Point),
    "a coroutine that nobody awaited": returning(not_awaited, "result_not_json", "coroutine", "async def"),
}  # fmt: skip

ERRORS = {
    "an ordinary error": raising(ValueError("boom"), "ValueError", "boom"),
    "one without words": raising(ValueError(), "ValueError"),
    "one whose text raises": raising(Unspeakable(), "Unspeakable", "<unprintable Unspeakable>"),
    "one whose attributes raise": raising(Hostile("no"), "Hostile"),
    "one that cannot be made again": raising(Picky(1, second=2), "Picky", "1 and 2"),
    "one of a hundred million characters": raising(ValueError("x" * 100_000_000), "ValueError", "xxx", "(cut)"),
    "one with a NUL and half a surrogate": raising(ValueError(f"a\0b{HALF}c"), "ValueError", "a\ufffdb\ufffdc"),
    "a group": raising(ExceptionGroup("two", [ValueError("first"), KeyError("second")]), "ValueError", "first"),
    "the end of the interpreter": raising(SystemExit(0), "SystemExit", "0"),
    "an interrupt from nobody": raising(KeyboardInterrupt(), "KeyboardInterrupt"),
    "a cancellation from nobody": raising(asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
    "the end of a generator": raising(GeneratorExit(), "GeneratorExit"),
    "the end of an iterator": raising(StopAsyncIteration(), "StopAsyncIteration"),
    "no exception at all": raising(OfNoKind("odd"), "OfNoKind", "odd"),
    "no memory": raising(MemoryError(), "MemoryError"),
    "a stack without end": Bad(too_deep, "RecursionError", ("recursion",), object, ""),
    "an error from nowhere": Bad(without_a_trace, "ValueError", ("from nowhere",), object, ""),
    "a usage error of ours": raising(UsageError(code="mine", what="no"), "paceline.errors.UsageError", "mine: no",
                                     reason="permanent"),
    "one said to be permanent": raising(PermanentError("for good"), "paceline.errors.PermanentError", "for good",
                                        reason="permanent"),
    "a timeout without retries": raising(TimeoutError("late"), "TimeoutError", "late", reason="timeout"),
    "a passing error without retries": raising(TransientError("again"), "paceline.errors.TransientError", "again",
                                               reason="transient"),
    "a locked database": raising(sqlite3.OperationalError("database is locked"), "sqlite3.OperationalError", "locked"),
    "a broken pool": raising(concurrent.futures.BrokenExecutor("gone"), "BrokenExecutor", "gone"),
}  # fmt: skip

TABLE = {**RESULTS, **ERRORS}


@agent(max_concurrency=None)
async def steady() -> str:
    """Runs while something bad happens."""
    await OPEN.wait()
    return "unharmed"


OPEN = asyncio.Event()


@pytest.fixture(scope="module")
def pl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncPaceline]:
    path = tmp_path_factory.mktemp("bad") / "work.db"
    with Paceline.sync(f"sqlite:///{path}", agents=[steady]) as pl:
        yield pl


@pytest.fixture(autouse=True)
def own_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined in a test is forgotten after it."""
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))


def as_agent_of(bad: Bad, name: str, *, sync: bool) -> Agent[..., Any]:
    """Code that does it: in the node's event loop, or in a thread."""

    async def code() -> object:
        await asyncio.sleep(0)
        return bad.act()

    def in_thread() -> object:
        return bad.act()

    function: Callable[..., object] = in_thread if sync else code
    function.__annotations__["return"] = bad.annotation
    return agent(name=name, max_concurrency=None)(function)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning", "ignore:coroutine 'not_awaited':RuntimeWarning")
@pytest.mark.parametrize("sync", [False, True], ids=["in the loop", "in a thread"])
@pytest.mark.parametrize("name", TABLE)
def test_bad_code_ends_its_own_job_with_one_clear_error(
    name: str, sync: bool, pl: SyncPaceline, caplog: pytest.LogCaptureFixture
) -> None:
    bad = TABLE[name]
    bad_agent = as_agent_of(bad, f"bad-{list(TABLE).index(name)}-{sync}", sync=sync)
    neighbour, job = pl.submit(steady), pl.submit(bad_agent)
    with pytest.raises(JobFailed) as caught:
        job.result(timeout=10)
    error = caught.value
    line = str(error)
    assert (error.code, error.exit_code) == ("job_failed", 1), line
    assert error.reason in ([bad.reason] if bad.reason else NEVER_RETRIED), line
    assert error.error.type.rpartition(".")[2] == bad.type.rpartition(".")[2], line  # type: ignore[attr-defined]
    assert [fact for fact in bad.says if fact not in line] == [], line[:1_000]
    assert len(line) < 20_000
    line.encode()
    assert error.__cause__ is None
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    pl.run(_let_go())
    assert neighbour.result(timeout=10) == "unharmed"


@pytest.mark.parametrize("sync", [False, True], ids=["in the loop", "in a thread"])
def test_the_end_of_an_iterator_ends_the_job_and_not_the_wait_for_it(sync: bool, pl: SyncPaceline) -> None:
    def act() -> object:
        return next(iter([]))

    empty = as_agent_of(Bad(act, "", (), object, ""), f"empty-{sync}", sync=sync)
    with pytest.raises(JobFailed, match="StopIteration"):
        pl.submit(empty).result(timeout=5)


async def _let_go() -> None:
    OPEN.set()
    await asyncio.sleep(0)
    OPEN.clear()
