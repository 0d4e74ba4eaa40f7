"""Which process is meant, for good: a process id alone comes back for somebody else."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

from paceline.clock import boot_id
from paceline.core.problem import Problem

State = Literal["alive", "dead", "unknown"]

_TEXT = re.compile(r"([^/]*)/([^/]*)/([1-9][0-9]{0,8})/([0-9]{1,18})")
_ENDED = frozenset("ZXx")
_CLOCK_SLACK_US = 2_000_000


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Names one process of one boot of one host; empty or 0 stands for what the platform does not tell."""

    boot: str
    namespace: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.boot}/{self.namespace}/{self.pid}/{self.started}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The identity that `str()` wrote."""
        parts = _TEXT.fullmatch(text)
        if parts is None:
            raise Problem(
                code="bad_process_identity",
                what="this does not name a process",
                found=repr(text[:200]),
                allowed="BOOT/NAMESPACE/PID/STARTED",
            )
        return cls(parts[1], parts[2], int(parts[3]), int(parts[4]))


class _Sight(NamedTuple):
    """What can be seen of a process id here and now; start times within the slack are the same."""

    state: State
    started: int = 0
    slack: int = 0


_UNKNOWN = _Sight("unknown")
_DEAD = _Sight("dead")


def current() -> ProcessIdentity:
    """This process."""
    return ProcessIdentity(boot_id(), _namespace(), os.getpid(), _look(os.getpid()).started)


def of(pid: int) -> ProcessIdentity | None:
    """The process that has this id now, None when there is none or the platform cannot tell."""
    sight = _look(pid)
    return ProcessIdentity(boot_id(), _namespace(), pid, sight.started) if sight.state == "alive" else None


def state_of(identity: ProcessIdentity) -> State:
    """`dead` and `alive` are certain, provided that the identity was taken on this host."""
    boot = boot_id()
    if boot and identity.boot and identity.boot != boot:
        return "dead"
    if identity.boot != boot or identity.namespace != _namespace():
        return "unknown"
    sight = _look(identity.pid)
    if sight.state != "alive":
        return sight.state
    if not sight.started or not identity.started:
        return "unknown"
    return "alive" if abs(sight.started - identity.started) <= sight.slack else "dead"


def state_seen_here(text: str) -> State:
    """What this host knows of the process that a text names, whatever host wrote it.

    A process of another host and one from before this host was started again look the same: nothing is known of either.
    """
    try:
        identity = ProcessIdentity.parse(text)
    except Problem:
        return "unknown"  # somebody else's way to write it down
    return state_of(identity) if identity.boot == boot_id() else "unknown"


def _namespace() -> str:
    """The space in which process ids mean something; each container has its own."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino) if sys.platform == "linux" else ""
    except OSError:
        return ""


def _look(pid: int) -> _Sight:
    return _LOOKS.get(sys.platform, _look_with_psutil)(pid)


def _look_in_proc(pid: int) -> _Sight:
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return _UNKNOWN  # mounted from outside: its numbers are not ours
    except OSError:
        return _UNKNOWN
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return _ask_by_signal(pid)
    except OSError:
        return _UNKNOWN
    # The name in brackets may hold anything, brackets and blanks too.
    fields = text.rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    # A process whose first thread has ended looks like a zombie while its other threads work on.
    return _DEAD if state in _ENDED and threads <= 1 else _Sight("alive", started)


def _ask_by_signal(pid: int) -> _Sight:
    """Not to be seen is not yet dead: /proc may hide the processes of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return _DEAD
    except OSError:
        return _UNKNOWN
    return _UNKNOWN


def _look_with_psutil(pid: int) -> _Sight:
    try:
        import psutil  # late: Linux does without
    except ImportError:
        return _UNKNOWN
    try:
        process = psutil.Process(pid)
        ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        started = int(process.create_time() * 1_000_000)
    except psutil.NoSuchProcess:
        return _DEAD
    except psutil.Error:
        return _UNKNOWN
    # This start time is wall time, which moves a little when the clock is put right.
    return _DEAD if ended else _Sight("alive", started, _CLOCK_SLACK_US)


_LOOKS = {"linux": _look_in_proc}
