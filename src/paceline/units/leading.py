"""Doing for all nodes what only one does at a time: whoever asks learns in this transaction whether it is the one."""

from paceline.core.leasing import lead_wanted
from paceline.events import Kind
from paceline.store.protocol import Tx

REAPING = "reaping"


def leads(tx: Tx, name: str, node: int, ttl: int) -> bool:
    """True: the node leads until this transaction has ended, and for `ttl` if nobody has to take over.

    What a leader does belongs into the same transaction: one who was deposed finds out there, and does nothing.
    """
    held = tx.leaders.lead(name)
    live = {row.id for row in tx.nodes.live()}  # behind the leader: a life that began meanwhile would look ended
    wanted = lead_wanted(held, node, live, tx.now, ttl)
    if wanted is None or not tx.leaders.hold(name, held, wanted):
        return False
    if held is None or held.term != wanted.term:
        tx.events.announce(tx.now, Kind.LEADER_CHANGED, f'{{"name":"{name}","node":{node},"term":{wanted.term}}}')
    return True
