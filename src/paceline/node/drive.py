"""Drives loops with the event loop and the store's writer: one unit in flight per loop, told by timers and pokes."""

import asyncio
import logging

from paceline.errors import PacelineError
from paceline.node.loop import Loop
from paceline.store.protocol import Done, Store

log = logging.getLogger("paceline.node")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0


class Driver:
    """Runs one loop until it is stopped; whoever pokes it is served with the next turn of the event loop."""

    def __init__(self, loop: Loop, store: Store) -> None:
        self._loop = loop
        self._store = store
        self._flying = False
        self._planned: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._again = False
        self._stopped = True
        self._pause = FIRST_PAUSE
        self._landed = asyncio.Event()
        self.trouble: PacelineError | None = None

    def start(self) -> None:
        """Begins; starting twice is fine."""
        if self._stopped:
            self._stopped = False
            self.poke()

    def poke(self) -> None:
        """Come soon: with this turn of the event loop, or right after the unit in flight."""
        if self._stopped:
            return
        if self._flying:
            self._again = True
        elif self._planned is None:
            self._planned = asyncio.get_running_loop().call_soon(self._fly)

    def poke_now(self) -> None:
        """Come at once: the unit is in line behind whatever was put there before."""
        if self._stopped:
            return
        if self._flying:
            self._again = True
            return
        if self._planned is not None:
            self._planned.cancel()
        self._fly()

    def plan(self) -> None:
        """The loop may want to come earlier than it said last."""
        if not self._flying and self._planned is None:
            self._plan(self._store.clock.now())

    async def stop(self) -> None:
        """Lets the unit in flight land and begins no other; stopping twice or before starting is fine."""
        self._stopped = True
        for handle in (self._planned, self._timer):
            if handle is not None:
                handle.cancel()
        self._planned = self._timer = None
        while self._flying:
            self._landed.clear()
            await self._landed.wait()

    def _fly(self) -> None:
        self._planned = None
        self._drop_timer()
        now = self._store.clock.now()
        unit = self._loop.unit(now)
        if unit is None:
            self._plan(now)
            return
        try:
            self._store.hand_over(unit, self._land)
            self._flying = True
        except PacelineError as error:
            self._troubled(error)

    def _land(self, done: Done) -> None:
        self._flying = False
        self._landed.set()
        if done.error is not None:
            self._troubled(done.error)
            return
        self.trouble, self._pause = None, FIRST_PAUSE
        now = self._store.clock.now()
        try:
            self._loop.done(done.value, now)
        except Exception:  # a loop that stops without a word would be the worst of all ends
            log.exception("%s could not take in what it had committed", self._loop.name)
        self._plan(now)

    def _plan(self, now: int) -> None:
        if self._stopped:
            return
        if self._again:
            self._again = False
            self.poke()
            return
        self._drop_timer()
        wait = self._loop.next_at(now) - now
        if wait <= 0:
            self.poke()
        else:
            self._timer = asyncio.get_running_loop().call_later(wait / 1_000_000, self.poke)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _troubled(self, error: BaseException) -> None:
        """The database said no: nothing was lost, try again with growing pauses, and say so once."""
        if self.trouble is None:
            log.error("%s: %s", self._loop.name, error, exc_info=None if isinstance(error, PacelineError) else error)
        self.trouble = error if isinstance(error, PacelineError) else PacelineError(code="bug", what=repr(error))
        self._loop.failed(self._store.clock.now())
        if self._stopped:
            return
        self._timer = asyncio.get_running_loop().call_later(self._pause, self.poke)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
