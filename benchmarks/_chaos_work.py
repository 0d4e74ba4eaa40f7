"""What flows while processes are killed: agents that leave witness lines, and an endless plan of submissions.

The plan is a function of (seed, number), so that a submitter that was killed says the same again.
"""

import asyncio
import ctypes
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from paceline import Agent, Context, PermanentError, TransientError, agent

HEARTBEAT, DEAD_AFTER = "500ms", "2s"
LEASE_SECONDS = 2.0
SLOTS = 24
GAP_SECONDS = 0.02
"""How long a known-bad variant leaves open what belongs together: wide enough to be hit."""
LIMITS = {"single": 1, "locked": 1, "threaded": 4}
"""How many jobs of these agents may run at once over all nodes."""

_SETTINGS: dict[str, Any] = {"heartbeat": HEARTBEAT, "dead_after": DEAD_AFTER, "drain": "5s", "synchronous": "full"}


def settings() -> dict[str, Any]:
    """What every process of the rig says to Paceline."""
    return dict(_SETTINGS)


def now() -> int:
    """Time since boot in microseconds: the store's time without its offset."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def die_with(parent: int) -> None:
    """Asks the kernel to end this process when the driver ends, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the driver is gone")


async def until_told() -> None:
    """Returns when the driver closes this process's standard input, or asks it to end."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), told.set)
    loop.add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()
    loop.remove_reader(sys.stdin.fileno())


class Work(msgspec.Struct):
    """The input of every job here; what it says can be checked against what became of it."""

    key: str
    ms: int = 0
    fails: int = 0
    doomed: bool = False
    after: int = 0


class Done(msgspec.Struct):
    """The result of every job here: which epoch really did it."""

    key: str
    epoch: int


class Witness:
    """Lines about what really ran, written past the database: a file per process, one write per line."""

    def __init__(self) -> None:
        self._file = -1

    def open(self, folder: Path) -> None:
        """This process's own file."""
        self._file = os.open(folder / f"{os.getpid()}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC)

    def say(self, word: str, ctx: Context, more: str) -> None:
        """`S job epoch pid time key` when code begins, `E job epoch pid time how` when it ends."""
        line = f"{word} {ctx.job.removeprefix('j')} {ctx.epoch} {os.getpid()} {now()} {more}\n"
        os.write(self._file, line.encode())


witness = Witness()


class _Watched:
    """Between the first and the last line of one epoch."""

    def __init__(self, ctx: Context, work: Work) -> None:
        self._ctx, self._work = ctx, work

    def __enter__(self) -> None:
        witness.say("S", self._ctx, self._work.key)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        witness.say("E", self._ctx, "returned" if kind is None else kind.__name__)


def _outcome(ctx: Context, work: Work) -> Done:
    if work.doomed:
        raise PermanentError("this one never works")
    if ctx.attempt <= work.fails:
        raise TransientError("not yet")
    return Done(work.key, ctx.epoch)


async def _run(ctx: Context, work: Work) -> Done:
    with _Watched(ctx, work):
        if work.ms:
            await asyncio.sleep(work.ms / 1000)
        return _outcome(ctx, work)


@agent(max_concurrency=None)
async def noop(ctx: Context, work: Work) -> Done:
    return await _run(ctx, work)


@agent(max_concurrency=None)
async def nap(ctx: Context, work: Work) -> Done:
    return await _run(ctx, work)


@agent(max_concurrency=None, retries=5)
async def flaky(ctx: Context, work: Work) -> Done:
    return await _run(ctx, work)


@agent(max_concurrency=LIMITS["single"])
async def single(ctx: Context, work: Work) -> Done:
    return await _run(ctx, work)


@agent(max_concurrency=None, needs={"lock:chaos": LIMITS["locked"]})
async def locked(ctx: Context, work: Work) -> Done:
    return await _run(ctx, work)


@agent(max_concurrency=LIMITS["threaded"])
def threaded(ctx: Context, work: Work) -> Done:
    with _Watched(ctx, work):
        time.sleep(work.ms / 1000)
        return _outcome(ctx, work)


AGENTS: dict[str, Agent[..., Any]] = {one.name: one for one in (noop, nap, flaky, single, locked, threaded)}

_SHARES = {"noop": 30, "nap": 30, "flaky": 8, "single": 12, "locked": 12, "threaded": 8}
_LONGEST_MS = {"noop": 0, "nap": 500, "flaky": 20, "single": 15, "locked": 15, "threaded": 30}
_BACK = 15
BULK = 600
"""More than one unit of work: written unseen in chunks and accepted in one step."""


class Wanted(NamedTuple):
    """One job of the plan; `after` names earlier keys, with the kind of end that is asked of them."""

    agent: str
    work: Work
    after: tuple[tuple[str, str], ...] = ()


class Step(NamedTuple):
    """One call of the submitter: jobs that are accepted together."""

    kind: str
    jobs: tuple[Wanted, ...]


def key_of(number: int) -> str:
    """The key under which a later step depends on this one."""
    return f"k{number}"


def step(seed: int, number: int) -> Step:
    """What the submitter says at this place of the plan."""
    chance = random.Random(f"{seed}/{number}")
    if number % 160 == 80:
        return Step("bulk", tuple(Wanted("noop", Work(f"{key_of(number)}.{place}")) for place in range(BULK)))
    if number % 12 == 6:
        return Step("graph", _graph(chance, number))
    back = [other for other in range(max(0, number - _BACK), number) if other % 160 != 80]
    before = chance.sample(back, min(len(back), chance.choice((0, 0, 0, 1, 1, 2))))
    after = tuple((key_of(other), chance.choice(("completed", "completed", "finished"))) for other in before)
    return Step("one", (_wanted(chance, key_of(number), after),))


def _graph(chance: random.Random, number: int) -> tuple[Wanted, ...]:
    """A source, three in the middle, and one that waits for all of them under the key of the step."""
    key = key_of(number)
    middle = [_wanted(chance, f"{key}.{place}", ((f"{key}.a", "completed"),)) for place in range(3)]
    last = tuple((one.work.key, "finished") for one in middle)
    return (_wanted(chance, f"{key}.a", ()), *middle, _wanted(chance, key, last))


def _wanted(chance: random.Random, key: str, after: tuple[tuple[str, str], ...]) -> Wanted:
    name = chance.choices(list(_SHARES), list(_SHARES.values()))[0]
    fails = chance.randint(0, 2) if name == "flaky" else 0
    ms = chance.randint(0, _LONGEST_MS[name])
    return Wanted(name, Work(key, ms, fails, doomed=chance.random() < 0.01, after=len(after)), after)
