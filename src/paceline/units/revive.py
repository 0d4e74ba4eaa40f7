"""A dead job lives again, and with it the dependents that failed only because of it."""

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS, Move
from paceline.events import Kind
from paceline.store.protocol import Tx


def revive(tx: Tx, jobs: list[int]) -> list[int]:
    """Sends the dependents that failed because of these jobs back to waiting for them; answers who lives again.

    What exceeds one unit of work is written down as postponed in this same transaction.
    """
    revived: list[int] = []
    frontier, budget = jobs, UNIT_ROWS
    while frontier and budget > 0:
        edges = tx.edges.broken_behind(frontier, budget)
        if len(edges) == budget:
            tx.edges.postpone(frontier)
        tx.edges.reopen(edges)
        budget -= len(edges)
        frontier = _wait_again(tx, sorted({edge.dependent for edge in edges}))
        revived += frontier
    if frontier:
        tx.edges.postpone(frontier)
    return revived


def _wait_again(tx: Tx, dependents: list[int]) -> list[int]:
    """failed → blocked for those that no other prerequisite keeps failed."""
    if not dependents:
        return []
    tx.guards.jobs(dependents)
    still = {job for job, _ in tx.edges.broken(dependents)}
    moves = [
        Move(row.id, row.state, row.epoch, State.BLOCKED, "revived")
        for row in tx.jobs.rows(dependents)
        if row.state is State.FAILED and row.reason == "dependency_failed" and row.id not in still
    ]
    return tx.jobs.move(moves, Kind.JOB_BLOCKED, tx.now)
