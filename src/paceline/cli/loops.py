"""An event loop in a process of our own, and what Ctrl-C means to it."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.app import Paceline

T = TypeVar("T")

SWITCH_INTERVAL = 0.0005
"""Seconds a thread may keep the interpreter while another wants it. The usual 5 ms let one busy agent thread slow every
commit of the node fifty-fold; half a millisecond costs nothing that could be measured."""

INTERRUPTED = 130

FAREWELL = 0.2
"""Seconds for threads that are about to end anyway."""

HOPELESS = {"store_gone", "store_damaged", "store_not_a_database", "store_foreign", "store_newer"}
"""What no waiting cures; a full or busy disk is tried again for ever."""


class Interrupts:
    """Counts Ctrl-C and SIGTERM: the first and the second are told, the third ends the process on the spot."""

    def __init__(self) -> None:
        self.count = 0
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before = {number: signal.signal(number, self._caught) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore(self) -> None:
        """Gives the signals back to whoever had them."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, frame: FrameType | None) -> None:
        # A handler of the interpreter, not of the loop: it is heard even while something keeps the loop busy.
        self.count += 1
        if self.count > 2:
            os._exit(INTERRUPTED)
        self._loop.call_soon_threadsafe((self.first if self.count == 1 else self.second).set)


def run_here(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine on the fastest loop there is; this process is ours, so it may be tuned."""
    logging.basicConfig(
        stream=sys.stderr, format="%(name)s: %(message)s",
        level=logging.DEBUG if os.environ.get("PACELINE_DEBUG") else logging.WARNING,
    )  # fmt: skip
    logging.getLogger("paceline.node").addFilter(_still_hoped)
    sys.setswitchinterval(SWITCH_INTERVAL)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work())


def hopeless(app: "Paceline") -> PacelineError | None:
    """What makes it useless for the node here to go on."""
    trouble = app.node.trouble if app.node is not None else None
    return trouble if trouble is not None and trouble.code in HOPELESS else None


async def stop_at_once(app: "Paceline") -> None:
    """Ends a node whose store is lost: there is nothing to write any more, and nobody waits for it."""
    with suppress(PacelineError, TimeoutError):
        await asyncio.wait_for(app.stop(drain=0), 2)


def leave(code: int) -> int:
    """The exit code, or the end of the process at once where a thread of an agent would keep it from ending."""
    end = time.monotonic() + FAREWELL
    try:
        for thread in [one for one in threading.enumerate() if one.name.startswith("paceline-agent")]:
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                _end_now(code)
    except KeyboardInterrupt:
        _end_now(INTERRUPTED)
    return code


def _end_now(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _still_hoped(record: logging.LogRecord) -> bool:
    """What ends the command is its error in the end; no need to log it once per loop before."""
    said = record.args if isinstance(record.args, tuple) else ()
    return not any(isinstance(one, PacelineError) and one.code in HOPELESS for one in said)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows
        return None
    return uvloop.new_event_loop
