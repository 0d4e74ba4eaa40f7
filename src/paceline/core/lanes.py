"""The picture of all non-empty lanes that a node keeps, and the choice of which jobs start next.

The choice follows the rank of the head jobs, with two corrections. Within one effective class a tenant gets at most
two starts in a row while a job of another tenant fits; "in a row" is counted among the starts of that class, across
calls. And a job of the wrong size that has waited a minute has what it needs kept from all that rank behind it.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count, islice
from typing import NamedTuple, TypeAlias

from paceline.core.bands import Band, Group, Item, Key, Lane, leads
from paceline.core.capacity import Admission, Demand
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass, standing

PATIENCE = 60 * SECOND
IN_A_ROW = 2
HUNGRY_AT_ONCE = 64
HUNGRY_LOOKED_AT = 512


class LaneFacts(NamedTuple):
    """What a lane stands for; a lane's number never changes its meaning."""

    id: int
    queue_class: QueueClass
    priority: int
    tenant: int
    agent: int


class Hungry(NamedTuple):
    """A lane of which more must be read, behind the last job that was known of it."""

    lane: int
    ready_at: int
    job: int


class Taken(NamedTuple):
    """What one call chose: (job, lane) in order, the lanes it must know more of, and who found no room where."""

    picks: list[tuple[int, int]]
    hungry: list[Hungry]
    refused: dict[int, str]


class LaneBook:
    """The non-empty lanes and what is known of them: a cache of the store, never the truth.

    It remembers for each effective class which tenant went last and how often in a row.
    """

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self.groups: dict[tuple[int, int], Group] = {}
        self.tenants: Counter[int] = Counter()
        self.streaks: dict[int, tuple[int, int]] = {}
        self.known = 0
        self._serials = count()

    def __len__(self) -> int:
        return len(self.lanes)

    def load(self, facts: LaneFacts, keys: Iterable[Key], complete: bool) -> None:
        """Replaces what is known of a lane; `complete=False`: the store holds more behind the last one."""
        self.drop(facts.id)
        self._learn(self._open(facts), keys, complete)

    def refill(self, lane: int, keys: Iterable[Key], complete: bool) -> None:
        """Answers a hungry lane with what the store holds behind the last known job; no other lane takes it."""
        found = self.lanes.get(lane)
        if found is not None and found.horizon is not None:
            self._learn(found, keys, complete)

    def add(self, facts: LaneFacts, ready_at: int, job: int) -> None:
        """A job became ready. A lane that the book does not know was empty, so this is all of it."""
        lane = self.lanes.get(facts.id) or self._open(facts)
        before = len(lane.keys)
        if lane.insert((ready_at, job)):
            self.known += len(lane.keys) - before
            if lane.item is None or lane.item > (ready_at, job):
                self.update(lane)

    def drop(self, lane: int) -> None:
        """Forgets a lane."""
        found = self.lanes.get(lane)
        if found is not None:
            self.known -= len(found.keys)
            found.keys.clear()
            found.horizon = None
            self.update(found)

    def clear(self) -> None:
        """Forgets every lane; who went last is remembered."""
        self.lanes.clear()
        self.groups.clear()
        self.tenants.clear()
        self.known = 0

    def take(
        self,
        now: int,
        room: int,
        admission: Admission,
        demand_of: Callable[[int], Demand],
        agents: Container[int] | None = None,
    ) -> Taken:
        """Chooses up to `room` jobs that fit, in order; `agents` are those that may start here, None: all.

        When it names hungry lanes, read more, refill them and call again with the same admission and the room left.
        """
        choice = Choice(self, now, room, admission, demand_of, agents)
        try:
            choice.run()
        finally:
            choice.end()
        return Taken(choice.picks, choice.hungry, choice.refused)

    def update(self, lane: Lane) -> None:
        """Puts the lane's present head in its place; a lane without one is gone."""
        band, was = lane.band, lane.item
        top = band.heap[0] if band.heap else None
        lane.item = lane.head()
        if lane.item is None:
            self.forget(lane)
        elif was is not None and was is top:
            heapreplace(band.heap, lane.item)
        else:
            heappush(band.heap, lane.item)
        self.surface(band, top)

    def surface(self, band: Band, top: Item | None) -> None:
        """Brings band and group in order when the head of the band may not be `top` any more."""
        band.clean()
        group = band.group
        if not band.heap:
            group.bands.pop(band.agent, None)
        elif band.heap[0] is not top:
            band.renew()
            heappush(group.heap, band.heap[0])
        group.clean()
        if not group.bands:
            self.groups.pop((group.queue_class, group.priority), None)

    def forget(self, lane: Lane) -> None:
        """Removes a lane from the counts; the heaps drop what it leaves behind when they come to it."""
        lane.item = None
        lane.band.lanes -= 1
        del self.lanes[lane.id]
        self.tenants[lane.tenant] -= 1
        if not self.tenants[lane.tenant]:
            del self.tenants[lane.tenant]

    def _open(self, facts: LaneFacts) -> Lane:
        place = (facts.queue_class, facts.priority)
        group = self.groups.get(place) or self.groups.setdefault(place, Group(*place))
        band = group.bands.get(facts.agent) or group.bands.setdefault(facts.agent, Band(facts.agent, group))
        lane = self.lanes[facts.id] = Lane(facts.id, facts.tenant, band, next(self._serials))
        band.lanes += 1
        self.tenants[facts.tenant] += 1
        return lane

    def _learn(self, lane: Lane, keys: Iterable[Key], complete: bool) -> None:
        before = len(lane.keys)
        lane.learn(keys, complete)
        self.known += len(lane.keys) - before
        self.update(lane)


