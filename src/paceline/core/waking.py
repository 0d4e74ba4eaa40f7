"""What the end of a job means for those that wait for it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import Edge, Move
from paceline.core.submission import worth

NAMED = 8
"""How many jobs of a chain an error names."""


def settle(edges: Iterable[Edge], states: Mapping[int, State]) -> list[Edge]:
    """The edges with what became of them."""
    completed = {job for job, state in states.items() if state is State.COMPLETED}
    return [Edge(before, behind, wants, worth(wants, before in completed)) for before, behind, wants, _ in edges]


def ready_move(job: int, expects: State, epoch: int, due_at: int | None, now: int) -> Move:
    """The way into the queue: a delay that is still to come is kept, and age counts from its end."""
    due_at = due_at if due_at is not None and due_at > now else None
    return Move(job, expects, epoch, State.QUEUED, ready_at=due_at or now, due_at=due_at)


class Origin(NamedTuple):
    """How a prerequisite ended, as far as its dependents tell it on."""

    job: int
    state: State
    message: str
    chain: tuple[int, ...] = ()
    length: int = 0


class Inherited(NamedTuple):
    """The error of a job that could not start because of another."""

    message: str
    chain: tuple[int, ...]
    length: int
    cause: str


def dependency_error(origin: Origin) -> Inherited:
    """Names the chain from the direct prerequisite back to the one that began it."""
    length = origin.length + 1
    chain = (origin.job, *origin.chain)
    if len(chain) > NAMED:
        chain = (*chain[: NAMED - 1], chain[-1])
    if length > len(chain):
        names = [*(f"j{job}" for job in chain[:-1]), f"… {length - len(chain)} more …", f"j{chain[-1]}"]
    else:
        names = [f"j{job}" for job in chain]
    cause = origin.message or origin.state.word
    return Inherited(f"dependency {' ← '.join(names)} ended: {cause}", chain, length, cause)
