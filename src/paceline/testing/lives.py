"""The laws of nodes' lives: who may be declared dead, by whom, and how often."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paceline.events import Kind
from paceline.units.leading import REAPING

if TYPE_CHECKING:
    from paceline.testing.laws import Told
    from paceline.testing.world import World

DIED = """
select n.id, n.name, n.ending, n.ended_at, n.expires_at
  from events e join nodes n on n.id = e.data->>'node' where e.id = ?"""
LEAD = """
select l.node, l.term, l.expires_at, n.name, n.ended_at from leaders l join nodes n on n.id = l.node where l.name = ?"""

HOME = """
select h.id, h.ended_at, n.work_sharing from lanes l join nodes h on h.id = l.home join nodes n on n.id = ?
 where l.id = ?"""


class Lives:
    """Looks at every word about a node, and at the lead of whoever reaps; `must` raises what does not hold."""

    def __init__(self, world: "World", must: Callable[[bool, str, str], None]) -> None:
        self._world = world
        self._must = must
        self._rows: Callable[..., list[tuple[Any, ...]]] = world.store.rows
        self._reaped: set[int] = set()
        self._led: set[str] = set()
        self._lead: tuple[int, int, int] | None = None

    def event(self, event: "Told") -> None:
        """Something was said about a node, or about none."""
        self._must(event.kind is not Kind.SWEEP_REPAIRED, "left_behind", "the janitor had to mend something")
        if event.kind is Kind.NODE_DIED:
            for died in self._rows(DIED, (event.id,)):
                self._died(*died)

    def _died(self, node: int, name: str, ending: str, ended_at: int, expires_at: int) -> None:
        world, must = self._world, self._must
        must(node not in self._reaped, "reaped_twice", f"node {node} died twice")
        self._reaped.add(node)
        if ending == "lease_expired":
            must(expires_at <= ended_at, "live_node_reaped", f"node {node} had renewed its lease")
            must(not world.was_pardoned(name), "amnesty", f"node {node} only slept with its host")
            lead = self._rows(LEAD, (REAPING,))
            led = bool(lead) and lead[0][3] == world.committing and lead[0][2] > ended_at
            must(led, "reaped_without_lead", f"{world.committing} ended node {node} and did not lead")
        elif ending == "process_gone":
            must(world.process_state(name) == "dead", "live_node_reaped", f"node {node} lives")
        world.hit(f"node reaped: {ending}")

    def may_start(self, job: int, lane: int, node: int) -> None:
        """A node that does not share work leaves alone what was submitted through another that lives."""
        found = self._rows(HOME, (node, lane))
        for home, ended_at, shares in found:
            if home != node and ended_at is None:
                self._must(bool(shares), "pinned", f"node {node} took j{job} from node {home}")
                self._world.hit("a job went to another node than it came through")
            elif home != node and not shares:
                self._world.hit("a pinned job was taken over from the dead")

    def swept(self, name: str, leads: bool) -> None:
        """A process has looked for dead nodes and believes that it leads, or that it does not."""
        if leads:
            self._led.add(name)
        elif name in self._led:
            self._led.remove(name)
            self._world.hit("a deposed leader reaped nothing")

    def leading(self, now: int) -> None:
        """A lead goes on while it lasts, and to somebody else in the next term when it expired or its node ended."""
        found = self._rows(LEAD, (REAPING,))
        lead, before = (found[0][:3] if found else None), self._lead
        self._lead = lead
        if lead is None or before is None or lead == before:
            return
        over = before[2] <= now
        if lead[:2] == before[:2]:
            self._must(not over, "two_leaders", f"node {lead[0]} went on after its term {lead[1]} had expired")
            return
        ended = self._rows("select 1 from nodes where id = ? and ended_at is not null", (before[0],))
        self._must(lead[1] == before[1] + 1, "two_leaders", f"term {lead[1]} follows term {before[1]}")
        self._must(over or bool(ended), "two_leaders", f"node {lead[0]} leads although node {before[0]} still does")
        self._world.hit("leader changed" if lead[0] != before[0] else "a leader leads again")
