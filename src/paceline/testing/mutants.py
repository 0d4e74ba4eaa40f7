"""Versions of the product with one known mistake each: the simulation is worth something as long as it finds them all.

A mutant changes the SQL of one store, or replaces functions for as long as it runs; the product knows nothing of it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from paceline.client import gather
from paceline.core.leasing import Lead, lease_expired
from paceline.core.sharing import Offer
from paceline.events import Kind
from paceline.node import completer, janitor, pump, reaper
from paceline.node.picture import Picture
from paceline.store.protocol import Tx
from paceline.store.rooms.edges import EdgeRoom
from paceline.store.rooms.pools import PoolRoom
from paceline.store.rooms.sessions import SessionRoom
from paceline.store.rooms.watch import WatchRoom
from paceline.testing.clock import ManualClock
from paceline.testing.world import SimulatedStore
from paceline.units import leading
from paceline.units.leading import REAPING, leads
from paceline.units.reap import end_node, give_back_jobs
from paceline.units.settle import Ends, settle

Patch = tuple[object, str, object]


class Mutant(NamedTuple):
    """One mistake, and the laws that it breaks."""

    name: str
    breaks: frozenset[str]
    sql: Mapping[str, tuple[str, str]] = {}
    """By statement: what stands there, and what stands there instead."""
    patches: Callable[[SimulatedStore], list[Patch]] = lambda store: []

    @contextmanager
    def store(self) -> Iterator[SimulatedStore]:
        """A store of this version of the product; the replaced functions are back afterwards."""
        store = SimulatedStore(ManualClock(), self.sql)
        patches = self.patches(store)
        kept = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
        try:
            for owner, name, value in patches:
                setattr(owner, name, value)
            yield store
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)
            store.close()


def _settled_later(_store: SimulatedStore) -> list[Patch]:
    """Dependents are told by the pump's next unit, from memory, and nobody searches for what a crash has lost."""
    finish, ended_now = completer.Completer.finish, list[Ends]()

    def note(_tx: Tx, ends: Ends) -> Ends:
        ended_now.append(ends)
        return []

    def finish_and_tell_before(self: Any, tx: Tx, ended: Any, leased: bool) -> completer.Finished:
        for ends in vars(self).pop("untold", []):
            settle(tx, ends)
        ended_now.clear()
        finished = finish(self, tx, ended, leased)
        self.untold = list(ended_now)
        return finished

    def find_nothing(_tx: Tx, _after: int) -> janitor.Tidied:
        return janitor.Tidied([], False, False)

    return [
        (completer, "settle", note), (completer.Completer, "finish", finish_and_tell_before),
        (janitor, "search", find_nothing),
    ]  # fmt: skip


def _counted(store: SimulatedStore) -> list[Patch]:
    """A dependent is ready when it was told as often as it has prerequisites."""
    told = "update jobs set snoozes = snoozes + 1 where id = ? and state = 1"
    ready = """select id, epoch, due_at from jobs where id = ? and state = 1
                  and snoozes >= (select count(*) from edges where edges.dependent = jobs.id)"""

    def freed(_self: EdgeRoom, dependents: list[int]) -> list[tuple[Any, ...]]:
        for job in dependents:
            store.rows(told, (job,))
        return [row for job in dependents for row in store.rows(ready, (job,))]

    return [(EdgeRoom, "freed", freed)]


def _unguarded_reaper(store: SimulatedStore) -> list[Patch]:
    """Who is dead is decided from what was read before the transaction."""

    def unit(self: Any, now: int) -> Callable[[Tx], reaper.Reaped]:
        own = self._node()
        late = [node.id for node in store.look(lambda tx: tx.nodes.live()) if lease_expired(node.expires_at, now)]

        def sweep(tx: Tx) -> reaper.Reaped:
            leading = leads(tx, REAPING, own, self._lead)
            for node in late:
                if node != own and leading:
                    end_node(tx, node, "lease_expired")
            holding = tx.nodes.ended_holding()
            return reaper.Reaped([], give_back_jobs(tx, holding[0], "node_died") if holding else 0, leading)

        return sweep

    return [(reaper.Reaper, "unit", unit)]


