"""The choice of the next jobs, against an oracle that looks at every job and knows nothing of heaps."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.core.bands import BEFORE_ALL, MOST_KNOWN, Key
from paceline.core.capacity import Admission, Demand
from paceline.core.choosing import HUNGRY_AT_ONCE, IN_A_ROW, PATIENCE, Hungry, Taken
from paceline.core.lanes import LaneBook, LaneFacts
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass, rank

INTERACTIVE, STANDARD, BATCH = QueueClass
NOW = 1_000 * SECOND
NOTHING: Demand = {}


def free(_agent: int) -> Demand:
    return NOTHING


def unlimited() -> Admission:
    return Admission({}, {})


def lane(id: int, queue_class: QueueClass = STANDARD, priority: int = 50, tenant: int = 1, agent: int = 1) -> LaneFacts:
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


Place: TypeAlias = tuple[QueueClass, int, int, int]
Arrival: TypeAlias = tuple[Place, int]
"""Class, priority, tenant and agent of a job, and for how long it has been ready."""


def numbered(arrivals: Iterable[Arrival], now: int, first: int) -> list[Ready]:
    def ready(job: int, place: Place, age: int) -> Ready:
        queue_class, priority, tenant, agent = place
        id = ((queue_class * 101 + priority) * 10 + tenant) * 10 + agent
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


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few kinds of jobs at a time, so that they meet; ages around the thresholds, or all old, or all new."""
    seconds = draw(st.sampled_from([(0, 3, 19, 20, 39, 40, 59, 60, 61, 119, 120, 240), (-5, 0), (60, 61, 90, 180)]))
    place = st.tuples(
        st.sampled_from(draw(st.sampled_from([[INTERACTIVE], [STANDARD, BATCH], list(QueueClass)]))),
        st.sampled_from(draw(st.sampled_from([[50], [0, 100], [0, 10, 50, 75, 100]]))),
        st.integers(1, draw(st.integers(1, 3))),
        st.integers(1, 3),
    )
    arrivals = st.lists(st.tuples(place, st.sampled_from(seconds).map(SECOND.__mul__)), max_size=18)
    rounds = st.builds(Round, arrivals, st.sampled_from([0, 1, 20, 61]), st.integers(0, 8), st.booleans())
    units = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=2)
    return Case(
        draw(st.lists(rounds, min_size=1, max_size=3)),
        draw(st.dictionaries(st.sampled_from("abc"), st.integers(0, 6))),
        draw(st.fixed_dictionaries({1: units, 2: units, 3: units})),
        draw(st.sampled_from([{1, 2, 3}, {1, 2, 3}, {1, 3}])),
        draw(st.integers(1, 3)),
    )


def old(queue_class: QueueClass, tenant: int, agent: int, seconds: int) -> Arrival:
    return (queue_class, 50, tenant, agent), seconds * SECOND


A_LARGE_JOB_STANDS_BEFORE_ANOTHER_TENANTS_TURN = Case(
    [Round([old(INTERACTIVE, 2, 3, 260), old(STANDARD, 2, 3, 139), old(BATCH, 2, 2, 139), old(STANDARD, 1, 3, 80)],
           0, 3, False)],
    {"b": 6, "c": 1}, {1: {}, 2: {"b": 1, "c": 3}, 3: {}}, {1, 2, 3}, 1,
)  # fmt: skip


