"""How an epoch ended, and what that means for its job."""

from enum import StrEnum
from typing import NamedTuple

from paceline.core.failures import FailureClass
from paceline.core.lifecycle import Happening, State
from paceline.core.model import Claimed, Move
from paceline.core.retrying import GiveUp, Tally, WhyNot, decide


class Ending(StrEnum):
    """What a node saw of the end of an epoch."""

    RETURNED = "returned"
    RAISED = "raised"
    GIVEN_BACK = "given_back"
    STOPPED = "stopped"
    """The code of a job that had been ended before (cancelled, timed out) has stopped."""


class Ended(NamedTuple):
    """One finished epoch: `body` is the result or the error as text."""

    job: Claimed
    ending: Ending
    body: str = ""
    failure: FailureClass = FailureClass.UNKNOWN
    retry_after: float | None = None
    reason: str = ""
    task: int = 0
    """Tells the same agent on the same input from others."""


class Verdict(NamedTuple):
    """The guarded move that follows; `happening` is an arrow of the lifecycle."""

    happening: Happening
    move: Move


def judge(ended: Ended, *, now: int, jitter: float, repeating: bool) -> Verdict:
    """What follows a raise or a return to the queue; a plain result needs no decision."""
    job = ended.job
    if ended.ending is Ending.GIVEN_BACK:
        return Verdict(Happening.GIVE_BACK, Move(job.id, State.RUNNING, job.epoch, State.QUEUED, ended.reason))
    before = Tally(job.attempt, job.timeouts, job.snoozes)
    decision = decide(
        ended.failure, before=before, retries=job.retries, now=now, jitter=jitter,
        retry_after=ended.retry_after, repeating=repeating,
    )  # fmt: skip
    if isinstance(decision, GiveUp):
        plain = decision.reason in (WhyNot.NOT_RETRYABLE, WhyNot.NO_RETRIES_LEFT)
        reason = ended.failure.value if plain else decision.reason.value
        return Verdict(Happening.FAIL, Move(job.id, State.RUNNING, job.epoch, State.FAILED, reason, ended_at=now))
    move = Move(
        job.id, State.RUNNING, job.epoch, State.QUEUED, ended.failure.value, due_at=decision.due_at,
        attempt=job.attempt + decision.counted,
        timeouts=job.timeouts + (ended.failure is FailureClass.TIMEOUT),
        snoozes=0 if decision.counted else job.snoozes + 1,
    )  # fmt: skip
    return Verdict(Happening.RETRY, move)
