"""A store that can be opened: its time, its hints, its nodes and what they have to do."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from paceline.bus.protocol import Notifier
from paceline.config import Settings
from paceline.core.durations import format_duration
from paceline.core.model import NodeRow
from paceline.core.problem import Problem
from paceline.health.verdicts import MEGABYTE, Grade, Verdict, failed, guarded, listed, ok, size, warn
from paceline.opening import open_store
from paceline.store.maintenance import Report
from paceline.store.protocol import Store, Tx
from paceline.workers.identity import state_seen_here

LARGE_STORE = 512 * MEGABYTE
"""Reading more than that takes longer than anybody waits for a look at everything."""

HINTS_START = 5.0
HINTED = {"host": "this host", "hosts": "every host"}


def contents(report: Report) -> Verdict:
    """What looking at everything has found."""
    if not report.findings:
        return ok("contents", f"none; {report.jobs:,} jobs, {report.events:,} events, {size(report.size)}")
    first = report.findings[0]
    grade = Grade.WARN if report.sound else Grade.FAIL
    todo = "start a node: paceline up" if report.sound else "paceline db check says more; restore a backup"
    return Verdict("contents", grade, f"{first.what}: {', '.join(first.examples[:3])}", todo)


def unread(room: int) -> Verdict:
    """A store that is too large to look at in passing."""
    return ok("contents", f"not looked for: {size(room)} take a while; paceline db check does it")


def in_use(settings: Settings, about_time: Callable[[Store], Verdict] | None = None) -> Iterator[Verdict]:
    """What its users meet; nothing is made or migrated."""
    try:
        opened = open_store(settings, create=False)
    except Problem as problem:
        yield failed("store", problem)
        return
    try:
        if about_time is not None:
            yield about_time(opened.store)
        yield guarded("hints", lambda: asyncio.run(_hints(opened.notifier())))
        questions: tuple[tuple[str, Callable[[Tx], Verdict]], ...] = (
            ("nodes", _nodes),
            ("work", _work),
            ("limits", partial(_limits, settings.limits)),
        )
        for name, ask in questions:
            yield guarded(name, partial(opened.store.look, ask))
    finally:
        opened.store.close()


async def _hints(notifier: Notifier) -> Verdict:
    notifier.start()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(HINTS_START):
                await notifier.settled()
        if notifier.reach != "process":
            return ok("hints", f"reach every process of {HINTED[notifier.reach]}")
        return warn("hints", f"reach this process alone: {notifier.reason}",
                       "work goes on, but others notice it up to a second later")  # fmt: skip
    finally:
        notifier.stop()


def _nodes(tx: Tx) -> Verdict:
    live = tx.nodes.live()
    gone = [node.name for node in live if node.expires_at < tx.now or state_seen_here(node.identity) == "dead"]
    if gone:
        todo = "the next node that runs returns their jobs to the queue: paceline up --app FILE"
        return warn("nodes", f"{listed(gone)} ended without a word", todo)
    waiting = sum(tx.outcomes.pending())
    if waiting and not live:
        return warn("nodes", f"none runs, and {waiting:,} jobs wait", "paceline up --app FILE")
    return ok("nodes", listed([_beating(node, tx.now) for node in live]) or "none runs, and no job waits")


def _beating(node: NodeRow, now: int) -> str:
    return f"{node.name} (beat {format_duration(max(0, now - node.beat_at) // 1_000_000 * 1_000_000)} ago)"


def _work(tx: Tx) -> Verdict:
    ready, delayed, blocked = tx.outcomes.pending()
    names = {agent.id: agent.name for agent in tx.lanes.agents()}
    waiting = {facts.agent for facts in tx.lanes.facts(tx.lanes.with_ready_jobs()).values()}
    nobody = sorted(names[agent] for agent in waiting if not tx.nodes.serving(agent))
    found = f"{ready:,} jobs ready, {delayed:,} delayed, {blocked:,} blocked"
    if nobody:
        return warn("work", f"{found}; no node has code for {listed(nobody)}", "paceline up --app FILE")
    return ok("work", found)


def _limits(said: Mapping[str, int], tx: Tx) -> Verdict:
    held = tx.pools.limits()
    other = [f"{pool} {held.get(pool)} (settings: {units})" for pool, units in said.items() if held.get(pool) != units]
    if other:
        found = f"the store says otherwise: {listed(other)}"
        return warn("limits", found, "the store counts; settings only give a new store its first limits")
    return ok("limits", listed([f"{pool} {units}" for pool, units in sorted(held.items())]) or "none set")