@given(cases())
@example(A_LARGE_JOB_STANDS_BEFORE_ANOTHER_TENANTS_TURN)
def test_the_book_chooses_what_ranking_every_job_would_choose(case: Case) -> None:
    """One book reads its lanes bit by bit, one knows everything and one hears of every job alone."""
    now = NOW
    oracle = Oracle(set(), case.limits, case.demands, case.agents)
    shelves = [Shelf(case.chunk), Shelf(10_000), Shelf(10_000)]
    books = [LaneBook(), LaneBook(), LaneBook()]
    for number, (arrivals, passed, room, released) in enumerate(case.rounds):
        now += passed * SECOND
        fresh = numbered(arrivals, now, 1_000 * number)
        oracle.jobs.update(fresh)
        if released:
            oracle.used.clear()
        admissions = [Admission(case.limits, oracle.used) for _ in books]
        expected = oracle.take(now, room)
        for shelf, book, admission in zip(shelves, books, admissions, strict=True):
            for one in fresh:
                shelf.add(one)
            if number or book is books[2]:
                for one in reversed(fresh):
                    book.add(one.facts, one.ready_at, one.job)
            else:
                for facts in shelf.facts.values():
                    book.load(facts, *shelf.read(facts.id, (-NOW, 0)))
            assert shelf.take(book, now, room, admission, oracle) == expected
            assert [admission.room(pool) for pool in case.limits] == [oracle.room(pool) for pool in case.limits]
    assert books[1].known == books[2].known == len(oracle.jobs)
    assert len(books[1]) == len(books[2]) == len({one.facts for one in oracle.jobs}) <= len(books[0])


def picked(book: LaneBook, room: int, now: int = NOW) -> list[int]:
    """Which jobs start when nothing is limited."""
    return [job for job, _ in book.take(now, room, unlimited(), free).picks]


def test_jobs_start_by_class_then_priority_then_arrival() -> None:
    book = LaneBook()
    book.add(lane(1, BATCH, 0), NOW - 3, 1)
    book.add(lane(2, STANDARD, 50), NOW - 2, 2)
    book.add(lane(3, STANDARD, 50, agent=2), NOW - 2, 3)
    book.add(lane(4, STANDARD, 25), NOW, 4)
    book.add(lane(5, INTERACTIVE, 100), NOW, 5)
    taken = book.take(NOW, 10, unlimited(), free)
    assert taken == Taken([(5, 5), (4, 4), (2, 2), (3, 3), (1, 1)], [], {})
    assert len(book) == book.known == 0


def test_a_tenant_starts_two_in_a_row_while_another_waits_whatever_the_priority() -> None:
    book = LaneBook()
    book.load(lane(1, priority=0, tenant=1), [(NOW, job) for job in range(10, 16)], True)
    book.load(lane(2, priority=99, tenant=2), [(NOW, job) for job in range(20, 22)], True)
    assert picked(book, 10) == [10, 11, 20, 12, 13, 21, 14, 15]


def test_turns_are_remembered_from_call_to_call() -> None:
    book = LaneBook()
    book.load(lane(1, priority=0, tenant=1), [(NOW, job) for job in range(10, 16)], True)
    book.load(lane(2, priority=99, tenant=2), [(NOW, job) for job in range(20, 22)], True)
    assert [picked(book, 1) for _ in range(6)] == [[10], [11], [20], [12], [13], [21]]


def test_turns_are_counted_in_each_class_alone() -> None:
    book = LaneBook()
    book.load(lane(1, STANDARD, 0, tenant=1), [(NOW, job) for job in range(10, 14)], True)
    book.load(lane(2, STANDARD, 50, tenant=2), [(NOW, 20)], True)
    assert picked(book, 2) == [10, 11]
    book.add(lane(3, INTERACTIVE, tenant=2), NOW, 30)
    assert picked(book, 9) == [30, 20, 12, 13]


def test_a_tenant_does_not_wait_for_work_of_another_class() -> None:
    book = LaneBook()
    book.load(lane(1, STANDARD, tenant=1), [(NOW, job) for job in range(10, 14)], True)
    book.load(lane(2, BATCH, tenant=2), [(NOW, 20)], True)
    assert picked(book, 9) == [10, 11, 12, 13, 20]


def test_a_tenant_does_not_wait_for_work_that_does_not_fit() -> None:
    book = LaneBook()
    book.load(lane(1, tenant=1, agent=1), [(NOW, job) for job in range(10, 14)], True)
    book.load(lane(2, tenant=2, agent=2), [(NOW, 20)], True)
    taken = book.take(NOW, 9, Admission({"agent:2": 0}, {}), lambda agent: {f"agent:{agent}": 1})
    assert [job for job, _ in taken.picks] == [10, 11, 12, 13]
    assert taken.refused == {2: "agent:2"}
    assert book.known == 1


