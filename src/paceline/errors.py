"""Every error a caller of Paceline can meet.

    Problem                     the form: what, where, found, allowed, what to do
    └── PacelineError           has an exit code for the command line
        ├── UsageError          the call itself is wrong; nothing was written              (2)
        ├── NotFound            no such job, agent or file                                 (3)
        ├── Refused             the system is right to say no: full, conflict, not allowed (4)
        │   └── Conflict        the same key was used with another input                   (4)
        ├── StoreError          the database is missing, locked, full, foreign or damaged  (1)
        ├── JobFailed           the job ended without a result                             (1)
        │   ├── JobCancelled    somebody cancelled it                                      (1)
        │   └── JobTimedOut     its own limit or deadline passed                           (1)
        └── WaitTimedOut        the caller's patience ended; the job goes on               (124)

Agents raise these to say what kind of failure they met:
    AgentError                  base of the four below
    ├── RateLimited             wait and try again; costs no attempt
    ├── OutOfCapacity           the other side is overloaded; costs no attempt
    ├── TransientError          try again, within the job's retries
    └── PermanentError          trying again cannot help
"""

from paceline.core.failures import FailureClass
from paceline.core.problem import FIELDS, Problem


class PacelineError(Problem):
    """Base of everything Paceline raises on purpose."""

    exit_code = 1


class UsageError(PacelineError):
    """The call itself is wrong; nothing was written."""

    exit_code = 2


class NotFound(PacelineError):
    """No such job, agent or file."""

    exit_code = 3


class Refused(PacelineError):
    """The request is well formed and the answer is no; nothing was written."""

    exit_code = 4


class Conflict(Refused):
    """The same key was used before with another input."""


class StoreError(PacelineError):
    """The database is missing, locked, full, foreign, damaged, or of another version."""


class JobFailed(PacelineError):
    """The job ended without a result; `job`, `reason` and `error` say how."""

    def __init__(self, *, job: str = "", reason: str = "", error: object = None, **fields: str) -> None:
        super().__init__(**fields)
        self.job = job
        self.reason = reason
        self.error = error


class JobCancelled(JobFailed):
    """Somebody cancelled the job."""


class JobTimedOut(JobFailed):
    """The job's own timeout or deadline passed."""


class WaitTimedOut(PacelineError):
    """The caller's patience ended; the job goes on."""

    exit_code = 124


class AgentError(Exception):
    """Raised inside an agent to say what kind of failure it met."""

    failure_class = FailureClass.UNKNOWN

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(AgentError):
    """Wait and try again; costs no attempt."""

    failure_class = FailureClass.RATE_LIMIT


class OutOfCapacity(AgentError):
    """The other side is overloaded; costs no attempt."""

    failure_class = FailureClass.CAPACITY


class TransientError(AgentError):
    """Trying again may help; costs one of the job's retries."""

    failure_class = FailureClass.TRANSIENT


class PermanentError(AgentError):
    """Trying again cannot help."""

    failure_class = FailureClass.PERMANENT


_CLASSES: dict[str, type[PacelineError]] = {
    "queue_full": Refused,
    "parent_ended": Refused,
    "not_dead": Refused,
    "submission_abandoned": Refused,
    "key_conflict": Conflict,
    "key_undecided": Refused,
    "unknown_job": NotFound,
    "unknown_agent": NotFound,
}


def as_error(problem: Problem) -> PacelineError:
    """A problem found by a pure decision, as the kind of error that callers catch."""
    if isinstance(problem, PacelineError):
        return problem
    fields = {name: getattr(problem, name) for name in FIELDS}
    return _CLASSES.get(problem.code, UsageError)(**fields)
