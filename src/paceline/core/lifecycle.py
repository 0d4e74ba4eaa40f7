"""The law of a job's life: states, what can happen, and every arrow with its reason.

Everything that decides a transition reads this table; the diagram in ARCHITECTURE.md, the exhaustive test and
the CHECK constraint of the jobs table are derived from it. Whatever is not an arrow here cannot happen.
"""

from enum import IntEnum, StrEnum
from typing import NamedTuple


class State(IntEnum):
    """Where a job is; the numbers are stored and never change."""

    CREATED = 0
    BLOCKED = 1
    QUEUED = 2
    RUNNING = 3
    WAITING = 4
    COMPLETED = 10
    FAILED = 11
    CANCELLED = 12
    TIMED_OUT = 13

    @property
    def word(self) -> str:
        """The state as people write it."""
        return self.name.lower()

    @property
    def ended(self) -> bool:
        """Nothing can happen to the job any more."""
        return self >= FIRST_ENDED


FIRST_ENDED = 10
ENDED = frozenset(state for state in State if state.ended)
OPEN = frozenset(State) - ENDED


class Happening(StrEnum):
    """What can happen to a job."""

    PUBLISH_READY = "publish_ready"
    PUBLISH_BLOCKED = "publish_blocked"
    UNBLOCK = "unblock"
    DEPENDENCY_FAILED = "dependency_failed"
    CLAIM = "claim"
    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    GIVE_BACK = "give_back"
    SUSPEND = "suspend"
    WAKE = "wake"
    CANCEL = "cancel"
    TIME_OUT = "time_out"
    REPLAY = "replay"
    REVIVE = "revive"


class Arrow(NamedTuple):
    """One legal transition and why it exists."""

    source: State
    happening: Happening
    target: State
    reason: str


S, H = State, Happening

ARROWS: tuple[Arrow, ...] = (
    Arrow(S.CREATED, H.PUBLISH_READY, S.QUEUED, "the whole submission is valid and nothing holds this job back"),
    Arrow(S.CREATED, H.PUBLISH_BLOCKED, S.BLOCKED, "the whole submission is valid; a prerequisite has not ended"),
    Arrow(S.BLOCKED, H.UNBLOCK, S.QUEUED, "the last prerequisite ended as the edge asked"),
    Arrow(S.BLOCKED, H.DEPENDENCY_FAILED, S.FAILED, "a prerequisite ended without completing"),
    Arrow(S.BLOCKED, H.CANCEL, S.CANCELLED, "somebody cancelled it, its tree, or evicted it"),
    Arrow(S.BLOCKED, H.TIME_OUT, S.TIMED_OUT, "its deadline passed while it waited for prerequisites"),
    Arrow(S.QUEUED, H.CLAIM, S.RUNNING, "a node admitted it: all it demands is free; the epoch rises"),
    Arrow(S.QUEUED, H.FAIL, S.FAILED, "it can never run: its agent is gone or its demand can never fit"),
    Arrow(S.QUEUED, H.CANCEL, S.CANCELLED, "somebody cancelled it, its tree, or evicted it"),
    Arrow(S.QUEUED, H.TIME_OUT, S.TIMED_OUT, "its deadline passed while it was queued"),
    Arrow(S.RUNNING, H.COMPLETE, S.COMPLETED, "its code returned a result"),
    Arrow(S.RUNNING, H.FAIL, S.FAILED, "its code raised and no retry is left or would help"),
    Arrow(S.RUNNING, H.RETRY, S.QUEUED, "its code raised and a later try may help"),
    Arrow(S.RUNNING, H.GIVE_BACK, S.QUEUED, "it ended through no fault of its own: node died, pause, stop"),
    Arrow(S.RUNNING, H.SUSPEND, S.WAITING, "it waits for children, a message, a person or time, and holds nothing"),
    Arrow(S.RUNNING, H.CANCEL, S.CANCELLED, "somebody cancelled it; what it holds goes when its code has ended"),
    Arrow(S.RUNNING, H.TIME_OUT, S.TIMED_OUT, "its timeout or deadline passed while it ran"),
    Arrow(S.WAITING, H.WAKE, S.QUEUED, "what it waited for has come; it keeps its place in the order"),
    Arrow(S.WAITING, H.CANCEL, S.CANCELLED, "somebody cancelled it or its tree"),
    Arrow(S.WAITING, H.TIME_OUT, S.TIMED_OUT, "its deadline passed while it waited"),
    Arrow(S.FAILED, H.REPLAY, S.QUEUED, "a person asked for another try"),
    Arrow(S.TIMED_OUT, H.REPLAY, S.QUEUED, "a person asked for another try"),
    Arrow(S.CANCELLED, H.REPLAY, S.QUEUED, "a person asked for another try"),
    Arrow(S.FAILED, H.REVIVE, S.BLOCKED, "the prerequisite that failed it is tried again"),
)

_TARGETS = {(arrow.source, arrow.happening): arrow.target for arrow in ARROWS}


def target_of(state: State, happening: Happening) -> State | None:
    """Where `happening` takes a job from `state`, or None when that cannot happen."""
    return _TARGETS.get((state, happening))


def sources_of(happening: Happening) -> frozenset[State]:
    """The states in which `happening` is possible."""
    return frozenset(arrow.source for arrow in ARROWS if arrow.happening is happening)


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> created"]
    lines += [f"    {a.source.word} --> {a.target.word}: {a.happening.value}" for a in ARROWS]
    lines += [f"    {state.word} --> [*]" for state in sorted(ENDED)]
    return "\n".join(lines)