def test_agents_without_code_here_are_stepped_over_and_kept() -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW - 1, 1)
    book.add(lane(2, agent=2), NOW, 2)
    assert book.take(NOW, 9, unlimited(), free, {2}) == Taken([(2, 2)], [], {})
    assert book.take(NOW, 9, unlimited(), free, {1}) == Taken([(1, 1)], [], {})


def test_a_full_agent_delays_no_other() -> None:
    book = LaneBook()
    for number in range(1, 5):
        book.add(lane(number, agent=1, tenant=number), NOW - 100 * SECOND, number)
    book.add(lane(9, agent=2), NOW, 9)
    admission = Admission({"agent:1": 1, "requests": 2}, {"agent:1": 1, "requests": 1})
    demands: dict[int, Demand] = {1: {"agent:1": 1, "requests": 1}, 2: {"requests": 1}}
    assert book.take(NOW, 9, admission, demands.__getitem__) == Taken([(9, 9)], [], {1: "agent:1"})


@pytest.mark.parametrize("age, starts", [(PATIENCE - 1, [2]), (PATIENCE, [])])
def test_a_large_job_is_passed_for_a_minute_and_no_longer(age: int, starts: list[int]) -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW - age, 1)
    book.add(lane(2, agent=2), NOW, 2)
    demands: dict[int, Demand] = {1: {"gpu": 3}, 2: {"gpu": 1}}
    taken = book.take(NOW, 9, Admission({"gpu": 4}, {"gpu": 2}), demands.__getitem__)
    assert [job for job, _ in taken.picks] == starts
    assert taken.refused[1] == "gpu"


def test_what_is_kept_for_a_large_job_still_goes_to_those_before_it() -> None:
    book = LaneBook()
    book.add(lane(1, BATCH, 100, agent=1), NOW - 500 * SECOND, 1)
    book.add(lane(2, BATCH, 50, agent=2), NOW, 2)
    demands: dict[int, Demand] = {1: {"gpu": 3}, 2: {"gpu": 1}}
    assert book.take(NOW, 9, Admission({"gpu": 2}, {}), demands.__getitem__).picks == [(2, 2)]


def test_another_tenants_turn_does_not_pass_a_large_job_that_stands_before_it() -> None:
    """Tenant 1 has had two; the job of tenant 2 would take what the old job of tenant 3 waits for."""
    book = LaneBook()
    book.load(lane(1, BATCH, 50, tenant=1, agent=1), [(NOW, job) for job in range(10, 14)], True)
    book.add(lane(2, BATCH, 100, tenant=2, agent=2), NOW, 20)
    book.add(lane(3, BATCH, 100, tenant=3, agent=3), NOW - PATIENCE, 30)
    demands: dict[int, Demand] = {1: {"cpu": 1}, 2: {"gpu": 1}, 3: {"gpu": 3}}
    taken = book.take(NOW, 9, Admission({"gpu": 2, "cpu": 9}, {}), demands.__getitem__)
    assert [job for job, _ in taken.picks] == [10, 11, 12, 13]


def test_a_large_job_runs_in_the_end_although_small_ones_never_stop_coming() -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW, 1)
    demands: dict[int, Demand] = {1: {"gpu": 4}, 2: {"gpu": 1}}
    ends: dict[int, int] = {}
    for second in range(200):
        now = NOW + second * SECOND
        book.add(lane(2, agent=2), now, 100 + second)
        ends = {job: end for job, end in ends.items() if end > second}
        admission = Admission({"gpu": 4}, {"gpu": len(ends)})
        started = [job for job, _ in book.take(now, 9, admission, demands.__getitem__).picks]
        ends |= dict.fromkeys(started, second + 4)
        if 1 in started:
            break
    assert second == 64


