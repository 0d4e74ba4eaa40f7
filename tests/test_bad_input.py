"""Everything wrong that can come in through the library's door, and the one clear error that each of it gets.

Nothing is half-written, and the job that runs meanwhile does not notice. Bad settings stand in test_config.py, bad
results and exceptions in test_bad_results.py.
"""

import asyncio
import functools
import logging
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from paceline import (
    Conflict,
    JobFailed,
    NotFound,
    Paceline,
    PacelineError,
    Refused,
    StoreError,
    UsageError,
    agent,
    call,
)
from paceline.agents.registry import registry
from paceline.store.sqlite import SqliteConnection
from paceline.sync import SyncPaceline

Act = Callable[[Paceline], Coroutine[Any, Any, object]]
EXITS = {UsageError: 2, NotFound: 3, Refused: 4, Conflict: 4, StoreError: 1, JobFailed: 1}
HALF, NUL, FLIPPED, UNSEEN = "\ud800", "a\0b", "abc\u202edef", "\u3164"


class Unspeakable:
    """Every look at it raises."""

    def __repr__(self) -> str:
        raise RuntimeError("do not look")

    __str__ = __repr__


@agent(max_concurrency=None)
async def double(n: int) -> int:
    """A good agent."""
    return 2 * n


@agent(max_concurrency=None)
async def greet(name: str, times: int = 1) -> str:
    """A good agent with two parameters."""
    return name * times


GATES: list[tuple[asyncio.Event, asyncio.Event]] = []


@agent(max_concurrency=None)
async def steady(place: int) -> str:
    """Runs while something bad happens."""
    began, gate = GATES[place]
    began.set()
    await gate.wait()
    return "unharmed"


class Bad(NamedTuple):
    """What somebody does, the error it gets, and the facts that its text must name."""

    act: Act
    kind: type[PacelineError]
    code: str
    says: tuple[str, ...] = ()


def submitting(code: str, *says: str, kind: type[PacelineError] = UsageError, **options: object) -> Bad:
    """A good agent and input with a bad option."""
    return Bad(lambda pl: pl.submit(double, 1, **options), kind, code, says)  # type: ignore[arg-type]


def giving(value: Any, code: str, *says: str, to: Any = double) -> Bad:
    """A good agent with a bad input."""
    return Bad(lambda pl: pl.submit(to, value), UsageError, code, says)


def running(it: Any, code: str, *says: str, kind: type[PacelineError] = UsageError) -> Bad:
    """Something that is no agent."""
    return Bad(lambda pl: pl.submit(it, 1), kind, code, says)


def defining(code: str, *says: str, **options: Any) -> Bad:
    """An agent that cannot be, defined or at the latest submitted."""

    async def act(pl: Paceline) -> object:
        return await pl.submit(agent(**options)(lambda: None))

    return Bad(act, UsageError, code, says)


def graph(code: str, *says: str, **waits: list[object]) -> Bad:
    """A graph whose nodes wait for what does not work."""
    calls = {name: call(double, 1, after=after) for name, after in waits.items()}
    return Bad(lambda pl: pl.submit_graph(calls), UsageError, code, says)


async def everything(events: AsyncIterator[object]) -> object:
    return [event async for event in events]


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


def breaking_off() -> Iterator[int]:
    yield 1
    raise UsageError(code="from_the_caller", what="the iterator itself fails")


def first_yields() -> Generator[int, None, None]:
    yield 1


async def later_yields() -> AsyncIterator[int]:
    yield 1


def takes_any(*values: int) -> int:
    return len(values)


def context_last(n: int, ctx: object) -> int:
    return n


def of_an_object(self: object, n: int) -> int:
    return n


