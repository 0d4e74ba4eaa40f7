"""What a database error means to the person who meets it."""

from pathlib import Path

import apsw

from paceline.errors import StoreError

_MEANINGS: tuple[tuple[type[apsw.Error], str, str, str], ...] = (
    (apsw.NotADBError, "store_not_a_database", "the file is not a Paceline database",
     "name another file, or restore a backup"),
    (apsw.CorruptError, "store_damaged", "the database file is damaged", "restore a backup; `paceline db check` says more"),
    (apsw.BusyError, "store_busy", "another program keeps the database locked", "end that program or wait, then try again"),
    (apsw.LockedError, "store_busy", "another connection keeps the database locked", "try again"),
    (apsw.FullError, "store_full", "the disk or the database's quota is full; nothing of this was written",
     "free some space; work goes on by itself"),
    (apsw.ReadOnlyError, "store_readonly", "the database cannot be written", "check owner and mode of the file and its folder"),
    (apsw.CantOpenError, "store_cannot_open", "the database cannot be opened",
     "check that the folder exists, its owner and mode, and the number of open files"),
    (apsw.PermissionsError, "store_cannot_open", "no permission to open the database", "check owner and mode"),
    (apsw.IOError, "store_io", "the disk answered with an error; nothing of this was written", "check the disk, then start again"),
    (apsw.ConstraintError, "store_constraint", "the database refused a row that breaks its rules", "please report this as a bug"),
)  # fmt: skip


def explain(error: apsw.Error, path: Path | None) -> StoreError:
    """The database's error in the common form."""
    for kind, code, what, todo in _MEANINGS:
        if isinstance(error, kind):
            return StoreError(code=code, what=what, where=str(path or "memory"), found=str(error), todo=todo)
    return StoreError(
        code="store_error", what="the database answered with an error", where=str(path or "memory"),
        found=f"{type(error).__name__}: {error}", todo="`paceline doctor` looks for causes",
    )  # fmt: skip