@pytest.mark.parametrize("tenant, bound", [(2, 20), (1, 120)], ids=["another tenant", "the same tenant"])
def test_a_standard_job_starts_in_time_behind_an_endless_stream_of_fresh_interactive_ones(
    tenant: int, bound: int
) -> None:
    """Another tenant gets its turn as soon as age has made it interactive; the same one when nothing ranks higher."""
    book = LaneBook()
    book.add(lane(1, STANDARD, 50, tenant=tenant), NOW, 1)
    for tenth in range(1, 10 * bound + 30):
        now = NOW + tenth * SECOND // 10
        book.add(lane(2, INTERACTIVE, 0, tenant=1), now, 1_000 + tenth)
        if picked(book, 1, now) == [1]:
            break
    assert 10 * bound <= tenth <= 10 * bound + 3


def test_background_waits_for_as_long_as_anything_else_is_ready() -> None:
    book = LaneBook()
    book.add(lane(1, BATCH, 100), NOW, 1)
    for minute in range(1, 100):
        now = NOW + minute * PATIENCE
        book.add(lane(2, BATCH, 99), now, 1 + minute)
        assert picked(book, 1, now) == [1 + minute]
    assert picked(book, 1, now) == [1]


def test_a_lane_that_is_not_fully_known_is_named_when_its_next_job_may_be_first() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1), (NOW, 2)], False)
    book.load(lane(2, agent=2), [(NOW + 5, 9)], True)
    taken = book.take(NOW + 9, 4, unlimited(), free)
    assert taken == Taken([(1, 1), (2, 1)], [Hungry(1, NOW, 2)], {})
    book.refill(1, [(NOW + 1, 3)], True)
    assert book.take(NOW + 9, 4, unlimited(), free) == Taken([(3, 1), (9, 2)], [], {})


def test_a_lane_of_which_nothing_is_known_is_read_from_its_start() -> None:
    book = LaneBook()
    book.load(lane(1), [], False)
    assert book.take(NOW, 4, unlimited(), free) == Taken([], [Hungry(1, *BEFORE_ALL)], {})


def test_what_stands_before_a_gap_does_not_wait_for_it() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1)], False)
    book.load(lane(2, agent=2), [(NOW - 1, 9)], True)
    assert picked(book, 2) == [9, 1]


def test_lanes_that_run_dry_together_are_named_together_but_not_without_bound() -> None:
    book = LaneBook()
    for number in range(1, 500):
        book.load(lane(number, tenant=number), [(NOW, number)], False)
    assert len(book.take(NOW, 499, unlimited(), free).picks) == 1
    for number in range(1, 500):
        book.load(lane(number, tenant=number), [], False)
    hungry = book.take(NOW, 499, unlimited(), free).hungry
    assert len({one.lane for one in hungry}) == HUNGRY_AT_ONCE


def test_no_lane_is_read_for_an_agent_that_cannot_start() -> None:
    book = LaneBook()
    book.load(lane(1, agent=1), [], False)
    book.load(lane(2, agent=2), [(NOW - 1, 2)], False)
    taken = book.take(NOW, 9, Admission({"one": 1}, {}), lambda _: {"one": 1}, {2})
    assert taken == Taken([(2, 2)], [], {2: "one"})


def test_a_refill_answers_with_what_was_not_known() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1), (NOW, 2)], False)
    assert picked(book, 1) == [1]
    book.refill(1, [(NOW, 1), (NOW, 2), (NOW, 3)], True)
    assert picked(book, 9) == [2, 3]


def test_a_refill_with_nothing_ends_the_lane() -> None:
    book = LaneBook()
    book.load(lane(1), [], False)
    book.refill(1, [], False)
    book.refill(7, [(NOW, 7)], True)
    assert len(book) == 0


def test_loading_replaces_what_was_known() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1), (NOW, 2)], False)
    book.load(lane(1), [(NOW, 3)], True)
    assert book.known == 1
    assert picked(book, 9) == [3]


