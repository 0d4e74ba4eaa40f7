"""What a node leaves for others, for how long, and what becomes of it."""

import pytest

from paceline.core.sharing import PAUSE, UNHEEDED, Offer, share

NOW = 1_000_000_000


@pytest.mark.parametrize(
    ("supply", "own", "others", "part"),
    [
        (10, 10, [10], 5),
        (11, 10, [10], 6),
        (1, 10, [10], 1),
        (6, 4, [10], 1),
        (6, 10, [4], 6),
        (8, 10, [4], 7),
        (9, 10, [10, 10], 3),
        (30, 10, [10], 10),
        (5, 10, [], 5),
        (5, 10, [-3], 5),
        (40, 936, [1_000], 1),
    ],
)
def test_who_has_most_free_slots_is_filled_first_and_then_all_alike(
    supply: int, own: int, others: list[int], part: int
) -> None:
    assert share(supply, own, others) == part


def test_parts_of_all_nodes_make_up_the_whole() -> None:
    for supply in range(1, 40):
        for frees in ((10, 10), (3, 10), (10, 10, 10), (1, 5, 30)):
            parts = [share(supply, free, [*frees[:place], *frees[place + 1 :]]) for place, free in enumerate(frees)]
            assert sum(parts) >= min(supply, sum(frees)), "nothing is left that nobody takes"


def test_what_was_left_is_looked_at_again_after_a_moment() -> None:
    offer = Offer().more([1, 2], NOW)
    assert offer == Offer((1, 2), NOW + PAUSE)
    assert [offer.over(NOW + PAUSE - 1), offer.over(NOW + PAUSE)] == [False, True]


def test_what_is_left_besides_makes_nobody_wait_longer() -> None:
    assert Offer((1, 2), NOW + PAUSE).more([3], NOW + 1) == Offer((1, 2, 3), NOW + PAUSE)


def test_others_who_took_something_may_be_left_something_again() -> None:
    assert Offer((1, 2), NOW).taken_back(1, NOW) == Offer()


def test_others_who_took_nothing_are_left_nothing_for_a_while() -> None:
    assert Offer((1, 2), NOW).taken_back(2, NOW) == Offer((), NOW + UNHEEDED)
    assert not Offer((), NOW + UNHEEDED).over(NOW + UNHEEDED), "nothing is left that could be taken back"
