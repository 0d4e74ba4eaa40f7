"""Finish what ended and claim what now fits, in one unit of work: freed capacity is used again in the same commit."""

from collections.abc import Callable
from typing import NamedTuple

from paceline.core.completion import Ended
from paceline.core.model import SECOND, UNIT_ROWS
from paceline.node.completer import Completer
from paceline.node.dispatcher import Dispatcher, Start
from paceline.node.reports import Reports
from paceline.store.protocol import Tx, Unit
from paceline.units.reap import give_back_jobs
from paceline.units.settle import Ends

LOOK_EVERY = SECOND
AGAIN_WITHIN = SECOND // 50
REPORT_WITHIN = SECOND // 10


class Round(NamedTuple):
    """What one unit of the pump did."""

    starts: list[Start]
    ended: Ends
    bodies: dict[int, str]
    stale: list[int]
    due_in: int | None
    """Until the next delay ends, by the store's clock; this process's may go otherwise."""
    postponed: bool
    more: bool
    offers: bool = False
    """Something was left for other nodes."""


class Pump:
    """Holds what ended and was reported until the next unit, and hands out what was claimed."""

    name = "pump"

    def __init__(
        self,
        node: Callable[[], int],
        dispatcher: Dispatcher,
        completer: Completer,
        slots: int,
        take_in: Callable[[Round], None],
    ) -> None:
        self._node = node
        self._dispatcher = dispatcher
        self._completer = completer
        self._take_in = take_in
        self.slots = slots
        self.running: dict[tuple[int, int], Start] = {}
        self.reports = Reports()
        self.accepting = True
        self._ended: list[Ended] = []
        self._taken: tuple[list[Ended], Reports] = ([], Reports())
        self._next_due: int | None = None
        self._looked_at = 0
        self._in_doubt = False

    def ended(self, end: Ended) -> None:
        """An epoch of this node is over; its slot is free with the next unit."""
        self._ended.append(end)

    def unit(self, now: int) -> Unit[Round]:
        """What ended and what may start, as one transaction."""
        ended, self._ended = self._ended[:UNIT_ROWS], self._ended[UNIT_ROWS:]
        reports, self.reports = self.reports, Reports()
        self._taken = (ended, reports)
        room = min(self.slots - len(self.running) + len(ended), UNIT_ROWS) if self.accepting else 0
        node = self._node()
        known = set(self.running) if self._in_doubt else None

        def finish_and_claim(tx: Tx) -> Round:
            reports.write(tx)
            if known is not None:
                give_back_jobs(tx, node, "start_unknown", known)
            postponed = tx.edges.postponements
            finished = self._completer.finish(tx, ended, self._dispatcher.leases)
            company = tx.company.look(node)
            next_due = company.next_due
            if next_due is not None and next_due <= tx.now:
                tx.jobs.make_due(tx.watch.due(tx.now, UNIT_ROWS), tx.now)
                next_due = tx.watch.next_due()
            starts = self._dispatcher.claim(tx, node, room if company.alive else 0, company)
            return Round(
                starts, finished.ended, finished.bodies, finished.stale,
                due_in=None if next_due is None else next_due - tx.now,
                postponed=tx.edges.postponements > postponed, more=len(starts) == UNIT_ROWS,
                offers=self._dispatcher.sharing.begins,
            )  # fmt: skip

        return finish_and_claim

    def done(self, result: Round, now: int) -> None:
        """Committed: forget what ended, start what was claimed."""
        for end in self._taken[0]:
            self.running.pop((end.job.id, end.job.epoch), None)
        for start in result.starts:
            self.running[start.job.id, start.job.epoch] = start
        self._taken = ([], Reports())
        self._in_doubt = False
        self._next_due = None if result.due_in is None else now + result.due_in
        self._looked_at = now
        self._take_in(result)

    def failed(self, now: int) -> None:
        """Not committed, or nobody knows: what ended is told again, and what was claimed unheard goes back."""
        ended, reports = self._taken
        self._ended = ended + self._ended
        self.reports = reports.then(self.reports)
        self._taken = ([], Reports())
        self._dispatcher.forget()
        self._in_doubt = True
        self._looked_at = now

    def busy(self) -> bool:
        """Something waits for the next unit right now."""
        return bool(self._ended)

    def all_ended(self) -> bool:
        """Nothing else runs that might end in the same turn and share the commit."""
        return len(self._ended) == len(self.running)

    def next_at(self, now: int) -> int:
        """Every second, when the next delay ends, and soon after agents said something or others may take the rest."""
        contested = self._dispatcher.passed_over or self._dispatcher.sharing.waits
        soon = AGAIN_WITHIN if contested else REPORT_WITHIN if self.reports else LOOK_EVERY
        look = self._looked_at + soon
        return look if self._next_due is None else min(look, max(self._next_due, self._looked_at + 1))
