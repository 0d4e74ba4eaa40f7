"""When a lease has run out, and when somebody may act on it."""

import pytest

from paceline.core.leasing import (
    SECOND,
    TTL_DEFAULT,
    TTL_LEAST,
    TTL_MOST,
    amnesty_after,
    checked_ttl,
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
