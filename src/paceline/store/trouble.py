"""What a database error means to the person who meets it."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from paceline.errors import StoreError
from paceline.store.holders import holders


class Meaning(NamedTuple):
    """One kind of trouble: its code, what it is in plain words, what to do."""

    code: str
    what: str
    todo: str


FULL = Meaning(
    "store_full",
    "the disk or a quota is full; nothing of this was written",
    "free some space; work goes on by itself",
)
BUSY = Meaning("store_busy", "another program keeps the database locked", "end that program or wait, then try again")
READONLY = Meaning(
    "store_readonly", "the database cannot be written", "check owner and mode of the file and its folder"
)
CANNOT_OPEN = Meaning(
    "store_cannot_open",
    "the database cannot be opened",
    "check that the folder exists, and owner and mode of both",
)
NO_FILES = Meaning(
    "store_too_many_files",
    "the database cannot be opened: this process may open no more files",
    "raise the limit (ulimit -n), or run fewer things in one process",
)
CLOSED = Meaning("store_closed", "the store is closed", "open it again")
IO = Meaning(
    "store_io",
    "the disk answered with an error; nothing of this was written",
    "check the disk, then start again",
)

CONSTRAINT = Meaning(
    "store_constraint", "the database refused a row that breaks its rules", "please report this as a bug"
)

_MEANINGS: tuple[tuple[type[apsw.Error], Meaning], ...] = (
    (apsw.NotADBError, Meaning("store_not_a_database", "the file is not a Paceline database",
                               "name another file, or restore a backup")),
    (apsw.CorruptError, Meaning("store_damaged", "the database file is damaged",
                                "restore a backup; `paceline db check` says more")),
    (apsw.BusyError, BUSY),
    (apsw.LockedError, BUSY),
    (apsw.FullError, FULL),
    (apsw.ReadOnlyError, READONLY),
    (apsw.CantOpenError, CANNOT_OPEN),
    (apsw.PermissionsError, CANNOT_OPEN),
    (apsw.IOError, IO),
    (apsw.ConnectionClosedError, CLOSED),
    (apsw.ConstraintError, CONSTRAINT),
)  # fmt: skip
UNKNOWN = Meaning("store_error", "the database answered with an error", "`paceline doctor` looks for causes")

NEEDED = 5
"""Descriptors of one open database: file, log, shared memory, its turn, and one to look around with."""

_ERRNO = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), READONLY),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), NO_FILES),
    errno.EIO: IO,
}


def explain(error: Exception, path: Path | None) -> StoreError:
    """The database's error in the common form."""
    meaning = next((meaning for kind, meaning in _MEANINGS if isinstance(error, kind)), UNKNOWN)
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE:
        meaning = FULL  # a quota and a limit on file sizes refuse the write without saying that they are full
    if meaning is CANNOT_OPEN and _no_descriptors_left():
        meaning = NO_FILES
    found = str(error) if meaning is not UNKNOWN else f"{type(error).__name__}: {error}"
    return complaint(meaning, path, found)


def explain_os(error: OSError, path: Path | None) -> StoreError:
    """The operating system's error in the common form."""
    return complaint(_ERRNO.get(error.errno or 0, CANNOT_OPEN), path, error.strerror or str(error))


def complaint(meaning: Meaning, path: Path | None, found: str) -> StoreError:
    """One kind of trouble, with what can be seen of its cause."""
    more = _LOOKS.get(meaning.code)
    facts = more(path) if more is not None and path is not None else ""
    found = f"{found}; {facts}" if facts else found
    return StoreError(code=meaning.code, what=meaning.what, where=str(path or "memory"), found=found, todo=meaning.todo)


def carried(where: str) -> StoreError:
    """A child process has a connection of its parent."""
    return StoreError(
        code="store_after_fork", what="a database connection was carried across a fork", where=where,
        todo="open the store again in the child",
    )  # fmt: skip


def newer(where: str, found: int, most: int) -> StoreError:
    """The database has a schema that this program does not know."""
    return StoreError(
        code="store_newer", what="the database was written by a newer Paceline", where=where,
        found=f"schema {found}", allowed=f"up to schema {most}", todo="upgrade this installation",
    )  # fmt: skip


def older(where: str, found: int, least: int) -> StoreError:
    """The database lacks migrations, and whoever only looks applies none."""
    return StoreError(
        code="store_older", what="the database was written by an older Paceline", where=where,
        found=f"schema {found}", allowed=f"schema {least}",
        todo="paceline db migrate, once every older node has stopped",
    )  # fmt: skip


@contextmanager
def explained(path: Path | None) -> Iterator[None]:
    """Errors of the database and of the operating system leave here in the common form."""
    try:
        yield
    except apsw.Error as error:
        raise explain(error, path) from None
    except OSError as error:
        raise explain_os(error, path) from None


def _no_descriptors_left() -> bool:
    """Fewer than an open database needs: what the failed attempt had opened is closed again by now."""
    opened: list[int] = []
    try:
        while len(opened) < NEEDED:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for one in opened:
            os.close(one)
    return False


def _limit_of_descriptors(path: Path) -> str:
    return f"the limit of {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} is reached"


def _standing(path: Path) -> str:
    """Owner and mode of a file and its folder."""
    told = []
    for name in (path, path.parent):
        try:
            status = os.lstat(name)
        except OSError:
            continue
        told.append(f"{name.name or name} has mode {status.st_mode & 0o7777:04o} and belongs to user {status.st_uid}")
    return f"{', '.join(told)}; we are user {os.geteuid()}"


_LOOKS: dict[str, Callable[[Path], str]] = {
    BUSY.code: holders,
    READONLY.code: _standing,
    CANNOT_OPEN.code: _standing,
    NO_FILES.code: _limit_of_descriptors,
}
