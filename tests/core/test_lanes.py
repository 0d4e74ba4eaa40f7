"""The choice of the next jobs, against an oracle that looks at every job and knows nothing of heaps."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from paceline.core.capacity import Admission, Demand
from paceline.core.lanes import IN_A_ROW, PATIENCE, LaneBook, LaneFacts, Taken
from paceline.core.bands import MOST_KNOWN, Key
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass, rank

INTERACTIVE, STANDARD, BATCH = QueueClass
NOW = 1_000 * SECOND
NOTHING: Demand = {}


def free(_agent: int) -> Demand:
    return NOTHING


def unlimited() -> Admission:
    return Admission({}, {})


def lane(
    id: int, queue_class: QueueClass = STANDARD, priority: int = 50, tenant: int = 1, agent: int = 1
) -> LaneFacts:
    return LaneFacts(id, queue_class, priority, tenant, agent)


@dataclass(frozen=True)
class Ready:
    """A ready job as the oracle sees it."""

    facts: LaneFacts
    ready_at: int
    job: int


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
        in_order = sorted(self.jobs, key=lambda one: rank(*one.facts[1:3], one.ready_at, one.job, now))
        for one in in_order:
            queue_class = rank(*one.facts[1:3], one.ready_at, one.job, now).queue_class
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
            queue_class = rank(*one.facts[1:3], one.ready_at, one.job, now).queue_class
            tenant, row = self.streaks.get(queue_class, (0, 0))
            self.streaks[queue_class] = (one.facts.tenant, row + 1 if tenant == one.facts.tenant else 1)
            for pool, units in self.demands[one.facts.agent].items():
                self.used[pool] = self.used.get(pool, 0) + units
            self.jobs.remove(one)
            picks.append((one.job, one.facts.id))
        return picks


class Shelf:
    """A store in small: the queued jobs of each lane, read behind a key and a few at a time."""

    def __init__(self, jobs: Iterable[Ready], chunk: int) -> None:
        self.chunk = chunk
        self.lanes: dict[int, list[Key]] = {}
        self.facts: dict[int, LaneFacts] = {}
        for one in jobs:
            self.add(one)

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


ages = st.sampled_from([-5, 0, 3, 19, 20, 21, 39, 40, 59, 60, 61, 90, 119, 120, 180, 240, 300]).map(SECOND.__mul__)
places = st.tuples(
    st.sampled_from(QueueClass), st.sampled_from([0, 10, 50, 75, 100]), st.integers(1, 3), st.integers(1, 3)
)
arrivals = st.lists(st.tuples(places, ages), max_size=25)
demands = st.fixed_dictionaries(
    {agent: st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=2) for agent in (1, 2, 3)}
)
limits = st.dictionaries(st.sampled_from("abc"), st.integers(0, 6))
rounds = st.lists(st.tuples(arrivals, st.sampled_from([0, 1, 20, 61]), st.integers(0, 8), st.booleans()), max_size=4)


def numbered(arrivals: list[tuple[tuple[QueueClass, int, int, int], int]], now: int, first: int) -> list[Ready]:
    def ready(number: int, place: tuple[QueueClass, int, int, int], age: int) -> Ready:
        queue_class, priority, tenant, agent = place
        id = ((queue_class * 101 + priority) * 10 + tenant) * 10 + agent
        return Ready(LaneFacts(id, *place), now - age, number)

    return [ready(first + offset, place, age) for offset, (place, age) in enumerate(arrivals)]


@given(arrivals, rounds, limits, demands, st.sets(st.integers(1, 3), min_size=1), st.integers(1, 3))
def test_the_book_chooses_what_ranking_every_job_would_choose(
    waiting: list[tuple[tuple[QueueClass, int, int, int], int]],
    rounds: list[tuple[list[tuple[tuple[QueueClass, int, int, int], int]], int, int, bool]],
    limits: dict[str, int],
    demands: dict[int, Demand],
    agents: set[int],
    chunk: int,
) -> None:
    now = NOW
    jobs = numbered(waiting, now, 1)
    oracle = Oracle(set(jobs), limits, demands, agents)
    shelves = [Shelf(jobs, chunk), Shelf(jobs, 10_000)]
    books = [LaneBook(), LaneBook()]
    for shelf, book in zip(shelves, books, strict=True):
        for id, facts in shelf.facts.items():
            book.load(facts, *shelf.read(id, (-NOW, 0)))
    for number, (more, passed, room, released) in enumerate(rounds):
        now += passed * SECOND
        fresh = numbered(more, now, 1_000 * (number + 1))
        oracle.jobs.update(fresh)
        if released:
            oracle.used.clear()
        admissions = [Admission(limits, oracle.used) for _ in books]
        expected = oracle.take(now, room)
        for shelf, book, admission in zip(shelves, books, admissions, strict=True):
            for one in fresh:
                shelf.add(one)
                book.add(one.facts, one.ready_at, one.job)
            assert shelf.take(book, now, room, admission, oracle) == expected
            assert [admission.room(pool) for pool in limits] == [oracle.room(pool) for pool in limits]
