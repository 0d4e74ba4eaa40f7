"""What may be wrong with this host, the settings and the store: one verdict a question, each with what to do."""

import asyncio
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from paceline.agents.definition import Agent
from paceline.agents.function import bind
from paceline.agents.registry import registry
from paceline.bus.protocol import Notifier
from paceline.clock import boot_id
from paceline.config import Settings, load
from paceline.core.durations import format_duration
from paceline.core.model import NodeRow
from paceline.core.problem import Problem
from paceline.opening import open_store, path_of
from paceline.store.maintenance import check, plan
from paceline.store.places import MOUNTS, check_file, check_folder, file_system_of
from paceline.store.protocol import Store, Tx
from paceline.workers.identity import ProcessIdentity, state_of

SAFE_SQLITE = (3, 51, 3)
"""Older ones can corrupt a write-ahead log that two connections write and empty at the same instant."""

MEGABYTE = 1 << 20
LEAST_DISK, LITTLE_DISK = 100 * MEGABYTE, 1_000 * MEGABYTE
LEAST_FILES, FEW_FILES = 64, 512
LARGE_LOG = 64 * MEGABYTE
LARGE_STORE = 512 * MEGABYTE
"""Reading more than that takes longer than anybody waits for a look at everything."""
CLOCK_SLACK = 5_000_000
DURATIONS = {"heartbeat", "dead_after", "drain"}


