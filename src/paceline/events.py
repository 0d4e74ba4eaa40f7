"""Every fact the runtime announces: a closed list of kinds with stored numbers that never change."""

from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """How loud an event is."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


class Kind(IntEnum):
    """What happened; the number is stored, the word is shown."""

    JOB_QUEUED = 2
    JOB_BLOCKED = 3
    JOB_STARTED = 4
    JOB_COMPLETED = 5
    JOB_FAILED = 6
    JOB_RETRYING = 7
    JOB_GIVEN_BACK = 8
    JOB_CANCELLED = 9
    JOB_TIMED_OUT = 10
    JOB_UNBLOCKED = 11
    JOB_RELEASED = 12
    JOB_REPLAYED = 13
    JOB_LATE = 14
    JOB_LOG = 15
    JOB_PROGRESS = 16
    JOB_DUE = 17
    NODE_STARTED = 30
    NODE_STOPPED = 31
    NODE_DIED = 32
    HOST_SUSPENDED = 33
    SWEEP_REPAIRED = 34
    LEADER_CHANGED = 35
    STORE_TRANSACTION_OPEN = 36

    @property
    def word(self) -> str:
        """The kind as people and filters write it: `job.completed`."""
        subject, _, verb = self.name.lower().partition("_")
        return f"{subject}.{verb}"

    @property
    def severity(self) -> Severity:
        """How loud this kind is."""
        return _SEVERITIES.get(self, Severity.INFO)


_SEVERITIES = {
    Kind.JOB_DUE: Severity.DEBUG,
    Kind.JOB_PROGRESS: Severity.DEBUG,
    Kind.JOB_FAILED: Severity.ERROR,
    Kind.JOB_TIMED_OUT: Severity.ERROR,
    Kind.JOB_RETRYING: Severity.WARNING,
    Kind.JOB_GIVEN_BACK: Severity.WARNING,
    Kind.JOB_LATE: Severity.WARNING,
    Kind.NODE_DIED: Severity.ERROR,
    Kind.HOST_SUSPENDED: Severity.WARNING,
    Kind.SWEEP_REPAIRED: Severity.WARNING,
    Kind.STORE_TRANSACTION_OPEN: Severity.WARNING,
}

MAKES_READY = (
    Kind.JOB_QUEUED,
    Kind.JOB_RETRYING,
    Kind.JOB_GIVEN_BACK,
    Kind.JOB_UNBLOCKED,
    Kind.JOB_REPLAYED,
    Kind.JOB_DUE,
)
"""After these a job may be ready: dispatchers read them to learn which lanes gained work."""


class Event(NamedTuple):
    """One line of the append-only log; `seq` counts without gaps within a job."""

    id: int
    job: int | None
    seq: int
    at: int
    kind: Kind
    epoch: int
    data: str | None
