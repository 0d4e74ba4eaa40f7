"""The known ready jobs in heaps that nothing has to visit: lanes in bands, bands in groups.

Inside a lane, and among lanes of one class and priority, older goes first whatever the time. So the lanes of one
class, priority and agent form a band with a heap of their heads, and the bands of one class and priority a group
with a heap of theirs. Age moves only groups against each other. A head that has changed is not searched for: it
stays behind, outdated, until it comes to the root.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
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
    """The jobs known of one lane, all of them up to `horizon`; None: the store holds nothing more."""

    __slots__ = ("band", "horizon", "id", "item", "keys", "serial", "tenant")

    def __init__(self, id: int, tenant: int, band: "Band", serial: int) -> None:
        self.id, self.tenant, self.serial, self.band = id, tenant, serial, band
        self.keys: deque[Key] = deque()
        self.horizon: Key | None = None
        self.item: Item | None = None

    def head(self) -> Item | None:
        """The first job, or a phantom just behind the last known one, or None when nothing can be there."""
        if self.keys:
            return (*self.keys[0], 0, self.serial, self)
        return None if self.horizon is None else (*self.horizon, 1, self.serial, self)

    def learn(self, keys: Iterable[Key], complete: bool) -> None:
        """Adds what lies behind the horizon, in order, and moves it."""
        start = self.horizon or BEFORE_ALL
        fresh = sorted(key for key in keys if key > start)
        self.keys.extend(fresh)
        self.horizon = None if complete else (fresh[-1] if fresh else start)
        self.trim()

    def insert(self, key: Key) -> bool:
        """Puts a job in its place; False when it is known already or lies beyond the horizon."""
        if self.horizon is not None and key > self.horizon:
            return False
        place = bisect_left(self.keys, key) if self.keys and key <= self.keys[-1] else len(self.keys)
        if place < len(self.keys) and self.keys[place] == key:
            return False
        self.keys.insert(place, key)
        self.trim()
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

    def renew(self) -> None:
        """Gives the root a new identity: what the group still holds of an earlier lead stays outdated."""
        lane = self.heap[0][4]
        lane.item = lane.head()
        if lane.item is not None:
            self.heap[0] = lane.item

    def first_of_others(self, tenant: int) -> Item | None:
        """The first head of any other tenant: a look at a few nodes near the root, as a tenant has one lane here."""
        near = [(self.heap[0], 0)]
        while near:
            item, index = heappop(near)
            if item[4].tenant != tenant and item[4].item is item:
                return item
            for child in range(2 * index + 1, min(2 * index + 3, len(self.heap))):
                heappush(near, (self.heap[child], child))
        return None


class Group:
    """The bands of one class and priority; the heap holds the head of each, and outdated ones."""

    __slots__ = ("bands", "heap", "priority", "queue_class")

    def __init__(self, queue_class: QueueClass, priority: int) -> None:
        self.queue_class, self.priority = queue_class, priority
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
