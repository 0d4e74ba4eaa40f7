"""The end of a job, told to those that wait for it, in the transaction that wrote the end."""

from paceline.core.lifecycle import Happening, State, target_of
from paceline.core.model import UNIT_ROWS, Met, Move
from paceline.core.waking import Origin, dependency_error, ready_move
from paceline.core.waking import settle as decide
from paceline.events import Kind
from paceline.store.protocol import Tx
from paceline.units.failing import ErrorBody, read_error, write_error
from paceline.units.revive import revive

Ends = list[tuple[int, State]]


def settle(tx: Tx, ended: Ends) -> Ends:
    """Readies or fails the dependents of ended jobs and cancels the children of cancelled ones.

    Answers the jobs that ended because of it. Whatever exceeds one unit of work is written down as postponed in this
    same transaction, and `settle_postponed` goes on with it.
    """
    further: Ends = []
    frontier, budget = ended, UNIT_ROWS
    while frontier:
        if budget <= 0:
            tx.edges.postpone([job for job, _ in frontier])
            break
        fallen, spent = _settle_once(tx, frontier, budget)
        further += fallen
        frontier, budget = fallen, budget - spent
    return further


def settle_postponed(tx: Tx) -> tuple[Ends, bool]:
    """Goes on with what one unit could not finish; answers (jobs ended, whether more is left).

    A job that lives again, or has completed, has no right to broken edges: those behind it wait for it once more.
    """
    postponed = tx.edges.postponed(UNIT_ROWS)
    if not postponed:
        return [], False
    waiting = [(row.id, row.state) for row in tx.guards.rows(postponed)]
    tx.edges.settled(postponed)
    revive(tx, [job for job, state in waiting if not state.ended or state is State.COMPLETED])
    return settle(tx, [(job, state) for job, state in waiting if state.ended]), True


def _settle_once(tx: Tx, ended: Ends, budget: int) -> tuple[Ends, int]:
    fallen, spent = _cancel_children(tx, ended, budget)
    early = [job for job, state in ended if state is not State.COMPLETED]
    if early:
        for job in sorted(early):
            tx.guards.open_before(job)
            tx.sessions.hand_on(job)
    edges = tx.edges.open_from([job for job, _ in ended], budget + 1)
    if not edges:
        return fallen, spent
    if len(edges) > budget:
        tx.edges.postpone([job for job, _ in ended])
        edges = edges[:budget]
    tx.guards.jobs({edge.dependent for edge in edges})
    edges = decide(edges, dict(ended))
    tx.edges.settle(edges)
    broken = {edge.dependent: edge.dependency for edge in edges if edge.met is Met.BROKEN}
    fallen += fail_dependents(tx, broken)
    met = {edge.dependent for edge in edges if edge.met is Met.MET}
    unblock(tx, sorted(met - broken.keys()))
    return fallen, spent + len(edges)


def unblock(tx: Tx, candidates: list[int]) -> list[int]:
    """blocked → queued for those that wait for nothing any more."""
    if not candidates:
        return []
    freed = tx.edges.freed(candidates)
    ready = tx.jobs.unblock([(job, epoch) for job, epoch, due in freed if due is None or due <= tx.now], tx.now)
    delayed = [(job, epoch, due) for job, epoch, due in freed if due is not None and due > tx.now]
    moves = [ready_move(job, State.BLOCKED, epoch, due, tx.now) for job, epoch, due in delayed]
    return ready + tx.jobs.move(moves, Kind.JOB_UNBLOCKED, tx.now)


def fail_dependents(tx: Tx, broken: dict[int, int]) -> Ends:
    """blocked → failed for jobs whose prerequisite ended otherwise than asked; the chain is named."""
    if not broken:
        return []
    rows = {row.id: row for row in tx.jobs.rows(list(broken)) if row.state is State.BLOCKED}
    origins = _origins(tx, sorted({broken[job] for job in rows}))
    bodies = {job: _dependency_body(origins[broken[job]]) for job in rows}
    moves = [
        Move(row.id, State.BLOCKED, row.epoch, State.FAILED, "dependency_failed", ended_at=tx.now)
        for row in rows.values()
    ]
    moved = tx.jobs.move(moves, Kind.JOB_FAILED, tx.now)
    tx.jobs.keep_results([(job, bodies[job]) for job in moved])
    return [(job, State.FAILED) for job in moved]


def _origins(tx: Tx, jobs: list[int]) -> dict[int, Origin]:
    found: dict[int, Origin] = {}
    for job, (state, reason, body) in tx.outcomes.results(jobs).items():
        error = read_error(body) if state in (State.FAILED, State.TIMED_OUT) else read_error(None)
        message = error.cause or (f"{error.type}: {error.message}" if error.type else f"{state.word} ({reason})")
        found[job] = Origin(job, state, message[:200], tuple(error.chain), error.length)
    return found


def _dependency_body(origin: Origin) -> str:
    told = dependency_error(origin)
    return write_error(
        ErrorBody("DependencyFailed", told.message, chain=told.chain, length=told.length, cause=told.cause)
    )


def _cancel_children(tx: Tx, ended: Ends, budget: int) -> tuple[Ends, int]:
    parents = [job for job, state in ended if state is State.CANCELLED]
    children = tx.watch.open_children(parents, budget + 1) if parents else []
    if len(children) > budget:
        tx.edges.postpone(parents)
        children = children[:budget]
    return end_open(tx, children, State.CANCELLED, "parent_cancelled"), len(children)


_ENDINGS = {
    State.CANCELLED: (Happening.CANCEL, Kind.JOB_CANCELLED),
    State.TIMED_OUT: (Happening.TIME_OUT, Kind.JOB_TIMED_OUT),
}


def end_open(tx: Tx, jobs: list[int], to: State, reason: str) -> Ends:
    """Ends open jobs wherever they are; one whose code still runs keeps what it holds until the code has stopped.

    Jobs that have ended stay as they are, and so do those that nobody can see yet.
    """
    happening, kind = _ENDINGS[to]
    tx.guards.jobs(jobs)
    rows = [row for row in tx.jobs.rows(jobs) if target_of(row.state, happening)] if jobs else []
    moves = [
        Move(row.id, row.state, row.epoch, to, reason, ended_at=tx.now, keeps_node=int(row.node is not None))
        for row in rows
    ]
    moved = tx.jobs.move(moves, kind, tx.now)
    return [(job, to) for job in moved]
