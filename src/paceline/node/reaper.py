"""Ends the lives of nodes that are dead and returns their jobs to the queue."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from paceline.clock import SleepDetector
from paceline.core.leasing import RENEWALS, amnesty_after, lead_for, lease_expired, may_reap
from paceline.core.model import SECOND, NodeRow
from paceline.events import Kind
from paceline.store.protocol import Tx, Unit
from paceline.units.leading import REAPING, leads
from paceline.units.reap import end_node, give_back_jobs

SWEEP_EVERY = 5 * SECOND


class Reaped(NamedTuple):
    """What one sweep found."""

    live: list[NodeRow]
    returned: int
    leads: bool


class Reaper:
    """A node is dead when its lease has expired, or at once when its process is known to be gone.

    Whoever knows of a process that is gone says so. What time alone says counts from one node, the leader.

    After the host has slept nobody's lease means anything until everybody has had one full term to renew it.
    """

    name = "reaper"

    def __init__(
        self,
        node: Callable[[], int],
        process_state: Callable[[str], Literal["alive", "dead", "unknown"]],
        monotonic: Callable[[], int],
        term: int,
        returned: Callable[[], None] = lambda: None,
    ) -> None:
        self._node = node
        self._process_state = process_state
        self._monotonic = monotonic
        self._term = term
        self._returned = returned
        self._lead = lead_for(term)
        self._every = min(SWEEP_EVERY, self._lead)
        self._sleep = SleepDetector(expected_us=self._every)
        self._swept_at: int | None = None
        self._more = False
        self._known: list[NodeRow] = []
        self._pardon_until = 0

    def unit(self, now: int) -> Unit[Reaped]:
        """Leads if it can, and looks at every live node but this one; a guarded write decides who ends a life."""
        slept = self._sleep.observe(now, self._monotonic())
        if slept > 0 or self._sleep.frozen_us > self._term // 2:
            self._pardon_until = amnesty_after(self._term, now, self._term, self._pardon_until)
        pardoned = not may_reap(now, self._pardon_until)
        gone = {node.id for node in self._known if self._process_state(node.identity) == "dead"}
        own = self._node()

        def sweep(tx: Tx) -> Reaped:
            if slept > 0:
                tx.events.announce(tx.now, Kind.HOST_SUSPENDED, f'{{"node":{own},"seconds":{slept // SECOND}}}')
            late = tx.now - now > self._term // 2  # the host may have slept since this was decided
            leading = leads(tx, REAPING, own, self._lead)
            may_end = leading and not (pardoned or late)
            live = [node for node in tx.nodes.live() if node.id != own]
            for node in live:
                if node.id in gone:
                    end_node(tx, node.id, "process_gone")
                elif may_end and lease_expired(node.expires_at, tx.now):
                    end_node(tx, node.id, "lease_expired", expired_by=tx.now)
            holding = tx.nodes.ended_holding()
            return Reaped(live, give_back_jobs(tx, holding[0], "node_died") if holding else 0, leading)

        return sweep

    def done(self, result: Reaped, now: int) -> None:
        """Goes on at once while there are jobs to return, or nodes seen for the first time."""
        known = {node.id for node in self._known}
        self._more = result.returned > 0 or any(node.id not in known for node in result.live)
        self._known = result.live
        self._every = min(SWEEP_EVERY, self._lead // RENEWALS if result.leads else self._lead)
        self._swept_at = now
        if result.returned:
            self._returned()

    def failed(self, now: int) -> None:
        """The next sweep finds the same again."""
        self._swept_at = now

    def next_at(self, now: int) -> int:
        """At the start, every five seconds or several times within a lead, and at once while jobs are returned."""
        return now if self._swept_at is None or self._more else self._swept_at + self._every
