"""A handle on one job, wherever it is."""

from typing import TYPE_CHECKING, Any, NamedTuple

from paceline.core.lifecycle import State
from paceline.errors import JobCancelled, JobFailed, JobTimedOut
from paceline.payloads import decode
from paceline.units.failing import ErrorBody, read_error

if TYPE_CHECKING:
    from paceline.client.client import Client


class Outcome(NamedTuple):
    """How a job stands: its state, the reason of its end, its result or error as text."""

    state: State
    reason: str | None
    body: str | None

    @property
    def error(self) -> ErrorBody:
        """What is known of the failure."""
        return read_error(self.body) if self.state in (State.FAILED, State.TIMED_OUT) else read_error(None)


class Job:
    """One job of one store; handles are cheap, compare by id and survive nothing but the id."""

    __slots__ = ("_client", "number", "promised")

    def __init__(self, client: "Client", number: int, *, promised: bool = False) -> None:
        self._client = client
        self.number = number
        self.promised = promised
        """It was written in a transaction of the caller's, so it may not exist yet."""

    @property
    def id(self) -> str:
        """The job's name: `j42`."""
        return f"j{self.number}"

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.number == self.number and other._client is self._client

    def __hash__(self) -> int:
        return hash(self.number)

    async def result(self, timeout: float | None = None) -> Any:
        """Waits for the end and answers the result; a job that ended otherwise raises how it ended."""
        return (await self._client.results([self], timeout=timeout))[0]

    async def wait(self, timeout: float | None = None) -> State:
        """Waits for the end, whatever it is."""
        return (await self._client.ends([self], timeout))[self.number].state

    async def state(self) -> State:
        """Where the job is now."""
        return (await self._client.outcomes([self]))[self.number].state

    async def cancel(self) -> bool:
        """Ends the job and its tree; False when it had ended before."""
        return await self._client.cancel(self)


def value_of(job: int, outcome: Outcome) -> Any:
    """The result of an ended job, or the error that says how it ended otherwise."""
    if outcome.state is State.COMPLETED:
        return decode(outcome.body or "null")
    raise failure_of(job, outcome)


_KINDS = {State.CANCELLED: JobCancelled, State.TIMED_OUT: JobTimedOut}


def failure_of(job: int, outcome: Outcome) -> JobFailed:
    """The end of a job that has no result, as an error."""
    error = outcome.error
    what = f"job j{job} {outcome.state.word.replace('_', ' ')}"
    said = ": ".join(filter(None, (error.type, error.message))) or outcome.reason
    detail = f": {said}" if said else ""
    return _KINDS.get(outcome.state, JobFailed)(
        job=f"j{job}", reason=outcome.reason or outcome.state.word, error=error,
        code=f"job_{outcome.state.word}", what=what + detail, todo=f"paceline show j{job}",
    )  # fmt: skip
