"""The rules of the order said plainly, and queues to try them on: an oracle that looks at every job for each start."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias

from paceline.core.bands import Key
from paceline.core.capacity import Admission, Demand
from paceline.core.choosing import IN_A_ROW, PATIENCE
from paceline.core.lanes import LaneBook, LaneFacts
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass, Rank, rank

INTERACTIVE, STANDARD, BATCH = QueueClass
NOW = 1_000 * SECOND
NOTHING: Demand = {}
AGENTS = (1, 2, 3)
OWN, OTHERS = 1, 2


def free(_agent: int) -> Demand:
    return NOTHING


def unlimited() -> Admission:
    return Admission({}, {})


def picked(book: LaneBook, room: int, now: int = NOW) -> list[int]:
    """Which jobs start when nothing is limited."""
    return [job for job, _ in book.take(now, room, unlimited(), free).picks]


def lane(
    id: int, queue_class: QueueClass = STANDARD, priority: int = 50, tenant: int = 1, agent: int = 1, home: int = OWN
) -> LaneFacts:
    return LaneFacts(id, queue_class, priority, tenant, agent, home)


def book_of_a_node() -> LaneBook:
    """A book that knows which submissions are its own."""
    book = LaneBook()
    book.homes = frozenset({OWN})
    return book


@dataclass(frozen=True)
class Ready:
    """A ready job as the oracle sees it."""

    facts: LaneFacts
    ready_at: int
    job: int

    def rank(self, now: int) -> Rank:
        return rank(self.facts.queue_class, self.facts.priority, self.ready_at, self.job, now)

    def place(self, now: int) -> tuple[int, ...]:
        """Its rank, where at equal rank a node's own go before those of others that have not waited long."""
        queue_class, priority, *arrival = self.rank(now)
        behind = self.facts.home != OWN and now - self.ready_at < PATIENCE
        return (queue_class, priority, behind, *arrival)


@dataclass
class Oracle:
    """The rules said plainly: rank everything, then walk down the list for each start."""

    jobs: set[Ready]
    limits: Mapping[str, int]
    demands: Mapping[int, Demand]
    agents: Container[int]
    streaks: dict[QueueClass, tuple[int, int]] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    kept: list[Demand] = field(default_factory=list)

    def left(self, pool: str) -> int:
        return self.limits[pool] - self.used.get(pool, 0)

    def fits(self, demand: Demand, kept: Iterable[Demand]) -> bool:
        reserved = {pool: max((one.get(pool, 0) for one in kept), default=0) for pool in demand}
        return all(self.left(pool) - reserved[pool] >= units for pool, units in demand.items() if pool in self.limits)

    def room(self, pool: str) -> int:
        return max(0, self.left(pool) - max((one.get(pool, 0) for one in self.kept), default=0))

    def keepable(self, demand: Demand) -> bool:
        return all(self.left(pool) > 0 for pool in demand if pool in self.limits)

    def next(self, now: int) -> Ready | None:
        first: tuple[Ready, QueueClass] | None = None
        on_trial: list[Demand] = []
        for one in sorted(self.jobs, key=lambda one: one.place(now)):
            queue_class = one.rank(now).queue_class
            demand = self.demands[one.facts.agent]
            if one.facts.agent not in self.agents:
                continue
            if first is not None and queue_class != first[1]:
                break
            if not self.fits(demand, self.kept):
                if now - one.ready_at >= PATIENCE and self.keepable(demand):
                    (self.kept if first is None else on_trial).append(demand)
            elif first is None:
                last, row = self.streaks.get(queue_class, (0, 0))
                if last != one.facts.tenant or row < IN_A_ROW:
                    return one
                first = one, queue_class
            elif one.facts.tenant != first[0].facts.tenant and self.fits(demand, [*self.kept, *on_trial]):
                return one
        return first[0] if first else None

    def take(self, now: int, room: int) -> list[tuple[int, int]]:
        self.kept = []
        picks: list[tuple[int, int]] = []
        while len(picks) < room and (one := self.next(now)) is not None:
            queue_class = one.rank(now).queue_class
            tenant, row = self.streaks.get(queue_class, (0, 0))
            self.streaks[queue_class] = (one.facts.tenant, row + 1 if tenant == one.facts.tenant else 1)
            for pool, units in self.demands[one.facts.agent].items():
                self.used[pool] = self.used.get(pool, 0) + units
            self.jobs.remove(one)
            picks.append((one.job, one.facts.id))
        return picks


