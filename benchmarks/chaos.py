"""Real processes, killed and frozen at random while jobs with dependencies flow; then every promise is checked.

Three nodes on one SQLite file run agents that do nothing, sleep, fail and are retried, have a limit or need a lock. A
submitter sends single jobs, graphs and bulks with idempotency keys and goes on after its own death. The driver ends
nodes and submitter with SIGKILL, stops nodes with SIGSTOP for 0.1 to 2 times the lease, starts them again, lets
everything drain without faults, and reads the verdict from the database and from what the agents' code witnessed.

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
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from _chaos_controls import CONTROLS
from _chaos_submitter import Entry, entries
from _chaos_verdict import MUST_BE_ZERO, Evidence, Fault, verdict
from _chaos_work import LEASE_SECONDS, Work, noop, now, settings
from _measure import Noise, folder, machine, percentiles, run, show, url
from paceline import Paceline, PacelineError

HERE = Path(__file__).resolve().parent
NODES = 3
SUBMITTER_SHARE = 0.25
UNREADY_SHARE = 0.1
SHORT_SHARE = 0.3
PROBE_EVERY = 0.1
PATIENCE = 30.0


class Child:
    """One process of the rig; ended by its own number and by nothing broader."""

    def __init__(self, role: str, process: Process, errors: Path) -> None:
        self.role = role
        self.process = process
        self.errors = errors
        self.ready = False
        self.frozen = False
        self.condemned = False
        self._reading = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        self.ready = await self.process.stdout.readline() == b"ready\n"

    @property
    def alive(self) -> bool:
        """Nobody has ended it and it has not ended."""
        return self.process.returncode is None

    def send(self, number: signal.Signals) -> None:
        """A signal, unless it is gone."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill(self) -> None:
        """Ends it at once."""
        self.send(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> bool:
        """Asks it to finish; False when it had to be killed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), PATIENCE)
            return self.process.returncode == 0
        await self.kill()
        return False


class Rig:
    """The processes, what is done to them, and a client in the driver that nobody kills."""

    def __init__(self, where: Path, options: argparse.Namespace, pl: Paceline) -> None:
        self._where = where
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

    async def start(self, role: str) -> None:
        """Starts the process of a role, in place of the one before."""
        control = ",".join(self._options.control or [])
        database, witnesses = url(self._where / "chaos.db"), str(self._where / "witness")
        ledger, pace = str(self._where / "ledger"), str(self._options.pace)
        script, more = {
            True: ("_chaos_submitter.py", [database, ledger, str(self._options.seed), pace, control]),
            False: ("_chaos_node.py", [database, witnesses, control]),
        }[role == "submitter"]
        errors = self._where / f"{role}-{len(self.faults)}.err"
        with errors.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(HERE / script), str(os.getpid()), *more, stdin=PIPE, stdout=PIPE, stderr=file
            )
        self._slots[role] = Child(role, process, errors)

    async def all_ready(self) -> None:
        """Waits until every process has begun its work."""
        while not all(child.ready for child in self._slots.values()):
            await self.revive()
            await asyncio.sleep(0.02)

    async def revive(self) -> None:
        """A process that ended by itself is a finding; another takes its place."""
        for role, child in list(self._slots.items()):
            if not child.alive and not child.condemned:
                self.died.append(f"{role}: {child.process.returncode}: {child.errors.read_text()[-800:]}")
                await self.start(role)

    async def torment(self) -> None:
        """All kills and freezes, in random order at random moments."""
        self._plan = ["kill"] * self._options.kills + ["freeze"] * self._options.freezes
        self._chance.shuffle(self._plan)
        gap = self._options.seconds / max(1, len(self._plan))
        while self._plan:
            await asyncio.sleep(self._chance.uniform(0, 2 * gap))
            fault = self._plan.pop() if self._plan else ""
            if fault == "kill":
                await self._kill(await self._to_kill())
            elif fault == "freeze":
                await self._freeze(await self._to_freeze())
        await asyncio.gather(*self._running)

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
        within, beyond = self._chance.uniform(0.1, 1.0), self._chance.uniform(1.2, 2.0)
        seconds = LEASE_SECONDS * (within if self._chance.random() < SHORT_SHARE else beyond)
        at = now()
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


async def torment(where: Path, options: argparse.Namespace) -> tuple[Rig, float, list[str]]:
    """Faults, then the drain; bounded in time whatever happens."""
    most = 3 * options.seconds + options.patience + 3 * PATIENCE
    async with Paceline(url(where / "chaos.db"), node=False, **settings()) as pl:
        rig = Rig(where, options, pl)
        try:
            async with asyncio.timeout(most):
                for role in ["submitter", *(f"node{number}" for number in range(NODES))]:
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
    return rig, took, unclean


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--kills", type=int, default=40)
    made.add_argument("--freezes", type=int, default=8, help="each 0.1 to 2 times the lease of 2 s")
    made.add_argument(
        "--seconds", type=float, help="about how long faults go on (default: 0.4 per kill, 1.2 per freeze)"
    )
    made.add_argument("--seed", type=int, default=random.randrange(10**6))
    made.add_argument("--pace", type=float, default=0.008, help="mean pause of the submitter")
    made.add_argument("--patience", type=float, default=60.0, help="longest drain")
    made.add_argument("--control", nargs="*", choices=list(CONTROLS), help="known-bad variants; without a name all")
    made.add_argument("--keep", type=Path, help="a folder that gets the database and the witnesses")
    options = made.parse_args(arguments)
    if options.seconds is None:
        options.seconds = 0.4 * options.kills + 1.2 * options.freezes
    options.control = list(CONTROLS) if options.control == [] else options.control
    return options


def main(arguments: Sequence[str] | None = None) -> dict[str, object]:
    """One run with its verdict."""
    options = options_of(arguments)
    noise = Noise()
    with folder() as where:
        (where / "witness").mkdir()
        rig, drained, unclean = run("asyncio", torment(where, options))
        acknowledged = [*entries(where / "ledger"), Entry(-1, rig.probed)]
        found = verdict(Evidence(where / "chaos.db", where / "witness"), acknowledged, rig.faults)
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
        "kills": sum(fault.kind == "kill" for fault in rig.faults),
        "kills_of_submitter": sum(fault.kind == "kill" and fault.role == "submitter" for fault in rig.faults),
        "freezes": sum(fault.kind == "freeze" for fault in rig.faults),
        "freezes_beyond_lease": sum(fault.until - fault.at > LEASE_SECONDS * 1e6 for fault in rig.faults),
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
