"""The end of a node's life and the return of the jobs it held."""

from collections.abc import Collection

from paceline.core.lifecycle import Happening, State, target_of
from paceline.core.model import UNIT_ROWS, JobRow, Move
from paceline.events import Kind
from paceline.store.protocol import Tx


def end_node(tx: Tx, node: int, ending: str, expired_by: int | None = None) -> bool:
    """Ends a node's life once, unless its lease goes on behind `expired_by`; `give_back_jobs` returns its jobs."""
    if not tx.nodes.end(node, tx.now, ending, expired_by):
        return False
    kind = Kind.NODE_STOPPED if ending == "stopped" else Kind.NODE_DIED
    tx.events.announce(tx.now, kind, f'{{"node":{node},"ending":"{ending}"}}')
    return True


def give_back_jobs(tx: Tx, node: int, reason: str, kept: Collection[tuple[int, int]] = ()) -> int:
    """Returns one unit's worth of the jobs that a node held, all but the (job, epoch) it keeps; 0: none were left."""
    held = tx.jobs.rows(tx.watch.held_by_node(node, UNIT_ROWS + len(kept)))
    rows = [row for row in held if (row.id, row.epoch) not in kept]
    running = [row for row in rows if row.state is State.RUNNING]
    tx.jobs.move([_back(row, reason) for row in running], Kind.JOB_GIVEN_BACK, tx.now,
                 {row.id: f'{{"reason":"{reason}"}}' for row in running})  # fmt: skip
    tx.jobs.release([(row.id, row.epoch, Kind.JOB_RELEASED) for row in rows if row.state.ended], tx.now)
    tx.pools.release([(row.id, row.epoch) for row in rows])
    return len(rows)


def _back(row: JobRow, reason: str) -> Move:
    target = target_of(row.state, Happening.GIVE_BACK)
    assert target is not None
    return Move(row.id, row.state, row.epoch, target, reason)
