"""The picture of all non-empty lanes that a node keeps of the store, and the way to take the next jobs from it."""

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from paceline.core.bands import Bands, Key, Lane
from paceline.core.capacity import Admission, Demand
from paceline.core.choosing import Choice, Taken
from paceline.core.scheduling import QueueClass


class LaneFacts(NamedTuple):
    """What a lane stands for; a lane's number never changes its meaning."""

    id: int
    queue_class: QueueClass
    priority: int
    tenant: int
    agent: int
    home: int = 0


class LaneBook:
    """The non-empty lanes and what is known of them: a cache of the store, never the truth.

    It also remembers, for each effective class, which tenant went last there and how often in a row.
    """

    def __init__(self) -> None:
        self.homes: frozenset[int] = frozenset()
        """Whose submissions count as this node's own; changing it counts for lanes that come later."""
        self._bands = Bands()
        self._streaks: dict[int, tuple[int, int]] = {}
        self._known = 0

    def __len__(self) -> int:
        return len(self._bands.lanes)

    def agents(self) -> set[int]:
        """The agents of all lanes it knows."""
        return {agent for group in self._bands.groups.values() for agent in group.bands}

    @property
    def known(self) -> int:
        """How many jobs it knows."""
        return self._known

    def turns(self) -> dict[int, tuple[int, int]]:
        """Who went last in each class, to be given back when what was taken since does not count."""
        return dict(self._streaks)

    def give_turns_back(self, turns: dict[int, tuple[int, int]]) -> None:
        """As if nothing had been taken since."""
        self._streaks.clear()
        self._streaks.update(turns)

    def load(self, facts: LaneFacts, keys: Iterable[Key], complete: bool) -> None:
        """Replaces what is known of a lane; `complete=False`: the store holds more behind the last job."""
        self.drop(facts.id)
        self._learn(self._open(facts), keys, complete)

    def refill(self, lane: int, keys: Iterable[Key], complete: bool) -> None:
        """Answers a hungry lane with what the store holds behind the last known job; no other lane takes it.

        Nothing behind it means that there is nothing more, whatever `complete` says: asking again would not end.
        """
        found = self._bands.lanes.get(lane)
        if found is not None and found.horizon is not None:
            fresh = list(keys)
            self._learn(found, fresh, complete or not fresh)

    def add(self, facts: LaneFacts, ready_at: int, job: int) -> None:
        """A job became ready. A lane that the book does not know was empty, so this is all of it."""
        lane = self._bands.lanes.get(facts.id) or self._open(facts)
        before = len(lane.keys)
        if lane.insert((ready_at, job)):
            self._known += len(lane.keys) - before
            if lane.item is None or lane.item > (ready_at, job):
                self._bands.update(lane)

    def remove(self, lane: int, ready_at: int, job: int) -> None:
        """Somebody else has taken a job."""
        found = self._bands.lanes.get(lane)
        if found is not None and found.remove((ready_at, job)):
            self._known -= 1
            self._bands.update(found)

    def drop(self, lane: int) -> None:
        """Forgets a lane."""
        found = self._bands.lanes.get(lane)
        if found is not None:
            self._known -= len(found.keys)
            found.keys.clear()
            found.horizon = None
            self._bands.update(found)

    def clear(self) -> None:
        """Forgets every lane; who went last is remembered."""
        self._bands = Bands()
        self._known = 0

    def take(
        self,
        now: int,
        room: int,
        admission: Admission,
        demand_of: Callable[[int], Demand],
        agents: Container[int] | None = None,
    ) -> Taken:
        """Chooses up to `room` jobs that fit, in order; `agents` are those that may start here, None: all.

        When it names hungry lanes, read more, refill them and call again with the same `now` and admission and the
        room that is left.
        """
        choice = Choice(self._bands, self._streaks, now, room, admission, demand_of, agents)
        try:
            return choice.made()
        finally:
            self._known -= len(choice.picks)

    def _open(self, facts: LaneFacts) -> Lane:
        return self._bands.open(*facts[:5], foreign=facts.home not in self.homes)

    def _learn(self, lane: Lane, keys: Iterable[Key], complete: bool) -> None:
        before = len(lane.keys)
        lane.learn(keys, complete)
        self._known += len(lane.keys) - before
        self._bands.update(lane)