class Shelf:
    """A store in small: the queued jobs of each lane, read behind a key and a few at a time."""

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk
        self.lanes: dict[int, list[Key]] = {}
        self.facts: dict[int, LaneFacts] = {}

    def add(self, one: Ready) -> None:
        self.facts[one.facts.id] = one.facts
        self.lanes.setdefault(one.facts.id, []).append((one.ready_at, one.job))

    def read(self, lane: int, behind: Key) -> tuple[list[Key], bool]:
        rest = sorted(key for key in self.lanes[lane] if key > behind)
        return rest[: self.chunk], len(rest) <= self.chunk

    def take(self, book: LaneBook, now: int, room: int, admission: Admission, oracle: Oracle) -> list[tuple[int, int]]:
        """What a node does: take, read more where the book is hungry, take again with the room that is left."""
        picks: list[tuple[int, int]] = []
        while True:
            taken = book.take(now, room - len(picks), admission, oracle.demands.__getitem__, oracle.agents)
            picks += taken.picks
            for one in taken.hungry:
                book.refill(one.lane, *self.read(one.lane, (one.ready_at, one.job)))
            if not taken.hungry:
                break
        for job, lane in picks:
            self.lanes[lane] = [key for key in self.lanes[lane] if key[1] != job]
        return picks


Place: TypeAlias = tuple[QueueClass, int, int, int, int]
Arrival: TypeAlias = tuple[Place, int]
"""Class, priority, tenant, agent and home of a job, and for how long it has been ready."""


def numbered(arrivals: Iterable[Arrival], now: int, first: int) -> list[Ready]:
    def ready(job: int, place: Place, age: int) -> Ready:
        queue_class, priority, tenant, agent, home = place
        id = (((queue_class * 101 + priority) * 10 + tenant) * 10 + agent) * 10 + home
        return Ready(LaneFacts(id, *place), now - age, job)

    return [ready(job, place, age) for job, (place, age) in enumerate(arrivals, first)]


class Round(NamedTuple):
    """One call: what arrives before it, the seconds since the last one, the room, and whether running jobs ended."""

    arrivals: list[Arrival]
    passed: int
    room: int
    released: bool


class Case(NamedTuple):
    """A queue and what happens to it."""

    rounds: list[Round]
    limits: dict[str, int]
    demands: dict[int, Demand]
    agents: set[int]
    chunk: int


def a_case(chance: Random) -> Case:
    """A queue of few kinds of jobs, so that they meet; ages around the thresholds, or all old, or all new."""
    classes = chance.choice([[INTERACTIVE], [STANDARD, BATCH], list(QueueClass)])
    priorities = chance.choice([[50], [0, 100], [0, 10, 50, 75, 100]])
    tenants = chance.choice([[1, 2], [1, 2, 3], [1, 1, 1, 1, 2]])
    ages = chance.choice([[-5, 0], [60, 61, 90, 180], [0, 3, 19, 20, 39, 40, 59, 60, 61, 119, 120, 240]])
    homes = chance.choice([[OWN], [OWN, OTHERS], [OWN, OTHERS, 3], [OTHERS]])
    most = chance.choice([4, 12, 24])

    def arrival() -> Arrival:
        place = (
            chance.choice(classes),
            chance.choice(priorities),
            chance.choice(tenants),
            chance.randint(1, 3),
            chance.choice(homes),
        )
        return place, chance.choice(ages) * SECOND

    def a_round() -> Round:
        arrivals = [arrival() for _ in range(chance.randint(0, most))]
        return Round(arrivals, chance.choice([0, 1, 20, 61]), chance.randint(0, 8), chance.random() < 0.5)

    def demand() -> Demand:
        return {pool: chance.randint(1, 3) for pool in chance.sample("abc", chance.randint(0, 2))}

    return Case(
        [a_round() for _ in range(chance.randint(1, 3))],
        {pool: chance.randint(0, 6) for pool in "abc" if chance.random() < 0.7},
        {
            agent: {pool: chance.randint(1, 3) for pool in chance.sample("abc", chance.randint(0, 2))}
            for agent in AGENTS
        },
        set(chance.choice([AGENTS, AGENTS, (1, 3)])),
        chance.randint(1, 3),
    )
