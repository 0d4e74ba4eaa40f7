"""Which of the known ready jobs start next.

The choice follows the rank of the head jobs, with two corrections. Within one effective class a tenant gets at most
two starts in a row while a job of another tenant in that class fits, whatever its priority; "in a row" counts the
starts in that class alone. And a job that was refused for its size and has waited a minute has what it needs kept
from all that rank behind it.

At equal rank a node starts its own submissions first. What others have submitted is passed over in this way only
until it has waited a minute: from then on it stands where it stood in the order of arrival.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from typing import NamedTuple, TypeAlias

from paceline.core.bands import Band, Bands, Group, Item, leads
from paceline.core.capacity import Admission, Demand
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass, standing

PATIENCE = 60 * SECOND
IN_A_ROW = 2
HUNGRY_AT_ONCE = 64
HUNGRY_LOOKED_AT = 512
OUTSIDE = -1

Front: TypeAlias = tuple[QueueClass, int, bool, Item, int, Group]
"""The head of a group as it stands now: class, priority, whether own ones of that rank go first, item, until when
younger ones stand equally, the group."""


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


class Walk:
    """The heads of one class in order, without moving them, as a tenant sees them that lets others go first."""

    def __init__(self, queue_class: QueueClass, tenant: int, now: int, groups: Iterable[Group]) -> None:
        self.queue_class, self.tenant, self.now = queue_class, tenant, now
        self.near: list[tuple[int, bool, Item, int]] = []
        for group in groups:
            if group.heap:
                self.meet(group.heap[0], 0)

    def meet(self, item: Item, index: int) -> None:
        """Adds a head, unless it and so all below it in the heap of its group stand in a later class."""
        group = item[4].band.group
        stands = standing(group.queue_class, group.priority, item[0], self.now)
        if stands.queue_class == self.queue_class:
            heappush(self.near, (stands.priority, lets_own_pass(group, item, self.now), item, index))

    def meet_others(self, band: Band) -> None:
        """Adds the first head of a band that the tenant leads which is not the tenant's."""
        item = band.first_of_others(self.tenant)
        if item is not None:
            self.meet(item, OUTSIDE)

    def __iter__(self) -> Iterator[Item]:
        while self.near:
            _, _, item, index = heappop(self.near)
            if index != OUTSIDE:
                heads = item[4].band.group.heap
                for child in range(2 * index + 1, min(2 * index + 3, len(heads))):
                    self.meet(heads[child], child)
            if index == OUTSIDE or leads(item):
                yield item


def lets_own_pass(group: Group, item: Item, now: int) -> bool:
    """Somebody else has submitted it, and it has not waited long."""
    return group.foreign and item[0] > now - PATIENCE


