"""Hints by Postgres between real processes: they arrive, a server that starts again is found, forks do no harm."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import paceline.bus.postgres
from paceline import Paceline
from paceline.bus.postgres import ANYTHING, PostgresNotifier
from paceline.bus.protocol import Hint
from postgres_server import PrivateServer, Stop, fresh_database

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(paceline.bus.postgres.__file__).parents[2])}
PATIENCE_S = 60

NODE = """
import asyncio, sys
from paceline import Paceline, agent

@agent
async def double(number: int) -> int:
    return 2 * number

async def main():
    async with Paceline(sys.argv[1]) as pl:
        await pl._notifier.settled()
        print(pl._notifier.reach, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""

FORKER = """
import asyncio, gc, os, sys, traceback
from paceline.bus.postgres import PostgresNotifier
from paceline.bus.protocol import Hint

notifier, witness = (PostgresNotifier(sys.argv[1], "channel") for _ in range(2))
heard, seen = [], []

async def until(topics, wanted):
    async with asyncio.timeout(20):
        while set(topics) != wanted:
            await asyncio.sleep(0.001)

async def parent():
    for one in (notifier, witness):
        one.start()
        await one.settled()
        await asyncio.sleep(0.01)
    notifier.listen(lambda hints: heard.extend(hint.topic for hint in hints))
    witness.listen(lambda hints: seen.extend(hint.topic for hint in hints))
    line, locks = notifier._line, (notifier._held._lock, notifier._unsaid._lock)
    for lock in locks:
        lock.acquire()
    number = os.fork()
    if number == 0:
        # Never back into the inherited loop: to close it would reach into the parent's.
        try:
            asyncio.run(child())
            gc.collect()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    for lock in locks:
        lock.release()
    assert os.waitpid(number, 0)[1] == 0
    notifier.tell([Hint("ready")])
    await until(seen, {"nodes", "ready"})
    await until(heard, {"nodes", "ready"})
    assert (notifier.reach, notifier._line) == ("hosts", line)
    notifier.stop()
    witness.stop()
    print("fine")

async def child():
    notifier.tell([Hint("cancel")])
    notifier.stop()
    notifier.start()
    await notifier.settled()
    assert notifier.reach == "hosts", notifier.reason
    await asyncio.sleep(0.01)
    fresh = []
    notifier.listen(lambda hints: fresh.extend(hint.topic for hint in hints))
    notifier.tell([Hint("nodes")])
    await until(fresh, {"nodes"})
    assert heard == [], heard
    notifier.stop()

asyncio.run(parent())
"""


@pytest.fixture
def database() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@contextmanager
def node(url: str) -> Iterator[None]:
    """A process with a node of which this one knows nothing."""
    words = [sys.executable, "-W", "error", "-c", NODE, url]
    with subprocess.Popen(
        words, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "hosts\n"
            yield
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - several things may make it true
            await asyncio.sleep(0.01)


def test_a_node_in_another_process_takes_jobs_at_once_and_tells_their_ends(database: str) -> None:
    async def scene() -> None:
        async with Paceline(database, node=False) as pl:
            await until(lambda: pl._notifier is not None and pl._notifier.reach == "hosts")
            assert await (await pl.submit("double", 1)).result(timeout=PATIENCE_S) == 2
            began = time.monotonic()
            for number in range(10):
                assert await (await pl.submit("double", number)).result(timeout=PATIENCE_S) == 2 * number
            assert time.monotonic() - began < 3  # without hints each would wait for the node's next look

    with node(database):
        in_a_loop(scene)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_ends_and_starts_again_is_found(how: Stop) -> None:
    async def scene() -> None:
        notifiers = [PostgresNotifier(server.url, "channel") for _ in range(2)]
        calls: list[tuple[Hint, ...]] = []
        for notifier in notifiers:
            notifier.start()
            await notifier.settled()
        await asyncio.sleep(0.05)
        notifiers[0].listen(calls.append)
        await asyncio.to_thread(server.stop, how)
        await until(lambda: all(notifier.reach == "process" for notifier in notifiers))
        assert notifiers[0].reason
        notifiers[1].tell([Hint("ended", (1,))])
        await asyncio.to_thread(server.start)
        await until(lambda: all(notifier.reach == "hosts" for notifier in notifiers))
        await until(lambda: ANYTHING in calls)
        notifiers[1].tell([Hint("ended", (2,))])
        await until(lambda: any(2 in ids for hints in calls for _, ids in hints))
        for notifier in notifiers:
            notifier.stop()

    with PrivateServer() as server:
        in_a_loop(scene)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_speaks_nor_stops_for_its_parent_and_may_start_afresh(database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKER, database],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)
