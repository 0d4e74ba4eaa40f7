"""When a lease has run out, and when somebody may act on it."""

import pytest

from paceline.core.leasing import (
    SECOND,
    TTL_DEFAULT,
    TTL_LEAST,
    TTL_MOST,
    Lead,
    amnesty_after,
    checked_ttl,
    lead_for,
    lead_wanted,
    lease_expired,
    may_reap,
)
from paceline.core.problem import Problem


def test_a_lease_counts_until_the_moment_it_expires() -> None:
    assert not lease_expired(expires_at=100, now=99)
    assert lease_expired(expires_at=100, now=100)


def test_after_a_gap_nothing_is_reaped_for_one_time_to_live() -> None:
    until = amnesty_after(gap=3_600 * SECOND, now=1_000, ttl=TTL_DEFAULT, amnesty_until=0)
    assert not may_reap(1_000, until)
    assert not may_reap(999 + TTL_DEFAULT, until)
    assert may_reap(1_000 + TTL_DEFAULT, until)


@pytest.mark.parametrize("gap", [0, -5 * SECOND])
def test_without_a_gap_forwards_there_is_no_amnesty(gap: int) -> None:
    assert amnesty_after(gap, now=1_000, ttl=TTL_DEFAULT, amnesty_until=7) == 7


def test_a_short_amnesty_never_ends_a_longer_one() -> None:
    assert amnesty_after(gap=1, now=1_000, ttl=TTL_LEAST, amnesty_until=TTL_MOST) == TTL_MOST


@pytest.mark.parametrize("ttl", [TTL_LEAST, TTL_DEFAULT, TTL_MOST])
def test_a_time_to_live_within_the_range_is_taken(ttl: int) -> None:
    assert checked_ttl(ttl) == ttl


@pytest.mark.parametrize(
    ("ttl", "found"), [(TTL_LEAST - 1, "2 s"), (0, "0 s"), (-SECOND, "-1 s"), (TTL_MOST + SECOND, "601 s")]
)
def test_a_time_to_live_out_of_range_is_refused_with_the_range(ttl: int, found: str) -> None:
    with pytest.raises(Problem) as refused:
        checked_ttl(ttl)
    assert (refused.value.code, refused.value.found, refused.value.allowed) == ("bad_ttl", found, "2 s to 600 s")


HELD = Lead(node=1, term=4, expires_at=100)


def test_who_leads_goes_on_in_the_same_term_and_everybody_else_waits() -> None:
    assert lead_wanted(HELD, 1, {1, 2}, now=99, ttl=50) == Lead(1, 4, 149)
    assert lead_wanted(HELD, 2, {1, 2}, now=99, ttl=50) is None


def test_the_first_leader_begins_the_first_term() -> None:
    assert lead_wanted(None, 2, {2}, now=7, ttl=50) == Lead(2, 1, 57)


@pytest.mark.parametrize("node", [1, 2])
def test_a_lead_that_has_expired_never_revives_not_even_for_the_node_that_had_it(node: int) -> None:
    assert lead_wanted(HELD, node, {1, 2}, now=100, ttl=50) == Lead(node, 5, 150)


def test_a_leader_whose_life_has_ended_is_followed_at_once() -> None:
    assert lead_wanted(HELD, 2, {2}, now=1, ttl=50) == Lead(2, 5, 51)


@pytest.mark.parametrize("held", [None, HELD])
def test_a_node_whose_own_life_has_ended_does_not_lead(held: Lead | None) -> None:
    assert lead_wanted(held, 1, {2}, now=99, ttl=50) is None


def test_a_dead_leader_is_replaced_before_what_it_guarded_expires() -> None:
    beat, sweep = 15 * SECOND, 5 * SECOND
    assert lead_for(TTL_DEFAULT) + sweep < TTL_DEFAULT - beat
    assert lead_for(TTL_LEAST) < TTL_LEAST
