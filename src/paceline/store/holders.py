"""Who keeps a file locked, where the kernel tells."""

import os
from collections.abc import Collection
from pathlib import Path

LOCKS = Path("/proc/locks")


def holders(path: Path) -> str:
    """The processes that hold a lock on a database or on one of the files beside it, in words; empty when unknown."""
    files: set[tuple[int, int]] = set()
    for name in (path, f"{path}-shm", f"{path}.lock"):
        try:
            status = os.stat(name)
        except OSError:
            continue
        files.add((status.st_dev, status.st_ino))
    try:
        pids = locked_by(LOCKS.read_text(encoding="ascii"), files) - {os.getpid()}
    except (OSError, ValueError):
        return ""
    return f"held by {', '.join(map(_named, sorted(pids)))}" if pids else ""


def locked_by(locks: str, files: Collection[tuple[int, int]]) -> set[int]:
    """Processes that hold an exclusive lock on one of the given (device, inode), from the text of /proc/locks."""
    found = set()
    for line in locks.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] == "->" or words[3] != "WRITE":
            continue
        major, minor, inode = words[5].split(":")
        if (os.makedev(int(major, 16), int(minor, 16)), int(inode)) in files and int(words[4]) > 0:
            found.add(int(words[4]))
    return found


def _named(pid: int) -> str:
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    except OSError:
        return f"process {pid}"