OPTIONS = {
    "a negative delay": submitting("bad_duration", "delay", "negative", "'-5s'", delay="-5s"),
    "a delay without a unit": submitting("bad_duration", "no unit", "'5'", delay="5"),
    "a delay that is not a number": submitting("bad_duration", "finite", "nan", delay=math.nan),
    "an endless delay": submitting("bad_duration", "finite", "inf", delay=math.inf),
    "a delay of 1e999": submitting("bad_duration", "'1e999'", delay="1e999"),
    "a delay of three hundred years": submitting("bad_duration", "years", delay="300 years"),
    "a delay of a million days": submitting("bad_duration", "too long", "3650d", delay="1000000d"),
    "a delay that is true": submitting("bad_duration", "True", delay=True),
    "a delay back in time": submitting("bad_duration", "negative", delay=timedelta(days=-1)),
    "a delay nobody can read": submitting("bad_duration", "unprintable Unspeakable", delay=Unspeakable()),
    "a delay with a NUL": submitting("bad_duration", r"\x00", delay="5s\0"),
    "no time at all": submitting("bad_duration", "timeout", "too short", timeout="0s"),
    "a negative timeout": submitting("bad_duration", "timeout", "negative", timeout=-1),
    "a deadline of nothing": submitting("bad_duration", "deadline", "too short", deadline=0),
    "a priority over 100": submitting("bad_priority", "101", "0 (first) to 100", "critical", priority=101),
    "a negative priority": submitting("bad_priority", "-1", priority=-1),
    "half a priority": submitting("bad_priority", "2.5", priority=2.5),
    "a priority that is not a number": submitting("bad_priority", "nan", priority=math.nan),
    "an unknown priority": submitting("bad_priority", "'urgent'", "high", priority="urgent"),
    "a priority nobody can read": submitting("bad_priority", "Unspeakable", priority=Unspeakable()),
    "an unknown class": submitting("bad_queue_class", "'slow'", "interactive, standard, batch", queue_class="slow"),
    "a class by its number": submitting("bad_queue_class", "0", queue_class=0),
    "a list of classes": submitting("bad_queue_class", "list", queue_class=[]),
    "an empty tenant": submitting("bad_name", "tenant", "empty", tenant=""),
    "a tenant of 201 characters": submitting("bad_name", "too long", "200", tenant="x" * 201),
    "a tenant that climbs": submitting("bad_name", "climbs", "'../../etc'", tenant="../../etc"),
    "a tenant with a NUL": submitting("bad_name", r"\x00", "cannot be seen", tenant=NUL),
    "half a surrogate as tenant": submitting("bad_name", r"\ud800", tenant=HALF),
    "a tenant written backwards": submitting("bad_name", r"\u202e", tenant=FLIPPED),
    "an invisible tenant": submitting("bad_name", "cannot be seen", tenant=UNSEEN),
    "a tenant that ends in a space": submitting("bad_name", "space", tenant="acme "),
    "a number as tenant": submitting("bad_name", "not text", "5", tenant=5),
    "a session that climbs": submitting("bad_name", "session", "climbs", session="a/../b"),
    "a session with a NUL": submitting("bad_name", "session", session=NUL),
    "an empty key": submitting("bad_name", "key", "empty", key=""),
    "a key with a NUL": submitting("bad_name", "key", r"\x00", key=NUL),
    "half a surrogate as key": submitting("bad_name", "key", r"\ud800", key=HALF),
    "a key of 201 characters": submitting("bad_name", "key", "too long", key="k" * 201),
    "negative retries": submitting("bad_retries", "-1", "0 to 1000", retries=-1),
    "retries without end": submitting("bad_retries", "1000000", retries=1_000_000),
    "half a retry": submitting("bad_retries", "1.5", retries=1.5),
    "retries that are true": submitting("bad_retries", "True", retries=True),
    "retries as text": submitting("bad_retries", "'3'", retries="3"),
    "retries nobody can read": submitting("bad_retries", "unprintable", retries=Unspeakable()),
    "an unknown option": submitting("unknown_option", "priorty", "did you mean priority?", priorty=1),
    "a parent that does not exist": submitting("unknown_job", "j999999", kind=NotFound, parent=999_999),
    "a parent that has ended": submitting("parent_ended", "completed", kind=Refused, parent=1),
    "a parent that is no job": submitting("bad_job", "'../j1'", "j42", parent="../j1"),
    "a parent beyond every number": submitting("bad_job", "18446744073709551616", parent=2**64),
    "a key used before with another input": submitting("key_conflict", "'taken'", "j1", kind=Conflict, key="taken"),
}

