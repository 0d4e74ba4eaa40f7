"""The values that travel through the corridor; field order is the order in which the store reads and writes them."""

from enum import IntEnum
from typing import NamedTuple

from paceline.core.lifecycle import State

SECOND = 1_000_000
UNIT_ROWS = 500
"""What one unit of work may touch: longer commits would hold everybody up."""


class Wants(IntEnum):
    """What an edge asks of its prerequisite."""

    COMPLETED = 0
    FINISHED = 1


class Met(IntEnum):
    """What became of an edge."""

    OPEN = 0
    MET = 1
    BROKEN = 2


class NewJob(NamedTuple):
    """A job row about to be inserted."""

    id: int
    state: State
    lane: int
    root: int
    parent: int | None
    session: int | None
    batch: int | None
    retries: int
    timeout: int
    ready_at: int | None
    due_at: int | None
    deadline: int | None
    created_at: int
    seq: int
    last_event: int | None


class Claimed(NamedTuple):
    """What a node knows of a job that it has just claimed."""

    id: int
    epoch: int
    lane: int
    root: int
    parent: int | None
    attempt: int
    crashes: int
    timeouts: int
    snoozes: int
    retries: int
    timeout: int
    deadline: int | None
    created_at: int
    seq: int
    prev_event: int | None


class Moved(NamedTuple):
    """A job that a guarded write has really changed, with its place in the event chain."""

    id: int
    seq: int
    prev_event: int | None


class Move(NamedTuple):
    """One guarded change of state; it happens only from `expects` in `epoch`."""

    id: int
    expects: State
    epoch: int
    to: State
    reason: str | None = None
    ready_at: int | None = None
    due_at: int | None = None
    ended_at: int | None = None
    attempt: int | None = None
    crashes: int | None = None
    timeouts: int | None = None
    snoozes: int | None = None
    keeps_node: int = 0


class JobRow(NamedTuple):
    """A job as decisions and people see it."""

    id: int
    state: State
    lane: int
    root: int
    parent: int | None
    session: int | None
    epoch: int
    attempt: int
    crashes: int
    timeouts: int
    snoozes: int
    retries: int
    timeout: int
    node: int | None
    ready_at: int | None
    due_at: int | None
    deadline: int | None
    created_at: int
    started_at: int | None
    ended_at: int | None
    seq: int
    last_event: int | None
    reason: str | None


class Edge(NamedTuple):
    """`dependent` waits for `dependency`."""

    dependency: int
    dependent: int
    wants: Wants
    met: Met


class AgentRow(NamedTuple):
    """An agent as the store knows it."""

    id: int
    name: str
    origin: str
    definition: str
    max_concurrency: int | None


class Company(NamedTuple):
    """What a node must know of the rest of the world before it claims."""

    alive: bool
    """Nobody has ended the node's own life."""
    slots: int
    """How many slots all other nodes have that nobody has ended."""
    last_event: int
    next_due: int | None
    """When the next delayed job becomes ready."""


class NodeRow(NamedTuple):
    """A node as the store knows it."""

    id: int
    name: str
    identity: str
    version: str
    slots: int
    started_at: int
    beat_at: int
    expires_at: int
    ended_at: int | None
    ending: str | None
    work_sharing: int = 1
    """0: it takes its own submissions only, and those of nobody who lives."""
