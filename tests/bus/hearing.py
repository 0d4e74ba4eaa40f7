"""Helpers: a listener that can be waited for, and a notifier that lives for the length of a block."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from paceline.bus.local import LocalNotifier
from paceline.bus.protocol import Hint, Notifier

N = TypeVar("N", bound=Notifier)

READY = Hint("ready")
PATIENCE_S = 10


class Heard:
    """A listener that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Hint, ...]] = []
        self.threads: set[int] = set()
        self._changed = asyncio.Event()

    def __call__(self, hints: tuple[Hint, ...]) -> None:
        self.calls.append(hints)
        self.threads.add(threading.get_ident())
        self._changed.set()

    @property
    def hints(self) -> list[Hint]:
        return [hint for call in self.calls for hint in call]

    async def until(self, hint: Hint) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while hint not in self.hints:
                self._changed.clear()
                await self._changed.wait()


@contextmanager
def started(folder: Path | None = None) -> Iterator[tuple[LocalNotifier, Heard]]:
    notifier, heard = LocalNotifier(folder), Heard()
    notifier.listen(heard)
    notifier.start()
    try:
        yield notifier, heard
    finally:
        notifier.stop()


@asynccontextmanager
async def living(notifier: N) -> AsyncIterator[tuple[N, Heard]]:
    """A notifier whose start has come to an end, with a listener that has heard nothing yet."""
    heard = Heard()
    notifier.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await notifier.settled()
        await turn()
        notifier.listen(heard)
        yield notifier, heard
    finally:
        notifier.stop()


async def turn() -> None:
    """Lets everything that is planned for the loop's next turns happen."""
    for _ in range(3):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until it is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await turn()


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


def sockets(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))