DEPENDENCIES = {
    "a prerequisite that does not exist": submitting("unknown_job", "j999999", kind=NotFound, after=[999_999]),
    "a prerequisite that is no job": submitting("bad_job", "None", after=[None]),
    "a prerequisite of zero": submitting("bad_job", "0", after=[0]),
    "a prerequisite nobody can read": submitting("bad_job", "unprintable", after=[Unspeakable()]),
    "an unknown condition": submitting("bad_dependency", "'maybe'", "finished", after=[(1, "maybe")]),
    "a list as condition": submitting("bad_dependency", "[]", after=[(1, [])]),
    "one job instead of a list": submitting("bad_dependency", "list", "5", after=5),
    "text instead of a list": submitting("bad_dependency", "'j1'", after="j1"),
    "two that wait for each other": graph("dependency_cycle", "a -> b -> a", a=["b"], b=["a"]),
    "one that waits for itself": graph("dependency_cycle", "a -> a", a=["a"]),
    "the shortest circle of several": graph("dependency_cycle", "d -> e -> d", a=["b"], b=["c"], c=["a", "d"],
                                            d=["e"], e=["d"]),
    "a name that is not in the graph": graph("unknown_dependency", "'frist'", "did you mean 'first'?",
                                             first=[], second=["frist"]),
    "a graph with an unknown condition": graph("bad_dependency", "'maybe'", a=[], b=[("a", "maybe")]),
    "a graph with a missing job": Bad(lambda pl: pl.submit_graph({"a": call(double, 1, after=[999_999])}), NotFound,
                                      "unknown_job", ("j999999",)),
    "a graph of no calls": Bad(lambda pl: pl.submit_graph({"a": 5}), UsageError,  # type: ignore[dict-item]
                               "bad_graph", ("'a'", "5", "call(")),
    "a graph with one bad option": Bad(lambda pl: pl.submit_graph({"a": call(double, 1), "b": call(double, delay=-1)}),
                                       UsageError, "bad_duration", ("negative",)),
    "a graph with one bad input": Bad(lambda pl: pl.submit_graph({"a": call(double, 1), "b": call(double, "x")}),
                                      UsageError, "input_invalid", ("int",)),
    "keys in a graph too large for one step": Bad(
        lambda pl: pl.submit_graph({str(n): call(double, n, key=str(n)) for n in range(501)}),
        UsageError, "too_many_at_once", ("501", "500")),
}  # fmt: skip

INPUTS = {
    "text for a number": giving("1", "input_invalid", "double", "str", "int"),
    "a float for an integer": giving(1.5, "input_invalid", "float", "int"),
    "nothing where something is needed": giving(None, "input_invalid", "null", "int"),
    "an object around the input": giving({"n": 1}, "input_invalid", "without an object around it"),
    "an integer of 64 bits and more": giving(2**63, "input_not_json", "64 bits"),
    "an integer of five thousand digits": giving(10**5000, "input_not_json", "bits"),
    "not a number": giving(math.nan, "input_not_json", "nan", "finite"),
    "more than every number": giving([-math.inf], "input_not_json", "$[0]", "-inf"),
    "a missing parameter": giving({"times": 2}, "input_invalid", "lacks name", to=greet),
    "an unknown parameter": giving({"name": "", "tims": 2}, "input_invalid", "'tims'", "did you mean times?", to=greet),
    "a NUL in text": giving({"name": NUL}, "input_not_json", "NUL", "parameter name", to=greet),
    "half a surrogate": giving({"name": HALF}, "input_not_json", "U+D800", to=greet),
    "ten million bytes": giving({"name": "x" * 10_000_001}, "input_too_large", "10,000,000", "file", to=greet),
    "parts that are too much together": giving({"name": "é" * 4_999_999, "times": 10}, "input_too_large", to=greet),
    "five thousand levels": giving(nested(5_000), "input_not_json", "nested too deeply", "200"),
    "a list that contains itself": giving(endless(), "input_not_json", "contains itself"),
    "a set": giving({1}, "input_not_json", "set", "use a list"),
    "bytes": giving(b"x", "input_not_json", "bytes", "base64"),
    "a moment": giving(datetime(2024, 1, 1, tzinfo=UTC), "input_not_json", "datetime", "isoformat"),
    "an object of one's own": giving(Unspeakable(), "input_not_json", "Unspeakable"),
    "a key that is not text": giving({1: 2}, "input_not_json", "text keys"),
    "one bad input of many": Bad(lambda pl: pl.submit_many(double, [*range(600), "x"]), UsageError, "input_invalid"),
    "inputs that break off": Bad(lambda pl: pl.submit_many(double, breaking_off()), UsageError, "from_the_caller"),
    "one input instead of many": Bad(lambda pl: pl.submit_many(double, 5), UsageError, "bad_inputs",  # type: ignore[arg-type]
                                     ("5",)),
    "one key for many": Bad(lambda pl: pl.submit_many(double, [1], key="k"), UsageError, "one_by_one", ("submit()",)),
    "many that wait for a missing job": Bad(lambda pl: pl.submit_many(double, range(1_200), after=[999_999]), NotFound,
                                            "unknown_job", ("j999999",)),
    "more than may wait": Bad(lambda pl: pl.submit_many(double, range(2_001)), Refused, "queue_full", ("2,001",)),
}  # fmt: skip

