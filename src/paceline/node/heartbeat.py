"""Keeps this node's lease alive; every job it holds is held under that one lease."""

from collections.abc import Callable
from dataclasses import dataclass

from paceline.events import Kind
from paceline.store.protocol import Tx, Unit


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself."""

    name: str
    identity: str
    version: str
    slots: int
    beat_every: int
    dead_after: int
    work_sharing: bool = True


class Heartbeat:
    """Begins a life in the store, renews it, and begins another when somebody has ended it meanwhile."""

    name = "heartbeat"

    def __init__(self, facts: NodeFacts, agents: Callable[[], list[int]], lost: Callable[[], None]) -> None:
        self._facts = facts
        self._agents = agents
        self._lost = lost
        self._beat_at: int | None = None
        self._told: set[int] = set()
        self._telling: set[int] = set()
        self.node = 0

    def unit(self, now: int) -> Unit[int]:
        """Renews the lease, or begins a new life where there is none; answers the node's number."""
        facts, node, serving = self._facts, self.node, self._agents()
        new = [agent for agent in serving if agent not in self._told]
        self._telling = set(serving)

        def beat(tx: Tx) -> int:
            number = node
            if not number or not tx.nodes.beat(number, tx.now, tx.now + facts.dead_after):
                expires_at = tx.now + facts.dead_after
                number = tx.nodes.add(
                    facts.name, facts.identity, facts.version, facts.slots, tx.now, expires_at, facts.work_sharing
                )
                tx.events.announce(tx.now, Kind.NODE_STARTED, f'{{"node":{number}}}')
                tx.nodes.serve(number, serving)
            elif new:
                tx.nodes.serve(number, new)
            return number

        return beat

    def done(self, result: int, now: int) -> None:
        """A new number means that the old life was ended: whatever ran under it is not ours any more."""
        if self.node and result != self.node:
            self._lost()
        self.node = result
        self._told = self._telling
        self._beat_at = now

    def failed(self, now: int) -> None:
        """Tried again soon; the lease outlasts several missed beats."""
        self._beat_at = now - self._facts.beat_every + self._facts.beat_every // 15

    def next_at(self, now: int) -> int:
        """Every `beat_every`, and at once before the first time or when there are new agents to announce."""
        if self._beat_at is None or any(agent not in self._told for agent in self._agents()):
            return now
        return self._beat_at + self._facts.beat_every
