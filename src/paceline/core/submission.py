"""What a submission asks for, made whole: defaults filled in, names checked, first state decided."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import Met, Wants
from paceline.core.problem import Problem
from paceline.core.scheduling import QueueClass

MAX_DURATION = 10 * 366 * 86_400 * 1_000_000


class Terms(NamedTuple):
    """Everything about a job but its input; many jobs may share one."""

    agent: int
    tenant: str = "default"
    queue_class: QueueClass = QueueClass.STANDARD
    priority: int = 50
    retries: int = 0
    timeout: int = 3_600_000_000
    delay: int = 0
    deadline: int | None = None
    key: str | None = None
    session: str | None = None
    parent: int | None = None
    home: int = 0
    """The life of the node through which it is submitted; 0: through a client without a node."""


class Wish(NamedTuple):
    """One job to be: `after` names existing jobs, `inner` the places of others in the same submission."""

    terms: Terms
    body: str
    after: tuple[tuple[int, Wants], ...] = ()
    inner: tuple[tuple[int, Wants], ...] = ()


def edge_state(wants: Wants, dependency: State) -> Met:
    """What an edge is worth given where its prerequisite is."""
    return worth(wants, dependency is State.COMPLETED) if dependency.ended else Met.OPEN


def worth(wants: Wants, completed: bool) -> Met:
    """What an edge is worth once its prerequisite has ended."""
    return Met.MET if completed or wants is Wants.FINISHED else Met.BROKEN


def first_state(edges: Iterable[Met]) -> State:
    """Where a job begins its visible life; one whose prerequisite is broken begins blocked and is failed at once."""
    return State.QUEUED if all(met is Met.MET for met in edges) else State.BLOCKED


def refuse_when_full(pending: int, asked: int, most: int) -> None:
    """Raises when the queue has no room for that many more."""
    if pending + asked > most:
        raise Problem(
            code="queue_full",
            what="too many jobs are waiting to start; nothing was submitted",
            found=f"{pending:,} pending and {asked:,} more",
            allowed=f"max_pending = {most:,}",
            todo="wait until some have started, or raise max_pending",
        )


def conflict(key: str, job: int) -> Problem:
    """The same key with another input."""
    return Problem(
        code="key_conflict",
        what=f"the key {key!r} was used before with another input",
        where=f"job j{job}",
        todo="use a new key for a new input, or submit the same input to get the same job",
    )


def undecided(key: str) -> Problem:
    """Whether the key is taken depends on a transaction that nobody has ended yet."""
    return Problem(
        code="key_undecided",
        what=f"the key {key!r} is used by a submission whose transaction is still open; nothing was submitted",
        todo="try again when that transaction has ended",
    )


def missing(ids: Sequence[int]) -> Problem:
    """A prerequisite or parent that does not exist."""
    return Problem(
        code="unknown_job",
        what="a job that this one depends on does not exist",
        found=", ".join(f"j{job}" for job in ids[:5]),
        allowed="jobs of this store",
        todo="`paceline ps` lists them",
    )