class Grade(StrEnum):
    """How good an answer is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Verdict(NamedTuple):
    """One question answered."""

    name: str
    grade: Grade
    found: str
    todo: str = ""


def _ok(name: str, found: str) -> Verdict:
    return Verdict(name, Grade.OK, found)


def _warn(name: str, found: str, todo: str) -> Verdict:
    return Verdict(name, Grade.WARN, found, todo)


class Origin(NamedTuple):
    """A setting that holds, and who says so."""

    name: str
    value: object
    source: str


def examine(folder: Path, environment: Mapping[str, str], said: Mapping[str, object]) -> Iterator[Verdict]:
    """All verdicts, one after the other; what cannot be asked after a failure is left out."""
    yield from host()
    try:
        settings = load(folder, environment, said)
        path = path_of(settings.store)
    except Problem as problem:
        yield _failed("settings", problem)
        return
    yield _ok("settings", _changed(origins(folder, environment, said)))
    yield from code()
    if path is None:
        yield _warn("store", "in memory: it ends with its process", "name a file to keep jobs")
        return
    yield from store(path.absolute(), settings)


def host() -> Iterator[Verdict]:
    """This computer and this Python, whatever the store."""
    right = sys.version_info >= (3, 11)
    version = f"{platform.python_implementation()} {platform.python_version()}"
    yield Verdict("python", Grade.OK if right else Grade.FAIL, version, "" if right else "use Python 3.11 or newer")
    yield _platform(sys.platform)
    yield _sqlite(apsw.sqlite_lib_version())
    yield _open_files()
    yield _clock()


def code() -> Iterator[Verdict]:
    """The agents that were loaded here."""
    agents = registry.all()
    if not agents:
        return
    inline = [agent for agent in agents if agent.definition.isolation == "inline"]
    threads, unfit = _in_threads(inline)
    yield from (_failed("agents", problem) for problem in unfit)
    if threads:
        found = f"{_listed(threads)} run in threads of the node: nothing can stop them, and they slow it down"
        yield _warn("agents", found, "make them async, or keep them short")
    else:
        names = [agent.name for agent in agents]
        yield _ok("agents", f"{_listed(names)}; inline, so without limits on memory and processor")


def _in_threads(agents: list[Agent[..., Any]]) -> tuple[list[str], list[Problem]]:
    """The agents that run in threads, and what is wrong with those that can never run."""
    threads: list[str] = []
    unfit: list[Problem] = []
    for agent in agents:
        try:
            if not bind(agent).is_async:
                threads.append(agent.name)
        except Problem as problem:
            unfit.append(problem)
    return threads, unfit


def store(path: Path, settings: Settings) -> Iterator[Verdict]:
    """The database, from its folder up to what is in it; ends at the first thing that makes the rest meaningless."""
    system = _file_system(path)
    yield system
    if system.grade is Grade.FAIL:
        return
    yield _disk(path)
    if not os.path.lexists(path):
        yield _warn("store", f"{path} does not exist yet", "paceline init makes it; so does the first run")
        return
    places: tuple[tuple[str, Path, Callable[[Path], None]], ...] = (
        ("folder", path.parent, check_folder),
        ("file", path, check_file),
    )
    for name, place, refuse in places:
        verdict = _guarded(name, partial(_place, name, place, refuse))
        yield verdict
        if verdict.grade is Grade.FAIL:
            return
    for name, question in (("schema", _schema), ("contents", _contents_of)):
        verdict = _guarded(name, partial(question, path))
        yield verdict
        if verdict.grade is Grade.FAIL or (name == "schema" and verdict.grade is not Grade.OK):
            return
    yield _log(path)
    yield from _in_use(settings)


def origins(folder: Path, environment: Mapping[str, str], said: Mapping[str, object]) -> list[Origin]:
    """Every setting with where it comes from: the default, a file, the environment or the command line."""
    settings, from_file = load(folder, environment, said), load(folder, {}, {})
    file = "paceline.toml" if (folder / "paceline.toml").is_file() else "pyproject.toml"
    found = []
    for one in fields(Settings):
        value = getattr(settings, one.name)
        if said.get(one.name) is not None:
            source = "command line"
        elif one.name != "limits" and environment.get(f"PACELINE_{one.name.upper()}", "").strip():
            source = f"PACELINE_{one.name.upper()}"
        else:
            source = file if getattr(from_file, one.name) != getattr(Settings(), one.name) else "default"
        shown = format_duration(value) if one.name in DURATIONS else value
        found.append(Origin(one.name, shown, source))
    return found


def _platform(name: str) -> Verdict:
    known = platform.platform(terse=True)
    if name == "linux":
        return _ok("platform", known)
    if name == "darwin":
        found = f"{known}: no cgroups and no pidfd; processes are watched by looking"
        return _warn("platform", found, "for work with hard limits use Linux")
    return _warn("platform", f"{known}: only inline agents and commands, without limits", "use Linux or WSL 2")


def _sqlite(version: str) -> Verdict:
    safe = tuple(int(part) for part in version.split(".")[:3]) >= SAFE_SQLITE
    least = ".".join(map(str, SAFE_SQLITE))
    todo = "" if safe else f"pip install --upgrade apsw: before {least} SQLite can damage a store that is written twice"
    return Verdict("sqlite", Grade.OK if safe else Grade.FAIL, version, todo)


def _open_files() -> Verdict:
    try:
        import resource  # not on Windows
    except ImportError:
        return _ok("open files", "no limit to be read here")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _ok("open files", "unlimited")
    grade = Grade.FAIL if soft < LEAST_FILES else Grade.WARN if soft < FEW_FILES else Grade.OK
    most = 4_096 if hard == resource.RLIM_INFINITY else min(4_096, hard)
    return Verdict("open files", grade, f"up to {soft:,}", "" if grade is Grade.OK else f"ulimit -n {most}")


def _clock() -> Verdict:
    if not hasattr(time, "CLOCK_BOOTTIME") and sys.platform != "darwin":
        found = "no clock that counts on while the host sleeps"
        return _warn("clock", found, "a host that sleeps may look dead to others")
    if not boot_id():
        found = "the system has no name for this boot"
        return _warn("clock", found, "set the clock before nodes start, not later")
    return _ok("clock", "counts on while the host sleeps, and is never stepped")


def _file_system(path: Path) -> Verdict:
    place = _nearest(path.parent)
    try:
        kind = file_system_of(MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"), os.path.realpath(place))
    except OSError:
        kind = ""
    return _guarded("file system", lambda: _checked_place(place, kind))


def _checked_place(place: Path, kind: str) -> Verdict:
    check_folder(place)
    return _ok("file system", kind or "not told by this system; a network file system would not do")


def _disk(path: Path) -> Verdict:
    free = shutil.disk_usage(_nearest(path.parent)).free
    grade = Grade.FAIL if free < LEAST_DISK else Grade.WARN if free < LITTLE_DISK else Grade.OK
    todo = "" if grade is Grade.OK else "free some space: a full disk stops all work"
    return Verdict("disk", grade, f"{_size(free)} free", todo)


def _place(name: str, place: Path, refuse: Callable[[Path], None]) -> Verdict:
    refuse(place)
    status = os.lstat(place)
    return _ok(name, f"{place}, mode {status.st_mode & 0o777:04o}, of user {status.st_uid}")


def _schema(path: Path) -> Verdict:
    found = plan(path)
    if found.steps:
        return _warn("schema", f"{found.schema}; this program has {found.newest}", "paceline db migrate")
    return _ok("schema", f"{found.schema}")


def _contents_of(path: Path) -> Verdict:
    size = path.stat().st_size
    if size > LARGE_STORE:
        return _ok("contents", f"not looked for: {_size(size)} take a while; paceline db check does it")
    report = check(path)
    if not report.findings:
        return _ok("contents", f"none; {report.jobs:,} jobs, {report.events:,} events, {_size(size)}")
    first = report.findings[0]
    grade = Grade.WARN if report.sound else Grade.FAIL
    todo = "start a node: paceline up" if report.sound else "paceline db check says more; restore a backup"
    return Verdict("contents", grade, f"{first.what}: {', '.join(first.examples[:3])}", todo)


def _log(path: Path) -> Verdict:
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LARGE_LOG:
        return _warn("write-ahead log", _size(size), "a program reads the store without end; stop it")
    return _ok("write-ahead log", _size(size))


def _in_use(settings: Settings) -> Iterator[Verdict]:
    try:
        opened = open_store(settings, create=False)
    except Problem as problem:
        yield _failed("store", problem)
        return
    try:
        yield _drift(opened.store)
        yield _guarded("hints", lambda: asyncio.run(_hints(opened.notifier())))
        questions: tuple[tuple[str, Callable[[Tx], Verdict]], ...] = (
            ("nodes", _nodes),
            ("work", _work),
            ("limits", partial(_limits, settings.limits)),
        )
        for name, ask in questions:
            yield _guarded(name, partial(opened.store.look, ask))
    finally:
        opened.store.close()


def _drift(store: Store) -> Verdict:
    away = abs(store.clock.now() - time.time_ns() // 1_000)
    if away <= CLOCK_SLACK:
        return _ok("store time", f"within {format_duration(max(1_000, away))} of the clock on the wall")
    found = f"{format_duration(away)} away from the clock on the wall, which was set since this host started"
    return _warn("store time", found, "times that are shown are off by that until this host starts again")


async def _hints(notifier: Notifier) -> Verdict:
    notifier.start()
    try:
        if notifier.reach == "host":
            return _ok("hints", "reach every process of this host")
        return _warn("hints", f"reach this process alone: {notifier.reason}",
                       "work goes on, but others notice it up to a second later")  # fmt: skip
    finally:
        notifier.stop()


def _nodes(tx: Tx) -> Verdict:
    live = tx.nodes.live()
    gone = [node.name for node in live if node.expires_at < tx.now or _is_dead(node)]
    if gone:
        todo = "the next node that runs returns their jobs to the queue: paceline up --app FILE"
        return _warn("nodes", f"{_listed(gone)} ended without a word", todo)
    waiting = sum(tx.outcomes.pending())
    if waiting and not live:
        return _warn("nodes", f"none runs, and {waiting:,} jobs wait", "paceline up --app FILE")
    return _ok("nodes", _listed([node.name for node in live]) or "none runs, and no job waits")


def _is_dead(node: NodeRow) -> bool:
    try:
        return state_of(ProcessIdentity.parse(node.identity)) == "dead"
    except Problem:
        return False


def _work(tx: Tx) -> Verdict:
    ready, delayed, blocked = tx.outcomes.pending()
    names = {agent.id: agent.name for agent in tx.lanes.agents()}
    waiting = {facts.agent for facts in tx.lanes.facts(tx.lanes.with_ready_jobs()).values()}
    nobody = sorted(names[agent] for agent in waiting if not tx.nodes.serving(agent))
    found = f"{ready:,} jobs ready, {delayed:,} delayed, {blocked:,} blocked"
    if nobody:
        return _warn("work", f"{found}; no node has code for {_listed(nobody)}", "paceline up --app FILE")
    return _ok("work", found)


def _limits(said: Mapping[str, int], tx: Tx) -> Verdict:
    held = tx.pools.limits()
    other = [f"{pool} {held.get(pool)} (settings: {units})" for pool, units in said.items() if held.get(pool) != units]
    if other:
        found = f"the store says otherwise: {_listed(other)}"
        return _warn("limits", found, "the store counts; settings only give a new store its first limits")
    return _ok("limits", _listed([f"{pool} {units}" for pool, units in sorted(held.items())]) or "none set")


def _guarded(name: str, ask: Callable[[], Verdict]) -> Verdict:
    try:
        return ask()
    except Problem as problem:
        return _failed(name, problem)
    except OSError as error:
        return Verdict(name, Grade.FAIL, str(error), "check owner and mode")


def _failed(name: str, problem: Problem) -> Verdict:
    details = " ".join(part for part in (problem.what, problem.where and f"({problem.where})", problem.found) if part)
    return Verdict(name, Grade.FAIL, details, problem.todo)


def _changed(settings: list[Origin]) -> str:
    said = [f"{one.name} from {one.source}" for one in settings if one.source != "default"]
    return _listed(said) or "all at their defaults"


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), Path("/"))


def _listed(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _size(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", MEGABYTE), ("kB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
