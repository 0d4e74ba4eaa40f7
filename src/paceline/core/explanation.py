"""What an explanation is made of: the facts about a job, and the words for what they mean."""

from enum import StrEnum
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import SECOND, JobRow, Wants
from paceline.core.scheduling import QueueClass

COUNTED_AHEAD = 1_000
"""Nobody needs to know more exactly how many stand before a job; counting further would cost everybody."""
QUIET_AFTER = 40 * SECOND
"""A node that has not been heard of for so long deserves a word."""
NAMED = 3


class Why(StrEnum):
    """The reason code of every explanation."""

    SUBMISSION_OPEN = "submission_open"
    SUBMISSION_ACCEPTED = "submission_accepted"
    DEPENDENCIES = "dependencies"
    SESSION = "session"
    SETTLING = "settling"
    DELAYED = "delayed"
    BACKING_OFF = "backing_off"
    NO_NODE = "no_node_for_agent"
    AGENT_LIMIT = "agent_limit"
    LOCK_HELD = "lock_held"
    POOL_FULL = "pool_full"
    NEVER_FITS = "never_fits"
    PINNED = "pinned"
    SLOTS_FULL = "slots_full"
    IN_LINE = "in_line"
    RUNNING = "running"
    NODE_SILENT = "node_silent"
    STOPPING = "stopping"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    DEPENDENCY_FAILED = "dependency_failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class Holder(NamedTuple):
    """A job that has what another one needs."""

    job: int
    since: int | None
    state: State = State.RUNNING


class Pool(NamedTuple):
    """A limit that a job has to fit under: what it demands, what is held and by whom."""

    name: str
    units: int
    limit: int
    held: int
    holders: tuple[Holder, ...] = ()


class Prerequisite(NamedTuple):
    """A job that another one waits for; `session`: it is the one before it in the conversation."""

    job: int
    state: State
    wants: Wants
    session: bool = False


class Host(NamedTuple):
    """A live node as far as explanations need it."""

    name: str
    slots: int
    held: int
    beat_at: int
    expires_at: int
    ended_at: int | None = None
    takes: bool = True
    """It may take the job: it shares work, or this is no other living node's."""


class Failure(NamedTuple):
    """What is known of an error."""

    type: str = ""
    message: str = ""
    failure_class: str = ""
    chain: tuple[int, ...] = ()
    cause: str = ""


class Facts(NamedTuple):
    """Everything an explanation may draw upon; what does not matter in the job's state may be left out."""

    job: JobRow
    queue_class: QueueClass
    priority: int
    agent: str
    origin: str
    entered_at: int | None = None
    accepted: bool = False
    unmet: tuple[Prerequisite, ...] = ()
    unmet_count: int = 0
    at_root: tuple[int, str] | None = None
    """The job that the whole line of prerequisites waits for in the end, and why it is where it is."""
    nodes: int = 0
    serving: tuple[Host, ...] = ()
    home: str = ""
    """The living node through which it was submitted."""
    namesakes: tuple[tuple[str, str], ...] = ()
    """(node, origin) of live nodes that have an agent of the same name from elsewhere."""
    pools: tuple[Pool, ...] = ()
    in_lane: int | None = None
    ahead: int | None = None
    holder: Host | None = None
    failure: Failure = Failure()
    fraction: float | None = None
    note: str | None = None


class Explanation(NamedTuple):
    """Why a job is where it is: a code for programs, `brief` for a column, `text` for people.

    `position` is the place in its lane, from 1; `ahead` counts the ready jobs of all lanes that go first. Both are
    None where they say nothing, and `ahead` stops at 1,000.
    """

    job: int
    state: State
    code: Why
    brief: str
    text: str
    since: int | None = None
    until: int | None = None
    waits_for: tuple[int, ...] = ()
    held_by: tuple[Holder, ...] = ()
    position: int | None = None
    ahead: int | None = None
    notes: tuple[str, ...] = ()
    todo: str = ""

    def __str__(self) -> str:
        return f"j{self.job} {self.state.word.replace('_', ' ')}: {self.text}"
