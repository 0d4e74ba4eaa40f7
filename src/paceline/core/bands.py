"""The known ready jobs in heaps that nothing has to visit: lanes in bands, bands in groups.

Inside a lane, and among lanes of one class and priority, older goes first whatever the time. So the lanes of one
class, priority and agent form a band with a heap of their heads, and the bands of one class and priority a group
with a heap of theirs. What others have submitted stands in groups of its own. Age moves only groups against each
other. A head that has changed is not searched for: it stays behind, outdated, until it comes to the root.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import TypeAlias

from paceline.core.scheduling import QueueClass

Key: TypeAlias = tuple[int, int]
"""(ready_at, job): the order inside a lane."""
Item: TypeAlias = tuple[int, int, int, int, "Lane"]
"""The head of a lane: its key, 1 for a phantom, a number no other lane has (so lanes are never compared), the lane."""

MOST_KNOWN = 1_024
BEFORE_ALL: Key = (-(1 << 63), 0)
SLACK = 64


class Lane:
    """The jobs known of one lane: all up to `horizon`, or simply all when it is None.

    Behind the horizon is a phantom: the place where the next job may stand that only the store knows.
    """

    __slots__ = ("band", "horizon", "id", "item", "keys", "serial", "tenant")

    def __init__(self, id: int, tenant: int, band: "Band", serial: int) -> None:
        self.id, self.tenant, self.serial, self.band = id, tenant, serial, band
        self.keys: deque[Key] = deque()
        self.horizon: Key | None = None
        self.item: Item | None = None

    def head(self) -> Item | None:
        """The first job, or the phantom, or None when nothing can be there."""
        if self.keys:
            return (*self.keys[0], 0, self.serial, self)
        return None if self.horizon is None else (*self.horizon, 1, self.serial, self)

    def learn(self, keys: Iterable[Key], complete: bool) -> None:
        """Adds what lies behind the horizon and moves it."""
        start = self.horizon or BEFORE_ALL
        fresh = sorted(key for key in keys if key > start)
        self.keys.extend(fresh)
        self.horizon = None if complete else (fresh[-1] if fresh else start)
        self.trim()

    def insert(self, key: Key) -> bool:
        """Puts a job in its place; False when it is known already or lies behind the horizon."""
        if self.horizon is not None and key > self.horizon:
            return False
        place = bisect_left(self.keys, key) if self.keys and key <= self.keys[-1] else len(self.keys)
        if place < len(self.keys) and self.keys[place] == key:
            return False
        self.keys.insert(place, key)
        self.trim()
        return True

    def remove(self, key: Key) -> bool:
        """Takes a job out of its place; False when it is not known."""
        if self.keys and self.keys[0] == key:
            self.keys.popleft()
            return True
        place = bisect_left(self.keys, key)
        if place == len(self.keys) or self.keys[place] != key:
            return False
        del self.keys[place]
        return True

    def trim(self) -> None:
        """Memory is bounded: what is too much is forgotten and read again when its time comes."""
        if len(self.keys) > MOST_KNOWN:
            while len(self.keys) > MOST_KNOWN:
                self.keys.pop()
            self.horizon = self.keys[-1]


class Band:
    """The lanes of one class, priority and agent. The root of the heap is a live head; others may be outdated."""

    __slots__ = ("agent", "group", "heap", "lanes")

    def __init__(self, agent: int, group: "Group") -> None:
        self.agent, self.group = agent, group
        self.heap: list[Item] = []
        self.lanes = 0

    def clean(self) -> None:
        """Removes outdated heads from the root, and everywhere once most are."""
        heap = self.heap
        while heap and heap[0][4].item is not heap[0]:
            heappop(heap)
        if len(heap) > 2 * self.lanes + SLACK:
            heap[:] = [item for item in heap if item[4].item is item]
            heapify(heap)

    def first_of_others(self, tenant: int) -> Item | None:
        """The first head of any other tenant: a look at few places near the root, as a tenant has few lanes here."""
        near = [(item, 0) for item in self.heap[:1]]
        while near:
            item, index = heappop(near)
            if item[4].tenant != tenant and item[4].item is item:
                return item
            for child in range(2 * index + 1, min(2 * index + 3, len(self.heap))):
                heappush(near, (self.heap[child], child))
        return None


class Group:
    """The bands of one class and priority; the heap holds the head of each, perhaps twice, and outdated ones."""

    __slots__ = ("bands", "foreign", "heap", "priority", "queue_class")

    def __init__(self, queue_class: QueueClass, priority: int, foreign: bool) -> None:
        self.queue_class, self.priority, self.foreign = queue_class, priority, foreign
        self.bands: dict[int, Band] = {}
        self.heap: list[Item] = []

    def clean(self) -> None:
        """Removes outdated heads from the root, and everywhere once most are."""
        heap = self.heap
        while heap and not leads(heap[0]):
            heappop(heap)
        if len(heap) > 2 * len(self.bands) + SLACK:
            heap[:] = [item for item in heap if leads(item)]
            heapify(heap)


def leads(item: Item) -> bool:
    """The item is the head of its band, not only of its lane."""
    heap = item[4].band.heap
    return bool(heap) and heap[0] is item


class Bands:
    """All lanes in their bands and groups; every change leaves live heads at the roots."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self.groups: dict[tuple[int, int, bool], Group] = {}
        self.tenants: Counter[int] = Counter()
        self._serials = count()

    def open(
        self, id: int, queue_class: QueueClass, priority: int, tenant: int, agent: int, foreign: bool = False
    ) -> Lane:
        """A new lane; it takes its place with the first `update`."""
        place = (queue_class, priority, foreign)
        group = self.groups.get(place) or self.groups.setdefault(place, Group(*place))
        band = group.bands.get(agent) or group.bands.setdefault(agent, Band(agent, group))
        lane = self.lanes[id] = Lane(id, tenant, band, next(self._serials))
        band.lanes += 1
        self.tenants[tenant] += 1
        return lane

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
            heappush(group.heap, band.heap[0])
        group.clean()
        if not group.bands:
            self.groups.pop((group.queue_class, group.priority, group.foreign), None)

    def forget(self, lane: Lane) -> None:
        """Removes a lane; the heaps drop what it leaves behind when they come to it."""
        lane.item = None
        lane.band.lanes -= 1
        del self.lanes[lane.id]
        self.tenants[lane.tenant] -= 1
        if not self.tenants[lane.tenant]:
            del self.tenants[lane.tenant]
