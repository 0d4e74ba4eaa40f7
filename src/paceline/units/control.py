"""What people do to jobs from outside: cancel them, try them again."""

from paceline.core.lifecycle import Happening, State, sources_of
from paceline.core.model import JobRow
from paceline.core.problem import Problem
from paceline.core.waking import ready_move
from paceline.events import Kind
from paceline.store.protocol import Tx
from paceline.units.revive import revive
from paceline.units.settle import Ends, end_open, settle
from paceline.units.visit import show_overlooked


def row_of(tx: Tx, job: int) -> JobRow:
    """The job's row, or the problem that there is none."""
    found = tx.jobs.rows([job])
    if not found:
        near = ", ".join(f"j{one}" for one in tx.listing.nearest(job))
        raise Problem(
            code="unknown_job", what=f"there is no job j{job}",
            allowed=f"the nearest are {near}" if near else "no job yet", todo="`paceline ps --all` lists them",
        )  # fmt: skip
    return found[0]


def cancel(tx: Tx, job: int, reason: str) -> Ends:
    """Ends a job and its tree; empty when it had ended before. What is beyond one unit of work follows by itself."""
    if row_of(tx, job).state is State.CREATED and tx.reasons.accepted(job):
        show_overlooked(tx, [job])  # it is accepted, so it can be cancelled, whoever has seen it
    tx.guards.jobs([job])
    row = row_of(tx, job)
    if row.state.ended:
        return []
    ended = end_open(tx, [job], State.CANCELLED, reason)
    return ended + settle(tx, ended)


def replay(tx: Tx, job: int, body: str | None) -> list[int]:
    """Tries a dead job again, with a changed input if given; answers all jobs that live again.

    Dependents that failed only because of it go back to waiting for it.
    """
    tx.guards.jobs([job])
    row = row_of(tx, job)
    allowed = sources_of(Happening.REPLAY)
    if row.state not in allowed:
        raise Problem(
            code="not_dead", what=f"job j{job} cannot be tried again", found=row.state.word,
            allowed=", ".join(sorted(state.word for state in allowed)),
        )  # fmt: skip
    if row.node is not None:
        raise Problem(code="not_dead", what=f"the code of job j{job} has not stopped yet", todo="try again in a moment")
    broken = [edge for edge in tx.edges.before(job) if edge.met.name != "MET"]
    if broken:
        names = ", ".join(f"j{edge.dependency}" for edge in broken[:5])
        raise Problem(
            code="not_dead", what=f"job j{job} depends on jobs that did not complete", found=names,
            todo=f"paceline retry {names.partition(',')[0]}",
        )  # fmt: skip
    if body is not None:
        tx.outcomes.set_input(job, body)
    tx.outcomes.lift_deadline(job)
    move = ready_move(job, row.state, row.epoch, None, tx.now)._replace(reason="replayed", attempt=0, crashes=0,
                                                                       timeouts=0, snoozes=0)  # fmt: skip
    revived = tx.jobs.move([move], Kind.JOB_REPLAYED, tx.now)
    return revived + revive(tx, revived)