AGENTS = {
    "an unknown agent": running("dubble", "unknown_agent", "'dubble'", "did you mean double?", kind=NotFound),
    "an agent named like code": running("builtins.eval", "unknown_agent", "'builtins.eval'", kind=NotFound),
    "an agent with a module": running("os:system", "bad_name", "'os:system'"),
    "an agent that climbs": running("../../etc/passwd", "bad_name", "'../../etc/passwd'", "A-Z a-z 0-9"),
    "an agent without a name": running("", "bad_name", "empty"),
    "an agent of 300 characters": running("a" * 300, "bad_name", "too long", "64"),
    "an agent named like a device": running("CON", "bad_name", "device"),
    "an agent with a dot at the end": running("agent.", "bad_name", "dot"),
    "an agent written backwards": running(FLIPPED, "bad_name", r"\u202e"),
    "an agent with a NUL": running(NUL, "bad_name", r"\x00"),
    "half a surrogate as agent": running(HALF, "bad_name", r"\ud800"),
    "no agent": running(None, "not_a_function", "None", "def"),
    "a number": running(5, "not_a_function", "5"),
    "a class": running(Unspeakable, "not_a_function", "Unspeakable"),
    "a lambda": running(lambda n: n, "agent_without_name", "test_bad_input.py", "name it"),
    "a partial": running(functools.partial(takes_any, 1), "agent_without_name", "name it"),
    "a generator": running(first_yields, "bad_signature", "first_yields", "yield"),
    "an asynchronous generator": running(later_yields, "bad_signature", "later_yields", "yield"),
    "parameters without names": running(takes_any, "bad_signature", "*values", "name each one"),
    "a context that comes last": running(context_last, "bad_signature", "ctx must be the first"),
    "a method": running(of_an_object, "bad_signature", "method"),
    "a builtin": running(print, "bad_signature", "print"),
    "no place to run": defining("bad_setting", "max_concurrency", "1 to 64", name="a", max_concurrency=0),
    "minus one at once": defining("bad_setting", "-1", name="a", max_concurrency=-1),
    "65 at once": defining("bad_setting", "65", "ceiling", name="a", max_concurrency=65),
    "a billion at once": defining("bad_setting", "1000000000", name="a", max_concurrency=1e9),
    "three at once as text": defining("bad_setting", "'3'", name="a", max_concurrency="3"),
    "true at once": defining("bad_setting", "True", name="a", max_concurrency=True),
    "two and a half at once": defining("bad_setting", "2.5", name="a", max_concurrency=2.5),
    "nan at once": defining("bad_setting", "nan", name="a", max_concurrency=math.nan),
    "a misspelt setting": defining("unknown_option", "did you mean max_concurrency?", max_concurency=1),
    "a pool that nobody declared": defining("unknown_pool", "gpu", "declare it", name="a", needs={"gpu": 1}),
    "more than there will ever be": defining("never_fits", "9 of tpu", "up to 2", name="a", needs={"tpu": 9}),
    "two of a lock": defining("never_fits", "2 of lock:x", name="a", needs={"lock:x": 2}),
    "a pool that climbs": defining("bad_setting", "'../x'", name="a", needs={"../x": 1}),
    "none of a pool": defining("bad_setting", "needs[tpu]", name="a", needs={"tpu": 0}),
    "an unknown isolation": defining("bad_setting", "'thread'", "inline", name="a", isolation="thread"),
    "an isolation to come": defining("isolation_unavailable", "inline", name="a", isolation="process"),
    "a name that climbs": defining("bad_name", "'a/../b'", name="a/../b"),
    "a timeout of nothing": defining("bad_duration", "timeout", name="a", timeout=0),
    "retries below nothing": defining("bad_setting", "retries", "-1", name="a", retries=-1),
}

