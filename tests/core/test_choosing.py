"""Which jobs start next: rank, turns of tenants, full pools and large jobs."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ranking import (
    BATCH,
    INTERACTIVE,
    NOW,
    OTHERS,
    OWN,
    STANDARD,
    Case,
    Oracle,
    Shelf,
    a_case,
    book_of_a_node,
    free,
    lane,
    numbered,
    picked,
    unlimited,
)
from paceline.core.capacity import Admission, Demand
from paceline.core.choosing import PATIENCE, Taken
from paceline.core.lanes import LaneBook
from paceline.core.model import SECOND
from paceline.core.scheduling import BACKGROUND


@given(st.randoms(use_true_random=True))
@settings(max_examples=50)
def test_the_book_chooses_what_ranking_every_job_would_choose(chance: Random) -> None:
    for _ in range(10):
        check(a_case(chance))


def check(case: Case) -> None:
    """One book reads its lanes bit by bit, one knows everything and one hears of every job alone."""
    now = NOW
    oracle = Oracle(set(), case.limits, case.demands, case.agents)
    shelves = [Shelf(case.chunk), Shelf(10_000), Shelf(10_000)]
    books = [book_of_a_node() for _ in range(3)]
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


def test_jobs_of_one_lane_part_where_age_has_raised_only_the_first() -> None:
    book = LaneBook()
    book.load(lane(1, STANDARD, 50), [(NOW - 20 * SECOND, 1), (NOW - 19 * SECOND, 2)], True)
    book.add(lane(2, INTERACTIVE, 75), NOW, 3)
    assert picked(book, 9) == [1, 3, 2]


def test_jobs_that_age_has_made_equal_start_in_order_of_arrival() -> None:
    book = LaneBook()
    book.load(lane(1, STANDARD, 25), [(NOW - 100 * SECOND, 1), (NOW - 80 * SECOND, 2)], True)
    book.load(lane(2, INTERACTIVE, 0), [(NOW - 90 * SECOND, 3)], True)
    assert picked(book, 9) == [1, 3, 2]


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


def test_a_tenant_that_is_alone_in_one_class_takes_turns_in_the_next() -> None:
    book = LaneBook()
    book.load(lane(1, STANDARD, tenant=1), [(NOW, job) for job in (10, 11, 12)], True)
    book.load(lane(2, BATCH, 0, tenant=1), [(NOW, job) for job in (13, 14, 15)], True)
    book.load(lane(3, BATCH, 99, tenant=2), [(NOW, 20)], True)
    assert picked(book, 9) == [10, 11, 12, 13, 14, 20, 15]


def test_a_turn_waits_until_it_is_known_whose_it_is() -> None:
    book = LaneBook()
    book.load(lane(1, priority=0, tenant=1), [(NOW, job) for job in range(10, 16)], True)
    book.load(lane(2, priority=9, tenant=2), [(NOW, 20)], False)
    taken = book.take(NOW, 9, unlimited(), free)
    assert [job for job, _ in taken.picks] == [10, 11, 20, 12, 13]
    assert [one.lane for one in taken.hungry] == [2]


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


class TurnsBesideALargeJob:
    """Tenant 1 comes first; then an old large job of tenant 3; then the job 20 of tenant 2, which would pass it."""

    def __init__(self) -> None:
        self.book = LaneBook()
        self.book.load(lane(1, BATCH, 50, tenant=1, agent=1), [(NOW, job) for job in (10, 11, 12)], True)
        self.book.load(lane(4, BATCH, 51, tenant=1, agent=4), [(NOW, job) for job in (13, 14)], True)
        self.book.add(lane(3, BATCH, 100, tenant=3, agent=3), NOW - PATIENCE, 30)
        self.book.add(lane(2, BATCH, 100, tenant=2, agent=2), NOW, 20)

    def starts(self, limits: dict[str, int], *demands: Demand) -> list[int]:
        found = self.book.take(NOW, 9, Admission(limits, {}), dict(enumerate(demands, 1)).__getitem__)
        return [job for job, _ in found.picks]


def test_another_tenants_turn_does_not_pass_a_large_job_that_stands_before_it() -> None:
    starts = TurnsBesideALargeJob().starts({"gpu": 2}, {}, {"gpu": 1}, {"gpu": 3}, {})
    assert starts == [10, 11, 12, 13, 14]


def test_what_is_kept_from_another_tenants_turn_is_not_kept_from_the_tenant_that_yields() -> None:
    starts = TurnsBesideALargeJob().starts({"gpu": 5}, {"gpu": 1}, {"gpu": 1}, {"gpu": 6}, {"gpu": 1})
    assert starts == [10, 11, 12, 13, 14]


def test_another_tenant_gets_its_turn_once_nothing_is_kept_from_it_any_more() -> None:
    """With the last cpu gone the large job waits for a cpu, not for its size."""
    starts = TurnsBesideALargeJob().starts({"gpu": 2, "cpu": 3}, {"cpu": 1}, {"gpu": 1}, {"gpu": 3, "cpu": 1}, {})
    assert starts == [10, 11, 12, 20, 13, 14]


@pytest.mark.parametrize("age, starts", [(PATIENCE - 1, [2]), (PATIENCE, [])])
def test_whether_a_large_job_is_old_is_read_before_anything_passes_it(age: int, starts: list[int]) -> None:
    book = LaneBook()
    book.load(lane(1, agent=1), [], False)
    book.add(lane(2, agent=2), NOW, 2)
    demands: dict[int, Demand] = {1: {"gpu": 3}, 2: {"gpu": 1}}
    admission = Admission({"gpu": 2}, {})
    taken = book.take(NOW, 9, admission, demands.__getitem__)
    assert (taken.picks, [one.lane for one in taken.hungry]) == ([], [1])
    book.refill(1, [(NOW - age, 1)], True)
    assert [job for job, _ in book.take(NOW, 9, admission, demands.__getitem__).picks] == starts


def test_a_large_job_runs_in_the_end_although_small_ones_never_stop_coming() -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW, 1)
    demands: dict[int, Demand] = {1: {"gpu": 4}, 2: {"gpu": 1}}
    ends = {0: 3}
    for second in range(200):
        now = NOW + second * SECOND
        book.add(lane(2, agent=2), now, 100 + second)
        ends = {job: end for job, end in ends.items() if end > second}
        admission = Admission({"gpu": 4}, {"gpu": len(ends)})
        started = [job for job, _ in book.take(now, 9, admission, demands.__getitem__).picks]
        ends |= dict.fromkeys(started, second + 4)
        if 1 in started:
            break
    assert second == 63


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
        book.add(lane(2, BATCH, 99), NOW + minute * PATIENCE, 1 + minute)
        assert picked(book, 1, NOW + minute * PATIENCE) == [1 + minute]
    assert picked(book, 1, NOW + 100 * PATIENCE) == [1]


def test_at_equal_rank_a_node_starts_its_own_submissions_first() -> None:
    book = book_of_a_node()
    book.load(lane(1, home=OTHERS), [(NOW - 3, 1)], complete=True)
    book.load(lane(2, home=OWN), [(NOW - 2, 2), (NOW - 1, 3)], complete=True)
    book.load(lane(3, priority=25, home=OTHERS), [(NOW, 4)], complete=True)
    assert picked(book, 9) == [4, 2, 3, 1], "a better rank of another's goes first all the same"


def test_what_others_have_submitted_lets_own_ones_pass_for_a_minute_and_no_longer() -> None:
    book = book_of_a_node()
    for id, home, age in ((1, OTHERS, PATIENCE), (2, OWN, PATIENCE - 1), (3, OTHERS, PATIENCE - 2)):
        book.load(lane(id, priority=BACKGROUND, home=home), [(NOW - age, id)], complete=True)
    assert picked(book, 9) == [1, 2, 3]


def test_a_large_job_of_another_node_is_not_passed_for_ever_by_own_small_ones() -> None:
    book = book_of_a_node()
    book.load(lane(1, priority=BACKGROUND, agent=1, home=OTHERS), [(NOW - PATIENCE, 1)], complete=True)
    book.load(lane(2, priority=BACKGROUND, agent=2), [(NOW - 1, 2)], complete=True)
    demands = {1: {"gpu": 2}, 2: {"gpu": 1}}
    admission = Admission({"gpu": 2}, {"gpu": 1})
    assert book.take(NOW, 9, admission, demands.__getitem__).picks == []
