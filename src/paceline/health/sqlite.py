"""A store in a file, from its folder up to what is in it."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from paceline.config import Settings
from paceline.core.durations import format_duration
from paceline.health.users import LARGE_STORE, contents, in_use, unread
from paceline.health.verdicts import MEGABYTE, Grade, Verdict, guarded, ok, size, warn
from paceline.store.maintenance import check, plan
from paceline.store.places import MOUNTS, check_file, check_folder, file_system_of
from paceline.store.protocol import Store

LEAST_DISK, LITTLE_DISK = 100 * MEGABYTE, 1_000 * MEGABYTE
CLOCK_SLACK = 5_000_000
LARGE_LOG = 64 * MEGABYTE


def file_store(path: Path, settings: Settings) -> Iterator[Verdict]:
    """The database, from its folder up to what is in it; ends at the first thing that makes the rest meaningless."""
    system = _file_system(path)
    yield system
    if system.grade is Grade.FAIL:
        return
    yield _disk(path)
    if not os.path.lexists(path):
        yield warn("store", f"{path} does not exist yet", "paceline init makes it; so does the first run")
        return
    places: tuple[tuple[str, Path, Callable[[Path], None]], ...] = (
        ("folder", path.parent, check_folder),
        ("file", path, check_file),
    )
    for name, place, refuse in places:
        verdict = guarded(name, partial(_place, name, place, refuse))
        yield verdict
        if verdict.grade is Grade.FAIL:
            return
    for name, question in (("schema", _schema), ("contents", _contents_of)):
        verdict = guarded(name, partial(question, path))
        yield verdict
        if verdict.grade is Grade.FAIL or (name == "schema" and verdict.grade is not Grade.OK):
            return
    yield _log(path)
    yield from in_use(settings, _drift)


def _file_system(path: Path) -> Verdict:
    place = _nearest(path.parent)
    try:
        kind = file_system_of(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"), os.path.realpath(place))
    except OSError:
        kind = ""
    return guarded("file system", lambda: _checked_place(place, kind))


def _checked_place(place: Path, kind: str) -> Verdict:
    check_folder(place)
    return ok("file system", kind or "not told by this system; a network file system would not do")


def _disk(path: Path) -> Verdict:
    free = shutil.disk_usage(_nearest(path.parent)).free
    grade = Grade.FAIL if free < LEAST_DISK else Grade.WARN if free < LITTLE_DISK else Grade.OK
    todo = "" if grade is Grade.OK else "free some space: a full disk stops all work"
    return Verdict("disk", grade, f"{size(free)} free", todo)


def _place(name: str, place: Path, refuse: Callable[[Path], None]) -> Verdict:
    refuse(place)
    status = os.lstat(place)
    return ok(name, f"{place}, mode {status.st_mode & 0o777:04o}, of user {status.st_uid}")


def _schema(path: Path) -> Verdict:
    found = plan(path)
    if found.steps:
        return warn("schema", f"{found.schema}; this program has {found.newest}", "paceline db migrate")
    return ok("schema", f"{found.schema}")


def _contents_of(path: Path) -> Verdict:
    room = path.stat().st_size
    return unread(room) if room > LARGE_STORE else contents(check(path))


def _log(path: Path) -> Verdict:
    log = path.with_name(f"{path.name}-wal")
    room = log.stat().st_size if log.exists() else 0
    if room > LARGE_LOG:
        return warn("write-ahead log", size(room), "a program reads the store without end; stop it")
    return ok("write-ahead log", size(room))


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), Path("/"))


def _drift(store: Store) -> Verdict:
    away = abs(store.clock.now() - time.time_ns() // 1_000)
    if away <= CLOCK_SLACK:
        return ok("store time", f"within {format_duration(max(1_000, away))} of the clock on the wall")
    found = f"{format_duration(away)} away from the clock on the wall, which was set since this host started"
    return warn("store time", found, "times that are shown are off by that until this host starts again")
