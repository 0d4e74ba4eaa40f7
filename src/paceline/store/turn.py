"""Writers of one file take turns at a lock beside it: the kernel wakes them in order, a database would starve some."""

import fcntl
import os
import threading
from pathlib import Path


class Turn:
    """One connection's place in the line; waiting ends when its time is up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open(path)
        os.fchmod(self._file, 0o600)
        self._borrowed: int | None = None
        self._wait: _Wait | None = None

    def take(self, patience: float) -> bool:
        """Waits until it is our turn; False when others have held it for `patience` seconds."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        if self._wait is None or not self._wait.wanted_again():
            self._wait = _Wait(self._path)
        self._borrowed = self._wait.within(patience)
        if self._borrowed is not None:
            self._wait = None
        return self._borrowed is not None

    def give(self) -> None:
        """The next one may write; fine when it was not our turn."""
        if self._borrowed is not None:
            os.close(self._borrowed)
            self._borrowed = None
        else:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leaves the line."""
        self.give()
        os.close(self._file)


class _Wait:
    """A blocked lock cannot be told to give up, so a thread waits for it, with a descriptor that it may hand over."""

    def __init__(self, path: Path) -> None:
        self._change = threading.Condition()
        self._wanted = True
        self._over = False
        self._file = _open(path)
        threading.Thread(target=self._run, name="paceline-turn", daemon=True).start()

    def wanted_again(self) -> bool:
        """Somebody waits once more; False when the turn came meanwhile and was passed on."""
        with self._change:
            self._wanted = not self._over
            return self._wanted

    def within(self, patience: float) -> int | None:
        """The descriptor that holds the lock, or None when the time is up."""
        with self._change:
            self._change.wait_for(lambda: self._over, patience)
            self._wanted = False
            return self._file if self._over else None

    def _run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._change:
            self._over = True
            if self._wanted:
                self._change.notify()
            else:
                os.close(self._file)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
