"""When a lease has run out, and when somebody may act on it."""

from paceline.core.problem import Problem

SECOND = 1_000_000
TTL_LEAST = 2 * SECOND
TTL_MOST = 600 * SECOND
TTL_DEFAULT = 60 * SECOND


def checked_ttl(ttl: int) -> int:
    """The same time to live, or a problem when it is out of range."""
    if TTL_LEAST <= ttl <= TTL_MOST:
        return ttl
    raise Problem(
        code="bad_ttl",
        what="a lease cannot live that long" if ttl > TTL_MOST else "a lease cannot live that short",
        found=f"{ttl / SECOND:g} s",
        allowed=f"{TTL_LEAST // SECOND} s to {TTL_MOST // SECOND} s",
        todo="choose a time to live within the range",
    )


def lease_expired(expires_at: int, now: int) -> bool:
    """`expires_at` is the first moment at which the lease may be taken away."""
    return now >= expires_at


def amnesty_after(gap: int, now: int, ttl: int, amnesty_until: int) -> int:
    """Until when nothing may be reaped, after a gap in which the holders could not renew: one time to live from now."""
    return max(amnesty_until, now + ttl) if gap > 0 else amnesty_until


def may_reap(now: int, amnesty_until: int) -> bool:
    """Expired leases may be taken away only when no amnesty runs."""
    return now >= amnesty_until
