"""This computer, this Python, and the agents that were loaded into it."""

import platform
import sys
import time
from collections.abc import Iterator
from typing import Any

import apsw

from paceline.agents.definition import Agent
from paceline.agents.function import bind
from paceline.agents.registry import registry
from paceline.clock import boot_id
from paceline.core.problem import Problem
from paceline.health.verdicts import Grade, Verdict, failed, listed, ok, warn

SAFE_SQLITE = (3, 51, 3)
"""Older ones can corrupt a write-ahead log that two connections write and empty at the same instant."""

LEAST_FILES, FEW_FILES = 64, 512


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
    yield from (failed("agents", problem) for problem in unfit)
    if threads:
        found = f"{listed(threads)} run in threads of the node: nothing can stop them, and they slow it down"
        yield warn("agents", found, "make them async, or keep them short")
    else:
        names = [agent.name for agent in agents]
        yield ok("agents", f"{listed(names)}; inline, so without limits on memory and processor")


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


def _platform(name: str) -> Verdict:
    known = platform.platform(terse=True)
    if name == "linux":
        return ok("platform", known)
    if name == "darwin":
        found = f"{known}: no cgroups and no pidfd; processes are watched by looking"
        return warn("platform", found, "for work with hard limits use Linux")
    return warn("platform", f"{known}: only inline agents and commands, without limits", "use Linux or WSL 2")


def _sqlite(version: str) -> Verdict:
    safe = tuple(int(part) for part in version.split(".")[:3]) >= SAFE_SQLITE
    least = ".".join(map(str, SAFE_SQLITE))
    todo = "" if safe else f"pip install --upgrade apsw: before {least} SQLite can damage a store that is written twice"
    return Verdict("sqlite", Grade.OK if safe else Grade.FAIL, version, todo)


def _open_files() -> Verdict:
    try:
        import resource  # not on Windows
    except ImportError:
        return ok("open files", "no limit to be read here")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return ok("open files", "unlimited")
    grade = Grade.FAIL if soft < LEAST_FILES else Grade.WARN if soft < FEW_FILES else Grade.OK
    most = 4_096 if hard == resource.RLIM_INFINITY else min(4_096, hard)
    return Verdict("open files", grade, f"up to {soft:,}", "" if grade is Grade.OK else f"ulimit -n {most}")


def _clock() -> Verdict:
    if not hasattr(time, "CLOCK_BOOTTIME") and sys.platform != "darwin":
        found = "no clock that counts on while the host sleeps"
        return warn("clock", found, "a host that sleeps may look dead to others")
    if not boot_id():
        found = "the system has no name for this boot"
        return warn("clock", found, "set the clock before nodes start, not later")
    return ok("clock", "counts on while the host sleeps, and is never stepped")
