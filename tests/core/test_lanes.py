"""What the book knows of the lanes, and what it asks for."""

import pytest

from core.ranking import NOTHING, NOW, free, lane, picked, unlimited
from paceline.core.bands import BEFORE_ALL, MOST_KNOWN
from paceline.core.capacity import Admission
from paceline.core.choosing import HUNGRY_AT_ONCE, Hungry, Taken
from paceline.core.lanes import LaneBook


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
    for step in range(1, 1_000):
        book.add(lane(2, tenant=2), NOW - step, step)
        book.load(lane(3, tenant=3, agent=2), [(NOW + step, step)], True)
        book.add(lane(5, tenant=5), NOW - 20_000, 5)
        book.drop(5)
    bands = [band for group in book._bands.groups.values() for band in group.bands.values()]
    assert sum(len(band.heap) + len(band.group.heap) for band in bands) < 500


def test_an_error_while_choosing_leaves_the_book_whole() -> None:
    book = LaneBook()
    book.add(lane(1, agent=1), NOW - 1, 1)
    book.add(lane(2, agent=2), NOW, 2)
    with pytest.raises(KeyError):
        book.take(NOW, 9, unlimited(), {1: NOTHING}.__getitem__, {2})
    assert picked(book, 9) == [1, 2]
