"""One folder of Unix datagram sockets, one for each process that listens: no event loop here."""

import errno
import os
import re
import secrets
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from paceline.bus.packing import DATAGRAMS
from paceline.bus.protocol import Hint, Topic

SUPPORTED = os.name == "posix" and hasattr(socket, "AF_UNIX")

_MOST_DATAGRAMS_PER_READ = 64

# A folder that is changed twice within one tick of the file system's clock shows one time of change.
_TICK_NS = 100_000_000

_SOCKET_NAME = re.compile(r"\d+-[0-9a-f]{8}\.sock")
_GONE = frozenset({errno.ECONNREFUSED, errno.ECONNRESET, errno.ENOENT})
_LATER = frozenset({errno.EAGAIN, errno.EINTR, errno.ENOBUFS, errno.ENOMEM, errno.EMSGSIZE})

_CREDENTIALS = struct.Struct("iII")
_CREDENTIALS_ROOM = socket.CMSG_SPACE(_CREDENTIALS.size) if sys.platform == "linux" else 0

pack, unpack = DATAGRAMS.pack, DATAGRAMS.unpack


def why_unsafe(folder: Path) -> str:
    """Why sockets in this folder could be somebody else's; empty when they are ours alone."""
    try:
        status = os.lstat(folder)
    except (OSError, ValueError) as error:
        return f"cannot look at {folder}: {error}"
    reasons = (
        (stat.S_ISLNK(status.st_mode), "is a symbolic link"),
        (not stat.S_ISDIR(status.st_mode), "is not a folder"),
        (status.st_uid != os.geteuid(), f"belongs to user {status.st_uid}, not to {os.geteuid()}"),
        (bool(status.st_mode & 0o077), f"is open to others (mode {stat.S_IMODE(status.st_mode):o}, needed 700)"),
    )
    return next((f"{folder} {reason}" for applies, reason in reasons if applies), "")


def sent_by_this_user(ancillary: Iterable[tuple[int, int, bytes]]) -> bool:
    """Linux says who sent a datagram; elsewhere the folder's mode is what protects."""
    if sys.platform != "linux":
        return True
    for level, kind, data in ancillary:
        if (level, kind, len(data)) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, _CREDENTIALS.size):
            _, user, _ = _CREDENTIALS.unpack(data)
            return bool(user == os.getuid())
    return False


def new_socket() -> socket.socket:
    fresh = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    fresh.setblocking(False)
    return fresh


class Mailbox:
    """The socket on which this process is told things."""

    def __init__(self, folder: Path) -> None:
        stem = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.name = f"{stem}.sock"
        self._path = os.path.join(folder, self.name)
        # A socket file exists an instant before it answers, and who refuses is taken for dead: so it is born hidden.
        hidden = os.path.join(folder, f".{stem}.new")
        self.socket = new_socket()
        try:
            if sys.platform == "linux":
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.socket.bind(hidden)
            os.rename(hidden, self._path)
        except OSError:
            self.socket.close()
            with suppress(OSError):
                os.unlink(hidden)
            raise

    def read(self) -> tuple[list[Hint], int]:
        """What has been told, and how many datagrams were not for us to believe."""
        hints: list[Hint] = []
        ignored = 0
        for _ in range(_MOST_DATAGRAMS_PER_READ):
            try:
                datagram, ancillary, _, _ = self.socket.recvmsg(DATAGRAMS.most_bytes, _CREDENTIALS_ROOM)
            except OSError:
                break
            told = unpack(datagram) if sent_by_this_user(ancillary) else None
            ignored += told is None
            hints += told or ()
        return hints, ignored

    def withdraw(self) -> None:
        """Takes the name away, so that nobody tells us any more."""
        with suppress(OSError):
            os.unlink(self._path)


class Neighbours:
    """Everybody else who listens in a folder, and what they could not be told yet because their queue was full."""

    def __init__(self, folder: Path, speaker: socket.socket, own_name: str = "") -> None:
        self.taken = 0
        """Datagrams that a neighbour has accepted."""
        self._folder = os.fspath(folder)
        self._own_name = own_name
        self._paths: list[str] = []
        self._listed_at_ns = -1
        self._owed: dict[str, set[Topic]] = {}
        self._lock = threading.Lock()
        self._speaker = speaker

    def send(self, hints: Sequence[Hint]) -> bool:
        """Tells everybody, from any thread; True when somebody came to be owed something."""
        with self._lock:
            paths = self._look()
            if not paths:
                return False
            datagram = pack(hints)
            owing_before = len(self._owed)
            for path in paths:
                if path in self._owed or not self._post(datagram, path):
                    self._owed.setdefault(path, set()).update(hint.topic for hint in hints)
            return len(self._owed) > owing_before

    def pay(self) -> bool:
        """Tells those who are owed something to look for themselves; True when some are still owed."""
        with self._lock:
            for path, topics in list(self._owed.items()):
                if self._post(pack(Hint(topic) for topic in sorted(topics)), path):
                    self._owed.pop(path, None)
            return bool(self._owed)

    def _look(self) -> list[str]:
        with suppress(OSError):
            changed_at = os.stat(self._folder).st_mtime_ns
            if changed_at != self._listed_at_ns:
                names = os.listdir(self._folder)
                others = (name for name in names if name != self._own_name and _SOCKET_NAME.fullmatch(name))
                self._paths = [os.path.join(self._folder, name) for name in others]
                self._listed_at_ns = changed_at if time.time_ns() - changed_at > _TICK_NS else -1
        return self._paths

    def _post(self, datagram: bytes, path: str) -> bool:
        """Whether this neighbour needs nothing more: told, gone, or not to be reached."""
        try:
            self._speaker.sendto(datagram, path)
        except OSError as error:
            if error.errno in _LATER:
                return False
            if error.errno in _GONE:
                self._forget(path)
            return True
        self.taken += 1
        return True

    def _forget(self, path: str) -> None:
        with suppress(OSError):
            os.unlink(path)
        self._paths = [known for known in self._paths if known != path]
        self._owed.pop(path, None)


def tell_once(folder: Path, hints: Sequence[Hint]) -> int:
    """For a program without an event loop: tells everybody who listens in the folder; answers how many took it."""
    if not hints or not SUPPORTED or why_unsafe(folder):
        return 0
    try:
        speaker = new_socket()
    except OSError:
        return 0
    with speaker:
        neighbours = Neighbours(folder, speaker)
        neighbours.send(hints)
    return neighbours.taken