Front: TypeAlias = tuple[QueueClass, int, Item, int, Group]
"""The head of a group as it stands now: class, priority, item, until when younger ones stand equally, the group."""

Near: TypeAlias = tuple[int, Item, int, Group]
"""A head that a walk has reached: its priority now, the item, its index in the heap of the group."""
OUTSIDE = -1


class Choice:
    """One call of `take`. Heads only move back in it, so an outdated front stands too early, never too late."""

    def __init__(
        self,
        book: LaneBook,
        now: int,
        room: int,
        admission: Admission,
        demand_of: Callable[[int], Demand],
        agents: Container[int] | None,
    ) -> None:
        self.book, self.now, self.room, self.admission = book, now, room, admission
        self.demand_of, self.agents = demand_of, agents
        self.picks: list[tuple[int, int]] = []
        self.hungry: list[Hungry] = []
        self.refused: dict[int, str] = {}
        self.demands: dict[int, Demand | None] = {}
        self.kept: set[int] = set()
        self.alone: set[int] = set()
        self.aside: list[Band] = []
        self.fronts = [self.front(group) for group in book.groups.values()]
        heapify(self.fronts)

    def front(self, group: Group) -> Front:
        """Where the head of a group stands now."""
        item = group.heap[0]
        stands = standing(group.queue_class, group.priority, item[0], self.now)
        return (stands.queue_class, stands.priority, item, stands.until, group)

    def run(self) -> None:
        """Walks down the order until the room is used, nothing is left, or more must be read."""
        while self.room > 0 and self.fronts and not self.hungry:
            queue_class, _, item, _, group = self.fronts[0]
            if not group.heap:
                heappop(self.fronts)
            elif group.heap[0] is not item:
                heapreplace(self.fronts, self.front(group))
            elif (demand := self.fitting(item) if item[2] else self.demand(item)) is None:
                self.set_aside(item)
            elif item[2]:
                self.ask(item)
            elif self.must_yield(queue_class, item[4].tenant):
                if self.fitting(item) is not None:
                    self.yield_to_another(queue_class, item[4].tenant)
            else:
                self.drain(demand)

    def end(self) -> None:
        """What was set aside for this call comes back."""
        for band in self.aside:
            heappush(band.group.heap, band.heap[0])
        self.book.known -= len(self.picks)

    def drain(self, demand: Demand) -> None:
        """Starts jobs of the first band for as long as nobody else can be first. This is the hot loop."""
        queue_class, _, top, _, _ = self.fronts[0]
        bound, band, book, admit = self.bound(), top[4].band, self.book, self.admission.admit
        heap, picks, room = band.heap, self.picks, self.room
        last, row = book.streaks.get(queue_class, (None, 0))
        crowd = self.is_crowd(queue_class)
        while room and heap and heap[0] <= bound:  # equal: an outdated twin of this very head
            _, job, phantom, _, lane = heap[0]
            same = lane.tenant == last
            if phantom or (same and crowd and row >= IN_A_ROW):
                break
            if demand and (pool := admit(demand)) is not None:
                self.refuse(band.agent, pool)
                break
            last, row = lane.tenant, row + 1 if same else 1
            picks.append((job, lane.id))
            room -= 1
            lane.keys.popleft()
            lane.item = lane.head()
            if lane.item is None:
                book.forget(lane)
                heappop(heap)
            else:
                heapreplace(heap, lane.item)
            if heap and heap[0][4].item is not heap[0]:
                band.clean()
        self.room = room
        if last is not None:
            book.streaks[queue_class] = (last, row)
        book.surface(band, top)

    def bound(self) -> tuple[object, ...]:
        """The place in the first group's order at which it stops being first, or its band the first of it."""
        queue_class, priority, _, until, group = self.fronts[0]
        bound: tuple[object, ...] = (until + 1,)
        for item in group.heap[1:3]:
            bound = min(bound, item)
        for front in self.fronts[1:3]:
            if front[1] == priority and front[0] == queue_class:
                bound = min(bound, front[2])
        return bound

    def is_crowd(self, queue_class: int) -> bool:
        """Another tenant may have a job of this class that fits."""
        return len(self.book.tenants) > 1 and queue_class not in self.alone

    def must_yield(self, queue_class: int, tenant: int) -> bool:
        """The tenant had its turns in this class, and somebody else may wait."""
        last, row = self.book.streaks.get(queue_class, (None, 0))
        return last == tenant and row >= IN_A_ROW and self.is_crowd(queue_class)

    def yield_to_another(self, queue_class: QueueClass, tenant: int) -> None:
        """Starts the first fitting job of another tenant; when there is none, there is none for the whole call."""
        item = self.another(queue_class, tenant)
        if item is not None:
            lane = item[4]
            self.admission.admit(self.demand_of(lane.band.agent))
            self.book.streaks[queue_class] = (lane.tenant, 1)
            self.picks.append((item[1], lane.id))
            self.room -= 1
            lane.keys.popleft()
            self.book.update(lane)
        elif not self.hungry:
            self.alone.add(queue_class)

    def another(self, queue_class: QueueClass, tenant: int) -> Item | None:
        """The first fitting job of another tenant within a class: walks the heads in order, without moving them.

        What an old job on the way needs is kept from those behind it, but not from the tenant that yields: hence
        the trial.
        """
        trial = self.admission
        near: list[Near] = []
        for front in self.fronts:
            if front[0] == queue_class and front[4].heap:
                self.reach(near, queue_class, front[4], 0)
        while near:
            _, item, index, group = heappop(near)
            for child in range(2 * index + 1, min(2 * index + 3, len(group.heap))) if index >= 0 else ():
                self.reach(near, queue_class, group, child)
            if index >= 0 and not leads(item):
                continue
            band = item[4].band
            demand = self.fitting(item)
            if demand is None:
                if self.is_passed_over(item):
                    trial = self.admission.copy() if trial is self.admission else trial
                    trial.keep(self.demand_of(band.agent))
                if self.hungry:
                    return None
            elif item[4].tenant == tenant:
                second = band.first_of_others(tenant)
                if second is not None:
                    self.meet(near, queue_class, group, OUTSIDE, second)
            elif trial is self.admission or trial.refusal(demand) is None:
                if item[2]:
                    self.ask(item)
                return None if item[2] else item
        return None

    def reach(self, near: list[Near], queue_class: QueueClass, group: Group, index: int) -> None:
        """Adds a node of a group's heap to a walk, unless it and so all below it stand in a later class."""
        self.meet(near, queue_class, group, index, group.heap[index])

    def meet(self, near: list[Near], queue_class: QueueClass, group: Group, index: int, item: Item) -> None:
        """Adds a head to a walk; `OUTSIDE`: it is no node of the group's heap."""
        stands = standing(group.queue_class, group.priority, item[0], self.now)
        if stands.queue_class == queue_class:
            heappush(near, (stands.priority, item, index, group))

    def demand(self, item: Item) -> Demand | None:
        """What a job of this agent needs; None when none of its jobs can start in this call."""
        agent = item[4].band.agent
        if agent not in self.demands:
            starts_here = self.agents is None or agent in self.agents
            self.demands[agent] = self.demand_of(agent) if starts_here else None
        return self.demands[agent]

    def fitting(self, item: Item) -> Demand | None:
        """The same, asking admission as well; takes nothing."""
        demand = self.demand(item)
        pool = self.admission.refusal(demand) if demand else None
        if pool is None:
            return demand
        self.refuse(item[4].band.agent, pool)
        return None

    def refuse(self, agent: int, pool: str) -> None:
        """What does not fit now does not fit later in this call: the room only shrinks."""
        self.refused[agent] = pool
        self.demands[agent] = None

    def set_aside(self, item: Item) -> None:
        """Steps over all lanes of a band that cannot start; what its oldest job needs may have to be kept."""
        if self.is_passed_over(item):
            self.kept.add(item[4].band.agent)
            self.admission.keep(self.demand_of(item[4].band.agent))
        if not self.hungry:
            group = item[4].band.group
            heappop(group.heap)
            group.clean()
            self.aside.append(item[4].band)

    def is_passed_over(self, item: Item) -> bool:
        """The job was refused and has been ready for so long that smaller ones behind it must not pass any more."""
        agent = item[4].band.agent
        if agent not in self.refused or self.now - item[0] < PATIENCE:
            return False
        if item[2] and agent not in self.kept:
            self.ask(item)
        return not item[2]

    def ask(self, item: Item) -> None:
        """Names a lane of which more must be read, and those that will soon need it too, to save round trips."""
        first = item[4].band.group
        groups = [first, *(front[4] for front in self.fronts if front[4] is not first)]
        bands = (head[4].band for group in groups for head in group.heap[:HUNGRY_AT_ONCE])
        heads = (head for band in bands for head in band.heap[:HUNGRY_AT_ONCE])
        dry = (head for head in islice(heads, HUNGRY_LOOKED_AT) if head[2] and head[4].item is head)
        useful = (head for head in dry if self.demand(head) is not None)
        found = {one[4].id: Hungry(one[4].id, one[0], one[1]) for one in (item, *islice(useful, HUNGRY_AT_ONCE - 1))}
        self.hungry = list(found.values())