class Choice:
    """One call. Heads only move back while it lasts, so an outdated front stands too early, never too late."""

    def __init__(
        self,
        bands: Bands,
        streaks: dict[int, tuple[int, int]],
        now: int,
        room: int,
        admission: Admission,
        demand_of: Callable[[int], Demand],
        agents: Container[int] | None,
    ) -> None:
        self.bands, self.streaks, self.now, self.room = bands, streaks, now, room
        self.admission, self.demand_of, self.agents = admission, demand_of, agents
        self.picks: list[tuple[int, int]] = []
        self.hungry: list[Hungry] = []
        self.refused: dict[int, str] = {}
        self.demands: dict[int, Demand | None] = {}
        self.kept: set[int] = set()
        self.alone: set[int] = set()
        self.aside: list[Band] = []
        self.fronts: list[Front] = []

    def made(self) -> Taken:
        """Walks down the order until the room is used, nothing is left, or more must be read."""
        self.fronts = [self.front(group) for group in self.bands.groups.values()]
        heapify(self.fronts)
        try:
            while self.room > 0 and self.fronts and not self.hungry:
                self.step()
        finally:
            for band in self.aside:
                heappush(band.group.heap, band.heap[0])
        return Taken(self.picks, self.hungry, self.refused)

    def front(self, group: Group) -> Front:
        """Where the head of a group stands now."""
        item = group.heap[0]
        stands = standing(group.queue_class, group.priority, item[0], self.now)
        behind = lets_own_pass(group, item, self.now)
        until = min(stands.until, self.now - PATIENCE) if group.foreign and not behind else stands.until
        return (stands.queue_class, stands.priority, behind, item, until, group)

    def step(self) -> None:
        """Deals with the head of the whole order."""
        queue_class, _, _, item, _, group = self.fronts[0]
        lane = item[4]
        if not group.heap:
            heappop(self.fronts)
        elif group.heap[0] is not item:
            heapreplace(self.fronts, self.front(group))
        elif (demand := self.demand(item)) is None:
            self.set_aside(item)
        elif item[2]:
            if self.fitting(item) is not None:
                self.ask(item)
        elif self.must_yield(queue_class, lane.tenant):
            if self.fitting(item) is not None:
                self.yield_to_another(queue_class, item)
        else:
            self.drain(demand)

    def drain(self, demand: Demand) -> None:
        """Starts jobs of the first band for as long as nobody else can be first. This is the hot loop."""
        queue_class, _, _, top, _, _ = self.fronts[0]
        bound, band, bands, admit = self.bound(), top[4].band, self.bands, self.admission.admit
        heap, picks, room = band.heap, self.picks, self.room
        last, row = self.streaks.get(queue_class, (None, 0))
        crowd = self.is_crowd(queue_class)
        while room and heap and heap[0] <= bound:  # equal: the bound is this very head, held twice
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
                bands.forget(lane)
                heappop(heap)
            else:
                heapreplace(heap, lane.item)
            if heap and heap[0][4].item is not heap[0]:
                band.clean()
        self.room = room
        if last is not None:
            self.streaks[queue_class] = (last, row)
        bands.surface(band, top)

    def bound(self) -> tuple[object, ...]:
        """The place in the first group's order at which it stops being first, or its first band the first of it."""
        queue_class, priority, behind, _, until, group = self.fronts[0]
        bound: tuple[object, ...] = (until + 1,)
        for item in group.heap[1:3]:
            bound = min(bound, item)
        for front in self.fronts[1:3]:
            if front[1] == priority and front[0] == queue_class and front[2] == behind:
                bound = min(bound, front[3])
        return bound

    def is_crowd(self, queue_class: int) -> bool:
        """Another tenant may have a job of this class that fits."""
        return len(self.bands.tenants) > 1 and queue_class not in self.alone

    def must_yield(self, queue_class: int, tenant: int) -> bool:
        """The tenant had its turns in this class, and somebody else may wait."""
        last, row = self.streaks.get(queue_class, (None, 0))
        return last == tenant and row >= IN_A_ROW and self.is_crowd(queue_class)

    def yield_to_another(self, queue_class: QueueClass, item: Item) -> None:
        """Starts the first fitting job of another tenant, or the job itself when nobody else can make use of it."""
        other = self.another(queue_class, item[4].tenant)
        if not self.hungry:
            self.start(queue_class, other or item)

    def start(self, queue_class: QueueClass, item: Item) -> None:
        """Starts a job that fits, wherever it stands."""
        lane = item[4]
        self.admission.admit(self.demand_of(lane.band.agent))
        last, row = self.streaks.get(queue_class, (None, 0))
        self.streaks[queue_class] = (lane.tenant, row + 1 if lane.tenant == last else 1)
        self.picks.append((item[1], lane.id))
        self.room -= 1
        lane.keys.popleft()
        self.bands.update(lane)

    def another(self, queue_class: QueueClass, tenant: int) -> Item | None:
        """The first fitting job of another tenant within a class; when there is none, there is none in this call.

        What a job passed over needs is kept from those behind it but not from the tenant that yields, whose job
        stands before it: hence the trial.
        """
        trial = self.admission
        walk = Walk(queue_class, tenant, self.now, (front[5] for front in self.fronts if front[0] == queue_class))
        for item in walk:
            demand = self.fitting(item)
            if demand is None:
                if self.is_passed_over(item):
                    trial = self.admission.copy() if trial is self.admission else trial
                    trial.keep(self.demand_of(item[4].band.agent))
            elif item[4].tenant == tenant:
                walk.meet_others(item[4].band)
            elif trial is self.admission or trial.refusal(demand) is None:
                if not item[2]:
                    return item
                self.ask(item)
            if self.hungry:
                return None
        if trial is self.admission:  # a trial may go the other way next time: what it kept may be taken by then
            self.alone.add(queue_class)
        return None

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
        band = item[4].band
        if self.is_passed_over(item):
            self.kept.add(band.agent)
            self.admission.keep(self.demand_of(band.agent))
        if not self.hungry:
            heappop(band.group.heap)
            band.group.clean()
            self.aside.append(band)

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
        groups = [first, *(front[5] for front in self.fronts if front[5] is not first)]
        bands = (head[4].band for group in groups for head in group.heap[:HUNGRY_AT_ONCE])
        heads = (head for band in bands for head in band.heap[:HUNGRY_AT_ONCE])
        dry = (head for head in islice(heads, HUNGRY_LOOKED_AT) if head[2] and head[4].item is head)
        useful = (head for head in dry if head is not item and self.demand(head) is not None)
        asked = (item, *islice(useful, HUNGRY_AT_ONCE - 1))
        self.hungry = [Hungry(head[4].id, head[0], head[1]) for head in asked]