def _led_once(store: SimulatedStore) -> list[Patch]:
    """Who has led once believes that it always does."""
    led = "select 1 from events where kind = ? and data->>'node' = ?"

    def believes(tx: Tx, name: str, node: int, ttl: int) -> bool:
        return leads(tx, name, node, ttl) or bool(store.rows(led, (int(Kind.LEADER_CHANGED), node)))

    return [(reaper, "leads", believes)]


def _usurped(_store: SimulatedStore) -> list[Patch]:
    """Nobody looks whether the leader's term is over."""

    def wanted(held: Lead | None, node: int, _live: object, now: int, ttl: int) -> Lead:
        return Lead(node, held.term + 1 if held else 1, now + ttl)

    return [(leading, "lead_wanted", wanted)]


def _always(value: object) -> Callable[..., object]:
    return lambda *_: value


def _misplaced(callers: list[gather.Caller]) -> list[Any]:
    return [wish for caller in callers for wish in caller.wishes]


_NO_STATE = ("and +jobs.state = 2 and jobs.due_at is null", "")

MUTANTS = (
    Mutant("a result is accepted from any epoch", frozenset({"stale_write_applied"}),
           {"jobs.complete": ("and jobs.epoch = r.epoch", "")}),
    Mutant("a result is accepted in any state", frozenset({"double_terminal", "unlawful_step"}),
           {"jobs.complete": ("and jobs.state = 3", "")}),
    Mutant("a failure is accepted in any state and epoch",
           frozenset({"stale_write_applied", "double_terminal", "unlawful_step", "double_run"}),
           {"jobs.move": ("and jobs.state = r.expects and jobs.epoch = r.epoch", "")}),
    Mutant("dependents are told in a later transaction", frozenset({"left_behind", "liveness"}),
           patches=_settled_later),
    Mutant("dependents are readied by a count", frozenset({"dep_order", "left_behind", "liveness", "session_order"}),
           patches=_counted),
    Mutant("the reaper does not look again", frozenset({"live_node_reaped", "amnesty"}), patches=_unguarded_reaper),
    Mutant("a leader does not find out that it was deposed", frozenset({"reaped_without_lead"}), patches=_led_once),
    Mutant("a leader is deposed before its term is over", frozenset({"two_leaders"}), patches=_usurped),
    Mutant("what is held is not looked at", frozenset({"over_commit"}),
           patches=lambda _: [(WatchRoom, "held_by_lane", _always([])), (PoolRoom, "held", _always({}))]),
    Mutant("a claim does not look whether the job is ready",
           frozenset({"double_run", "unlawful_step", "unexpected_error"}),
           {"jobs.claim": _NO_STATE, "jobs.lock_ready": _NO_STATE}),
    Mutant("what a cancelled job holds is free before its code has stopped",
           frozenset({"released_while_running", "orphan_lease"}),
           {"jobs.move": ("case when r.keeps_node = 1 then jobs.node else null end", "null")}),
    Mutant("leases stay when their job is given back", frozenset({"orphan_lease", "running_without_lease"}),
           {"pools.release": ("where ", "where units > 1 and ")}),
    Mutant("a life that was ended goes on claiming", frozenset({"running_without_node"}),
           {"company.look": ("select ended_at is null", "select true")}),
    Mutant("nobody forgives a host that slept", frozenset({"amnesty"}),
           patches=lambda _: [(reaper, "may_reap", _always(True))]),
    Mutant("what was claimed unheard is forgotten", frozenset({"over_commit", "liveness"}),
           patches=lambda _: [(pump, "give_back_jobs", _always(0))]),
    Mutant("what was left for other nodes is left for ever", frozenset({"liveness"}),
           patches=lambda _: [(Offer, "over", _always(False))]),
    Mutant("a node that does not share work takes everybody's", frozenset({"pinned"}),
           patches=lambda _: [(Picture, "_is_for_us", _always(True))]),
    Mutant("an abandoned submission can still be accepted", frozenset({"all_or_nothing", "unexpected_error"}),
           {"submissions.abandon_batch": ("set published_at = 0", "set published_at = published_at")}),
    Mutant("callers who submit together mix up their places", frozenset({"dep_order"}),
           patches=lambda _: [(gather, "_joined", _misplaced)]),
    Mutant("a session goes on behind a job that ended before its turn", frozenset({"session_order"}),
           patches=lambda _: [(SessionRoom, "hand_on", _always(None))]),
)  # fmt: skip
