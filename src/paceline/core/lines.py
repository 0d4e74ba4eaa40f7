"""What people see of jobs: rows with the words that belong to their numbers."""

from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import Met, Wants


class JobLine(NamedTuple):
    """One job in a listing."""

    id: int
    state: State
    queue_class: int
    priority: int
    tenant: str
    agent: str
    epoch: int
    attempt: int
    node: int | None
    ready_at: int | None
    due_at: int | None
    created_at: int
    started_at: int | None
    ended_at: int | None
    reason: str | None
    fraction: float | None
    note: str | None
    parent: int | None
    root: int

    @property
    def name(self) -> str:
        """The job as people write it: `j42`."""
        return f"j{self.id}"


class Linked(NamedTuple):
    """A job at the other end of an edge."""

    job: int
    state: State
    wants: Wants
    met: Met
    session: int | None
    agent: str
    reason: str | None


class LaneAgent(NamedTuple):
    """The lane of a job, and the agent whose jobs queue there."""

    queue_class: int
    priority: int
    tenant: int
    agent: int
    name: str
    origin: str
    definition: str
    max_concurrency: int | None
    home: int


class Bodies(NamedTuple):
    """The beginning of a job's input and result, and how long each is as a whole."""

    input: str | None
    input_length: int | None
    result: str | None
    result_length: int | None