def test_a_job_that_becomes_ready_takes_its_place() -> None:
    book = LaneBook()
    for ready_at, job in ((NOW, 5), (NOW, 6), (NOW - 9, 7), (NOW, 5), (NOW, 4)):
        book.add(lane(1), ready_at, job)
    assert book.known == 4
    assert picked(book, 9) == [7, 4, 5, 6]


def test_a_job_behind_what_is_known_waits_for_the_refill() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1)], False)
    book.add(lane(1), NOW, 3)
    book.add(lane(1), NOW - 1, 2)
    assert book.take(NOW, 9, unlimited(), free) == Taken([(2, 1), (1, 1)], [Hungry(1, NOW, 1)], {})


def test_a_retry_with_its_old_place_goes_before_a_gap() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1)], False)
    assert picked(book, 1) == [1]
    book.add(lane(1), NOW, 1)
    assert book.take(NOW, 9, unlimited(), free) == Taken([(1, 1)], [Hungry(1, NOW, 1)], {})


def test_memory_of_a_lane_is_bounded_and_the_rest_is_read_when_its_time_comes() -> None:
    book = LaneBook()
    for job in range(MOST_KNOWN + 5):
        book.add(lane(1), NOW, job)
    assert book.known == MOST_KNOWN
    book.load(lane(2, agent=2), [(NOW, 5_000 + job) for job in range(2 * MOST_KNOWN)], True)
    assert book.known == 2 * MOST_KNOWN
    taken = book.take(NOW, 2 * MOST_KNOWN, unlimited(), free)
    assert taken.hungry == [Hungry(1, NOW, MOST_KNOWN - 1)]
    assert [job for job, _ in taken.picks] == list(range(MOST_KNOWN))


def test_a_forgotten_lane_is_gone_and_may_come_again() -> None:
    book = LaneBook()
    book.load(lane(1), [(NOW, 1), (NOW, 2)], True)
    book.load(lane(2), [(NOW, 3)], True)
    book.drop(1)
    book.drop(7)
    assert (len(book), book.known) == (1, 1)
    book.add(lane(1), NOW, 1)
    assert picked(book, 9) == [1, 3]


def test_a_cleared_book_knows_nothing_but_whose_turn_it_is() -> None:
    book = LaneBook()
    book.load(lane(1, tenant=1), [(NOW, 1), (NOW, 2), (NOW, 3)], True)
    assert picked(book, 2) == [1, 2]
    book.clear()
    assert (len(book), book.known, picked(book, 9)) == (0, 0, [])
    book.load(lane(1, tenant=1), [(NOW, 3)], True)
    book.load(lane(2, tenant=2), [(NOW, 4)], True)
    assert picked(book, 9) == [4, 3]


def test_a_job_that_two_lanes_claim_to_hold_confuses_nobody() -> None:
    book = LaneBook()
    for number in (1, 2, 3):
        book.load(lane(number, tenant=number), [(NOW, 1), (NOW, 2)], True)
    assert sorted(picked(book, 9)) == [1, 1, 1, 2, 2, 2]


def test_lanes_that_change_often_leave_no_rubbish_behind() -> None:
    book = LaneBook()
    book.add(lane(1, tenant=1), NOW - 10_000, 0)
    for step in range(1, 5_000):
        book.add(lane(2, tenant=2), NOW - step, step)
        book.load(lane(3, tenant=3, agent=2), [(NOW + step, step)], True)
    bands = [band for group in book._bands.groups.values() for band in group.bands.values()]
    assert sum(len(band.heap) + len(band.group.heap) for band in bands) < 1_000


def test_an_error_while_choosing_leaves_the_book_whole() -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW - 1, 1)
    book.add(lane(2, agent=2), NOW, 2)
    with pytest.raises(KeyError):
        book.take(NOW, 9, unlimited(), {1: NOTHING}.__getitem__, {2})
    assert picked(book, 9) == [1, 2]
