"""Real processes, killed and frozen at random while jobs with dependencies flow; then every promise is checked.

Three nodes on one SQLite file, or on one Postgres, run agents that do nothing, sleep, fail and are retried, have a
limit or need a lock. A submitter sends single jobs, graphs and bulks with idempotency keys and goes on after its own
death. The driver ends nodes and submitter with SIGKILL, stops nodes with SIGSTOP for 0.1 to 2 times the lease, starts
them again, lets everything drain without faults, and reads the verdict from the database and from what the agents' code
witnessed.

On Postgres sessions are ended in the middle of their commits, the server is restarted or crashes, and the links to it
are cut for 0.1 to 2 times the lease: between hosts made of network namespaces where the machine allows it, else by a
proxy for each process.

Exit status 1 when a figure that must be 0 is not. `--control` plants known-bad code in the rig's own processes and must
end so.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

from _chaos_child import PATIENCE, Child
from _chaos_ground import Ground, PostgresGround, away, ground
from _chaos_links import Links, Namespaces, Proxies
from _chaos_options import options_of
from _chaos_submitter import Entry, entries
from _chaos_verdict import MUST_BE_ZERO, Evidence, Fault, verdict
from _chaos_work import LEASE_SECONDS, Work, noop, now, settings
from _measure import Noise, folder, machine, percentiles, run, show
from paceline import Paceline, PacelineError
from paceline.store.tx import Tx
from postgres_server import Stop

HERE = Path(__file__).resolve().parent
NODES = 3
SUBMITTER_SHARE = 0.25
SLOWEST_JOBS_PER_S = 10
UNREADY_SHARE = 0.1
SHORT_SHARE = 0.3
PROBE_EVERY = 0.1
ROLES = ("submitter", *(f"node{number}" for number in range(NODES)))
TURNED_AWAY = "store_unreachable"
"""What a process says that began while the place was away; it is begun once more."""


class Rig:
    """The processes, what is done to them, and a client in the driver that nobody kills."""

    def __init__(self, where: Path, options: argparse.Namespace, ground: Ground, links: Links, pl: Paceline) -> None:
        self._where = where
        self._ground = ground
        self._links = links
        self._options = options
        self._pl = pl
        self._chance = random.Random(options.seed)
        self._slots: dict[str, Child] = {}
        self._plan: list[str] = []
        self._running: set[asyncio.Task[None]] = set()
        self.faults: list[Fault] = []
        self.probed: dict[str, int] = {}
        self.probe_ms: list[float] = []
        self.died: list[str] = []
        self.turned_away = 0
        self.terminated: Counter[str] = Counter()
        self._busy: set[str] = set()
        self._restarts = 0

    async def start(self, role: str) -> None:
        """Starts the process of a role, in place of the one before."""
        control = ",".join(self._options.control or [])
        database, witnesses = self._links.url(role), str(self._where / "witness")
        ledger, pace = str(self._where / "ledger"), str(self._options.pace)
        script, more = {
            True: ("_chaos_submitter.py", [database, ledger, str(self._options.seed), pace, control]),
            False: ("_chaos_node.py", [database, witnesses, control]),
        }[role == "submitter"]
        errors = self._where / f"{role}-{len(self.faults)}.err"
        with errors.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *self._links.command(role), sys.executable, str(HERE / script), str(os.getpid()), *more,
                stdin=PIPE, stdout=PIPE, stderr=file,
            )  # fmt: skip
        self._slots[role] = Child(role, process, errors)

    async def all_ready(self) -> None:
        """Waits until every process has begun its work."""
        while not all(child.ready for child in self._slots.values()):
            await self.revive()
            await asyncio.sleep(0.02)

    async def revive(self) -> None:
        """A process that ended by itself is a finding, unless it could not begin; another takes its place."""
        for role, child in list(self._slots.items()):
            if not child.alive and not child.condemned:
                said = child.errors.read_text()
                if not child.ready and TURNED_AWAY in said and self._options.store != "sqlite":
                    self.turned_away += 1
                    await asyncio.sleep(0.1)
                else:
                    self.died.append(f"{role}: {child.process.returncode}: {said[-1500:]}")
                await self.start(role)

    async def torment(self) -> None:
        """All faults, in random order at random moments; then on until enough jobs have flowed."""
        options = self._options
        kinds = {"kill": options.kills, "freeze": options.freezes, "restart": options.restarts, "cut": options.cuts}
        self._plan = [kind for kind, times in kinds.items() for _ in range(times)]
        self._plan += ["termination"] * options.terminations
        self._chance.shuffle(self._plan)
        gap = options.seconds / max(1, len(self._plan))
        while self._plan:
            await asyncio.sleep(self._chance.uniform(0, 2 * gap))
            if self._plan:
                await self._strike(self._plan.pop())
        await asyncio.gather(*self._running)
        while await self._pl.client.store.read(newest_job) < options.jobs:  # noqa: ASYNC110 - others submit them
            await asyncio.sleep(0.5)

    async def _strike(self, fault: str) -> None:
        if fault == "kill":
            await self._kill(await self._to_kill())
        elif fault == "freeze":
            await self._freeze(await self._to_freeze())
        elif fault == "restart":
            await self._alone("restart", self._restart)
        elif fault == "cut":
            await self._alone("cut", self._sever)
        else:
            self._beside(self._terminate())

    async def _alone(self, kind: str, act: Callable[[], Coroutine[None, None, None]]) -> None:
        """Beside all other faults, but no two of a kind at once."""
        while kind in self._busy:  # noqa: ASYNC110 - the other one ends by itself
            await asyncio.sleep(0.01)
        self._busy.add(kind)
        self._beside(self._then_free(kind, act()))

    async def _then_free(self, kind: str, act: Coroutine[None, None, None]) -> None:
        try:
            await act
        finally:
            self._busy.discard(kind)

    async def _restart(self) -> None:
        self._restarts += 1
        how: Stop = "immediate" if self._restarts % 2 else "fast"
        at = now()
        await cast(PostgresGround, self._ground).restart(how, away(self._chance))
        self.faults.append(Fault("restart", how, 0, at, now()))

    async def _sever(self) -> None:
        name, seconds, at = self._chance.choice(list(self._links.names)), self._seconds_away(), now()
        await self._links.cut(name)
        await asyncio.sleep(seconds)
        await self._links.heal(name, self._chance)
        self.faults.append(Fault("cut", name, 0, at, now()))

    async def _terminate(self) -> None:
        at = now()
        met = await cast(PostgresGround, self._ground).terminate()
        self.terminated[met] += 1
        self.faults.append(Fault("termination", met, 0, at, now()))

    def _seconds_away(self) -> float:
        """Shorter than the lease, or longer."""
        within, beyond = self._chance.uniform(0.1, 1.0), self._chance.uniform(1.2, 2.0)
        return LEASE_SECONDS * (within if self._chance.random() < SHORT_SHARE else beyond)

    async def _to_kill(self) -> Child:
        """A process that works; now and then one that is only beginning or is frozen."""
        while True:
            await self.revive()
            if self._chance.random() < SUBMITTER_SHARE:
                some = [self._slots["submitter"]]
            else:
                some = self._nodes()
            anyone = self._chance.random() < UNREADY_SHARE
            some = [child for child in some if not child.condemned and (anyone or (child.ready and not child.frozen))]
            if some:
                return self._chance.choice(some)
            await asyncio.sleep(0.01)

    async def _to_freeze(self) -> Child:
        """A node that works, when no other is frozen."""
        while True:
            await self.revive()
            nodes = self._nodes()
            some = [child for child in nodes if child.ready and not child.condemned]
            if some and not any(child.frozen for child in nodes):
                return self._chance.choice(some)
            await asyncio.sleep(0.01)

    def _nodes(self) -> list[Child]:
        return [child for role, child in self._slots.items() if role != "submitter"]

    async def _kill(self, victim: Child) -> None:
        at = now()
        victim.condemned = True
        await victim.kill()
        self.faults.append(Fault("kill", victim.role, victim.process.pid, at, at))
        await self.start(victim.role)

    async def _freeze(self, victim: Child) -> None:
        seconds, at = self._seconds_away(), now()
        victim.send(signal.SIGSTOP)
        victim.frozen = True
        self.faults.append(Fault("freeze", victim.role, victim.process.pid, at, at + round(seconds * 1e6)))
        self._beside(self._thaw(victim, seconds))
        if seconds > LEASE_SECONDS:
            self._beside(self._kill_another(victim))

    async def _thaw(self, victim: Child, seconds: float) -> None:
        await asyncio.sleep(seconds)
        victim.send(signal.SIGCONT)
        victim.frozen = False

    async def _kill_another(self, frozen: Child) -> None:
        """Spends a kill just after the lease of a frozen node has expired: who starts then sweeps at once.

        So the frozen node's jobs run elsewhere before it wakes, which is when a missing fence shows.
        """
        await asyncio.sleep(LEASE_SECONDS + 0.1)
        others = [child for child in self._nodes() if child is not frozen and child.ready and not child.condemned]
        if "kill" in self._plan and others:
            self._plan.remove("kill")
            await self._kill(self._chance.choice(others))

    def _beside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def probe(self) -> None:
        """A caller in the driver: one small job after the other, each waited for."""
        for number in range(10**9):
            key, started = f"probe{number}", time.perf_counter()
            job = await self._pl.submit(noop, Work(key), key=key, queue_class="interactive")
            self.probed[key] = job.number
            with suppress(PacelineError):
                await job.result(timeout=PATIENCE)
                self.probe_ms.append((time.perf_counter() - started) * 1e3)
            await asyncio.sleep(PROBE_EVERY)

    async def drain(self) -> tuple[float, list[str]]:
        """No more faults: seconds until nothing is open, and the roles that did not stop as asked."""
        await self.revive()
        unclean = [] if await self._slots.pop("submitter").stop() else ["submitter"]
        started = time.perf_counter()
        while time.perf_counter() - started < self._options.patience:
            await self.revive()
            if not await self._pl.client.store.read(
                lambda tx: sum(tx.outcomes.pending()) + sum(tx.nodes.load().values())
            ):
                break
            await asyncio.sleep(0.1)
        took = time.perf_counter() - started
        stopped = await asyncio.gather(*(child.stop() for child in self._slots.values()))
        return took, unclean + [role for role, clean in zip(self._slots, stopped, strict=True) if not clean]

    async def end(self) -> None:
        """Nothing that was started here is left."""
        await asyncio.gather(*(child.kill() for child in self._slots.values() if child.alive))


def newest_job(tx: Tx) -> int:
    """How many jobs there are, about."""
    return max(tx.listing.find("newest", 1), default=0)


async def torment(
    where: Path, options: argparse.Namespace, ground: Ground, links: Links
) -> tuple[Rig, float, list[str]]:
    """Faults, then the drain; bounded in time whatever happens."""
    most = 3 * options.seconds + options.patience + 3 * PATIENCE + options.jobs / SLOWEST_JOBS_PER_S
    await links.open(ground.url, ROLES)
    async with Paceline(ground.url, node=False, **settings()) as pl:
        rig = Rig(where, options, ground, links, pl)
        try:
            async with asyncio.timeout(most):
                for role in ROLES:
                    await rig.start(role)
                await rig.all_ready()
                probing = asyncio.create_task(rig.probe())
                await rig.torment()
                probing.cancel()
                with suppress(asyncio.CancelledError):
                    await probing
                took, unclean = await rig.drain()
        finally:
            await rig.end()
            await links.close()
    return rig, took, unclean


@contextmanager
def made_ready(where: Path, options: argparse.Namespace) -> Iterator[tuple[Ground, Links]]:
    """The place of the jobs and the ways to it."""
    with ExitStack() as until:
        links: Links = Proxies(where / "links") if options.cuts else Links()
        settings: dict[str, str] = {}
        if options.cuts and options.links == "namespaces":
            links = Namespaces()
            until.enter_context(links.made())
            settings = links.settings(where)
        carry = links.carry if isinstance(links, Namespaces) else None
        yield until.enter_context(ground(options.store, where, settings, carry)), links


def struck(faults: Sequence[Fault]) -> dict[str, float]:
    """What was done, counted, and how long it lasted."""

    def count(kind: str, role: str = "") -> int:
        return sum(fault.kind == kind and role in ("", fault.role) for fault in faults)

    def beyond(kind: str) -> int:
        return sum(fault.kind == kind and fault.until - fault.at > LEASE_SECONDS * 1e6 for fault in faults)

    def longest(kind: str) -> float:
        return max((round((fault.until - fault.at) / 1e6, 1) for fault in faults if fault.kind == kind), default=0.0)

    return {
        "kills": count("kill"), "kills_of_submitter": count("kill", "submitter"),
        "freezes": count("freeze"), "freezes_beyond_lease": beyond("freeze"),
        "restarts": count("restart"), "crashes": count("restart", "immediate"),
        "longest_restart_s": longest("restart"), "longest_cut_s": longest("cut"),
        "terminations": count("termination"), "cuts": count("cut"), "cuts_beyond_lease": beyond("cut"),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> dict[str, object]:
    """One run with its verdict."""
    options = options_of(__doc__ or "", arguments)
    noise = Noise()
    with folder() as where:
        (where / "witness").mkdir()
        with made_ready(where, options) as (place, links):
            rig, drained, unclean = run("asyncio", torment(where, options, place, links))
            acknowledged = [*entries(where / "ledger"), Entry(-1, rig.probed)]
            found = verdict(Evidence(place, where / "witness"), acknowledged, rig.faults)
        if options.keep:
            where.rename(options.keep)
            where.mkdir()
        facts = machine(where)
    failed = [name for name in MUST_BE_ZERO if found[name]]
    return {
        "benchmark": "chaos",
        "ok": not failed,
        "failed": failed,
        "seed": options.seed,
        "control": options.control or [],
        "nodes": NODES,
        "lease_s": LEASE_SECONDS,
        "store": options.store.partition(":")[0],
        **struck(rig.faults),
        "cut_by": links.by,
        "terminated": rig.terminated,
        "turned_away": rig.turned_away,
        **found,
        "drain_s": round(drained, 1),
        "did_not_stop": unclean,
        "died_by_themselves": rig.died,
        "probe_ms": percentiles(rig.probe_ms, 1),
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    result = main()
    show(result)
    sys.exit(0 if cast(bool, result["ok"]) else 1)
