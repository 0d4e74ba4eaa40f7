"""When a lease has run out, and when somebody may act on it."""

from collections.abc import Container
from typing import NamedTuple

from paceline.core.problem import Problem

SECOND = 1_000_000
TTL_LEAST = 2 * SECOND
TTL_MOST = 600 * SECOND
TTL_DEFAULT = 60 * SECOND
RENEWALS = 2
"""So often at least a leader comes within one lease."""


class Lead(NamedTuple):
    """A node does for all nodes what only one does at a time; the term rises with each change."""

    node: int
    term: int
    expires_at: int


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


def lead_for(dead_after: int) -> int:
    """How long a leader leads without renewing: a dead one is replaced before what it guarded expires itself."""
    return dead_after // 2


def lead_wanted(held: Lead | None, node: int, live: Container[int], now: int, ttl: int) -> Lead | None:
    """What a node asks for: its own lead while that lasts, or the next term of a free one; None: another leads.

    A lead that has expired never revives, not even for the node that had it. One whose node's life has ended is free,
    and a node whose own life has ended does not lead.
    """
    if node not in live:
        return None
    if held is None:
        return Lead(node, 1, now + ttl)
    if lease_expired(held.expires_at, now) or held.node not in live:
        return Lead(node, held.term + 1, now + ttl)
    if held.node != node:
        return None
    return held._replace(expires_at=now + ttl)