QUESTIONS = {
    "the state of a missing job": Bad(lambda pl: pl.job(999_999).state(), NotFound, "unknown_job", ("j999999",)),
    "waiting for a missing job": Bad(lambda pl: pl.job(999_999).result(), NotFound, "unknown_job", ("j999999",)),
    "cancelling a missing job": Bad(lambda pl: pl.cancel("j999999"), NotFound, "unknown_job", ("j999999", "nearest")),
    "retrying a missing job": Bad(lambda pl: pl.retry("j999999"), NotFound, "unknown_job", ("j999999",)),
    "explaining a missing job": Bad(lambda pl: pl.explain(999_999), NotFound, "unknown_job", ("j999999",)),
    "retrying what has completed": Bad(lambda pl: pl.retry(1), Refused, "not_dead", ("j1", "completed", "failed")),
    "a job that is a path": Bad(lambda pl: pl.cancel("../j1"), UsageError, "bad_job", ("'../j1'", "j42")),
    "a job of a hundred digits": Bad(lambda pl: pl.cancel("9" * 100), UsageError, "bad_job"),
    "a job beyond every number": Bad(lambda pl: pl.explain(2**63), UsageError, "bad_job"),
    "patience that is not a number": Bad(lambda pl: pl.job(1).result(math.nan), UsageError, "bad_duration", ("nan",)),
    "negative patience": Bad(lambda pl: pl.job(1).result(-1), UsageError, "bad_duration", ("timeout", "-1")),
    "an unknown state": Bad(lambda pl: pl.jobs(state="asleep"), UsageError, "bad_state", ("'asleep'", "queued")),
    "minus one lines": Bad(lambda pl: pl.jobs(limit=-1), UsageError, "bad_limit", ("limit", "-1")),
    "jobs of an unknown agent": Bad(lambda pl: pl.jobs(agent="'; drop table jobs"), NotFound, "unknown_agent"),
    "an unknown kind": Bad(lambda pl: everything(pl.events(kinds=["job.faild"])), UsageError, "bad_kind",
                           ("'job.faild'", "did you mean job.failed?")),
    "an unknown severity": Bad(lambda pl: everything(pl.events(severity="loud")), UsageError, "bad_severity"),
    "a cursor before the beginning": Bad(lambda pl: everything(pl.events(after=-1)), UsageError, "bad_after", ("-1",)),
}  # fmt: skip

TABLE = {**OPTIONS, **DEPENDENCIES, **INPUTS, **AGENTS, **QUESTIONS}


@dataclass(frozen=True)
class Stage:
    """A store with a node, and the eyes of somebody else on the same file."""

    pl: SyncPaceline
    eyes: SqliteConnection

    def rows(self) -> dict[str, int]:
        """How many rows each table has."""
        names = [row[0] for row in self.eyes.rows("select name from sqlite_schema where type = 'table'")]
        return {name: self.eyes.rows(f"select count(*) from {name}")[0][0] for name in names}


@pytest.fixture(autouse=True)
def own_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined in a test is forgotten after it."""
    monkeypatch.setattr(registry, "_agents", dict(registry._agents))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    path = tmp_path_factory.mktemp("bad") / "work.db"
    settings = {"max_pending": 2_000, "limits": {"tpu": 2}}
    with Paceline.sync(f"sqlite:///{path}", agents=[double, greet, steady], **settings) as pl:
        pl.submit(double, 2, key="taken").result(timeout=5)
        with closing(SqliteConnection(path, readonly=True)) as eyes:
            yield Stage(pl, eyes)


async def beside_a_running_job(stage: Stage, act: Act) -> BaseException | None:
    """What the act raised; before and after it the same rows are there, and the job that ran meanwhile completes."""
    pl = stage.pl.app
    began, gate = asyncio.Event(), asyncio.Event()
    GATES.append((began, gate))
    job = await pl.submit(steady, len(GATES) - 1)
    async with asyncio.timeout(10):
        await began.wait()
        before, raised = stage.rows(), None
        try:
            await act(pl)
        except PacelineError as error:
            raised = error
        assert stage.rows() == before
        gate.set()
        assert await job.result() == "unharmed"
    return raised


@pytest.mark.parametrize("name", TABLE)
def test_bad_input_gets_one_clear_error_and_changes_nothing(
    name: str, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    bad = TABLE[name]
    error = stage.pl.run(beside_a_running_job(stage, bad.act))
    assert isinstance(error, PacelineError), "it was taken"
    line = str(error)
    assert (type(error), error.code) == (bad.kind, bad.code), line
    assert error.exit_code == EXITS[bad.kind]
    assert [fact for fact in bad.says if fact not in line] == [], line
    assert line.startswith(f"{bad.code}: ")
    assert line.isprintable()
    assert len(line) < 1_000
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__, "a traceback would show more than one error"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
