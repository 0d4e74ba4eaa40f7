"""Hints between real processes: they arrive, forks do no harm, the dead are cleared away, strangers not believed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import paceline.bus.local
from paceline.bus.datagrams import pack
from paceline.bus.local import LocalNotifier
from paceline.bus.protocol import Hint

SOURCE = Path(paceline.bus.local.__file__).parents[2]
PATIENCE_S = 30

ANSWERER = """
import asyncio, sys
from pathlib import Path
from paceline.bus.local import LocalNotifier
from paceline.bus.protocol import Hint

async def main():
    done = asyncio.Event()
    notifier = LocalNotifier(Path(sys.argv[1]))

    def answer(hints):
        for topic, ids in hints:
            if topic == "ready":
                notifier.tell([Hint("ended", tuple(job + 1 for job in ids))])
            if topic == "cancel":
                done.set()

    notifier.listen(answer)
    notifier.start()
    print(notifier.reach, flush=True)
    await done.wait()
    notifier.stop()

asyncio.run(main())
"""

FORKER = """
import asyncio, os, sys, traceback
from pathlib import Path
from paceline.bus.local import LocalNotifier
from paceline.bus.protocol import Hint

folder = Path(sys.argv[1])
notifier, witness = LocalNotifier(folder), LocalNotifier(folder)
heard, seen = [], []

def sockets():
    return len(list(folder.iterdir()))

async def until(topics, wanted):
    async with asyncio.timeout(20):
        while set(topics) != wanted:
            await asyncio.sleep(0)

async def parent():
    notifier.listen(lambda hints: heard.extend(hint.topic for hint in hints))
    witness.listen(lambda hints: seen.extend(hint.topic for hint in hints))
    notifier.start()
    witness.start()
    locks = (notifier._held._lock, notifier._neighbours._lock)
    for lock in locks:
        lock.acquire()
    number = os.fork()
    if number == 0:
        # Never back into the inherited loop: to close it would reach into the parent's.
        try:
            asyncio.run(child())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    for lock in locks:
        lock.release()
    assert os.waitpid(number, 0)[1] == 0
    notifier.tell([Hint("ready")])
    await until(seen, {"nodes", "ready"})
    notifier.stop()
    witness.stop()
    assert sockets() == 0
    print("fine")

async def child():
    notifier.tell([Hint("cancel")])
    notifier.stop()
    assert sockets() == 2
    notifier.start()
    assert (notifier.reach, sockets()) == ("host", 3)
    fresh = []
    notifier.listen(lambda hints: fresh.extend(hint.topic for hint in hints))
    notifier.tell([Hint("nodes")])
    await until(fresh, {"nodes"})
    assert heard == [], heard
    notifier.stop()
    assert sockets() == 2

asyncio.run(parent())
"""

STRANGER = """
import os, socket, sys
speaker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
speaker.connect(sys.argv[1])
os.setuid(65534)
speaker.send(bytes.fromhex(sys.argv[2]))
"""


def program(text: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", text, *map(str, arguments)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


@contextmanager
def answering(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that answers `ready` with `ended`, each id one higher, and ends when it hears `cancel`."""
    with subprocess.Popen(program(ANSWERER, folder), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "host\n"
            yield process
        finally:
            process.kill()


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


class Ended:
    """Waits for one job to be told as ended."""

    def __init__(self, job: int) -> None:
        self.job = job
        self.told = asyncio.Event()

    def __call__(self, hints: tuple[Hint, ...]) -> None:
        if any(topic == "ended" and self.job in ids for topic, ids in hints):
            self.told.set()

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.told.wait()


def test_two_processes_tell_each_other(tmp_path: Path) -> None:
    async def scene() -> None:
        notifier, ended = LocalNotifier(tmp_path / "bus"), Ended(42)
        notifier.listen(ended)
        notifier.start()
        with answering(tmp_path / "bus") as other:
            notifier.tell([Hint("ready", (41,))])
            await ended.wait()
            notifier.tell([Hint("cancel")])
            assert await asyncio.to_thread(other.wait, PATIENCE_S) == 0
        notifier.stop()
        assert list((tmp_path / "bus").iterdir()) == []

    in_a_loop(scene)


def test_the_socket_of_a_killed_process_is_cleared_away_by_the_next_tell(tmp_path: Path) -> None:
    async def scene() -> None:
        folder = tmp_path / "bus"
        notifier, ended = LocalNotifier(folder), Ended(2)
        notifier.listen(ended)
        notifier.start()
        with answering(folder) as killed, answering(folder):
            killed.kill()
            await asyncio.to_thread(killed.wait, PATIENCE_S)
            assert len(list(folder.iterdir())) == 3
            notifier.tell([Hint("ready", (1,))])
            assert len(list(folder.iterdir())) == 2
            await ended.wait()
        notifier.stop()

    in_a_loop(scene)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_neither_speaks_nor_stops_for_its_parent_and_may_start_afresh(tmp_path: Path) -> None:
    done = subprocess.run(
        program(FORKER, tmp_path / "bus"),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root on Linux can speak as somebody else")
def test_another_user_is_not_believed_even_with_a_way_in(tmp_path: Path) -> None:
    async def scene() -> None:
        folder = tmp_path / "bus"
        notifier, believed, answered = LocalNotifier(folder), Ended(2), Ended(3)
        notifier.listen(believed)
        notifier.listen(answered)
        notifier.start()
        own = folder / os.listdir(folder)[0]
        stranger = program(STRANGER, own, pack([Hint("ended", (2,))]).hex())
        assert (await asyncio.to_thread(subprocess.run, stranger, check=False, timeout=PATIENCE_S)).returncode == 0
        with answering(folder):
            notifier.tell([Hint("ready", (2,))])
            await answered.wait()
        assert not believed.told.is_set()
        assert notifier.ignored == 1
        notifier.stop()

    in_a_loop(scene)
