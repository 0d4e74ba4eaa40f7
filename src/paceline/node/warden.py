"""Ends what has run or waited too long, and stops code whose job somebody has ended."""

import heapq
from collections.abc import Callable
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import SECOND, UNIT_ROWS, Claimed
from paceline.store.protocol import Tx, Unit
from paceline.units.settle import Ends, end_open, settle

LOOK_EVERY = SECOND


class Watched(NamedTuple):
    """What one look found: jobs that ended because of it, and epochs whose code has to stop."""

    ended: Ends
    stop: list[tuple[int, int]]
    deadline_in: int | None
    """Until the next deadline passes, by the store's clock."""


class Warden:
    """The end is written first; the slot and the leases go when the code has really stopped."""

    name = "warden"

    def __init__(
        self,
        node: Callable[[], int],
        still: Callable[[int, int], bool],
        take_in: Callable[[Watched], None],
    ) -> None:
        self._node = node
        self._take_in = take_in
        self._limits: list[tuple[int, int, int]] = []
        self._looked_at: int | None = None
        self._called = False
        self._next_deadline: int | None = None
        self._taken: list[tuple[int, int, int]] = []
        self._still = still

    def watch(self, jobs: list[Claimed], now: int) -> None:
        """These have just started: each may run for its timeout."""
        for job in jobs:
            heapq.heappush(self._limits, (now + job.timeout, job.id, job.epoch))

    def call(self) -> None:
        """Somebody says that jobs were ended: look now."""
        self._called = True

    def unit(self, now: int) -> Unit[Watched]:
        """Everything overdue, and everything of ours that others have ended."""
        self._called = False
        while self._limits and self._limits[0][0] <= now and len(self._taken) < UNIT_ROWS:
            limit = heapq.heappop(self._limits)
            if self._still(limit[1], limit[2]):
                self._taken.append(limit)
        overrun, node = [(job, epoch) for _, job, epoch in self._taken], self._node()

        def look(tx: Tx) -> Watched:
            tx.guards.jobs([job for job, _ in overrun])
            epochs = {row.id: row.epoch for row in tx.jobs.rows([job for job, _ in overrun])} if overrun else {}
            ours = [job for job, epoch in overrun if epochs.get(job) == epoch]
            ended = end_open(tx, ours, State.TIMED_OUT, "timeout")
            ended += end_open(tx, tx.watch.overdue(tx.now, UNIT_ROWS), State.TIMED_OUT, "deadline")
            ended += settle(tx, ended) if ended else []
            deadline = tx.watch.next_deadline()
            left = None if deadline is None else deadline - tx.now
            return Watched(ended, tx.watch.ended_but_held(node, UNIT_ROWS), left)

        return look

    def done(self, result: Watched, now: int) -> None:
        """Tells the node whose code has to stop."""
        self._taken.clear()
        self._looked_at = now
        self._next_deadline = None if result.deadline_in is None else now + result.deadline_in
        self._take_in(result)

    def failed(self, now: int) -> None:
        """The same limits are looked at again."""
        for limit in self._taken:
            heapq.heappush(self._limits, limit)
        self._taken.clear()
        self._looked_at = now

    def next_at(self, now: int) -> int:
        """Every second, when a limit passes, and when called."""
        if self._called or self._looked_at is None:
            return now
        limits = (self._limits[0][0] if self._limits else None, self._next_deadline)
        soonest = min((limit for limit in limits if limit is not None), default=self._looked_at + LOOK_EVERY)
        return min(self._looked_at + LOOK_EVERY, max(soonest, self._looked_at + 1))
