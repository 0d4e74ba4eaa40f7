"""What the pools have room for: limits, and what rows say is held."""

from collections.abc import Mapping
from typing import NamedTuple

from paceline.core.capacity import Admission, with_locks
from paceline.node.picture import Picture
from paceline.store.protocol import Tx


class Served(NamedTuple):
    """What the dispatcher must know of an agent that this node has code for."""

    limited: bool
    needs: Mapping[str, int]


def room_in_pools(tx: Tx, picture: Picture, served: Mapping[int, Served]) -> Admission:
    """Room in every pool that some agent here demands; usage is read from rows that say who holds."""
    limits: dict[str, int] = {}
    held: dict[str, int] = {}
    limited = [agent for agent in picture.book.agents() if agent in served and served[agent].limited]
    if limited:
        tx.guards.limits(limited)
        limits = {f"agent:{row.id}": row.max_concurrency for row in tx.lanes.agents() if row.max_concurrency}
        by_lane = tx.watch.held_by_lane()
        picture.learn(tx, [lane for lane, _ in by_lane])
        for lane, count in by_lane:
            pool = f"agent:{picture.facts[lane].agent}"
            held[pool] = held.get(pool, 0) + count
    needs = {pool for one in served.values() for pool in one.needs}
    if needs:
        tx.guards.pools(needs)
        limits |= with_locks(needs, tx.pools.limits())
        held |= tx.pools.held()
    return Admission(limits, held)
