"""The submitter of the rig: PARENT URL LEDGER SEED PACE CONTROLS. Says its plan from where it was killed.

The ledger has a line per acknowledged step, synced after the acknowledgement. Whatever stands in it must not be lost,
and what is submitted again under the same key must be answered with the same job.
"""

import asyncio
import os
import random
import sys
from functools import partial
from itertools import count
from pathlib import Path

import msgspec

from _chaos_controls import CONTROLS
from _chaos_work import AGENTS, GAP_SECONDS, Step, Wanted, die_with, settings, step, until_told
from paceline import Paceline, call

AGAIN = 3
"""So many steps that were acknowledged before are said again after a restart."""
MOST_WAITING = 500
LOOK_EVERY = 20


class Entry(msgspec.Struct):
    """One line of the ledger; a number of 0 is an acknowledgement that named no job."""

    step: int
    jobs: dict[str, int]


class Ledger:
    """What was acknowledged, on disk before anything else happens."""

    def __init__(self, path: Path) -> None:
        self.jobs: dict[str, int] = {}
        self.steps: list[int] = []
        for entry in entries(path):
            self.steps.append(entry.step)
            self.jobs |= entry.jobs
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC)

    def write(self, number: int, jobs: dict[str, int]) -> None:
        """One more step is acknowledged."""
        os.write(self._file, msgspec.json.encode(Entry(number, jobs)) + b"\n")
        os.fsync(self._file)
        self.jobs |= jobs


def entries(path: Path) -> list[Entry]:
    """Every whole line of a ledger."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=Entry) for line in lines]


async def submit(pl: Paceline, said: Step, known: dict[str, int]) -> dict[str, int]:
    """One step; answers the jobs by key once they are durable."""
    if said.kind == "graph":
        calls = {
            one.work.key: call(AGENTS[one.agent], one.work, after=[*one.after], key=one.work.key) for one in said.jobs
        }
        return {key: job.number for key, job in (await pl.submit_graph(calls)).items()}
    if said.kind == "bulk":
        nonce = f"@{random.getrandbits(32):x}"  # nobody answers for a bulk that was never acknowledged
        works = [msgspec.structs.replace(one.work, key=one.work.key + nonce) for one in said.jobs]
        made = await pl.submit_many(AGENTS["noop"], works)
        return {work.key: job.number for work, job in zip(works, made, strict=True)}
    return {one.work.key: await submit_one(pl, one, known) for one in said.jobs}


async def submit_one(pl: Paceline, one: Wanted, known: dict[str, int]) -> int:
    """A single job behind the jobs it depends on."""
    after = [(known[key], wants) for key, wants in one.after if known.get(key)]
    return (await pl.submit(AGENTS[one.agent], one.work, after=after, key=one.work.key)).number


async def main(url: str, path: Path, seed: int, pace: float, early: bool) -> None:
    """Submits until told to stop; with `early` it acknowledges before the commit, which is the known-bad variant."""
    ledger = Ledger(path)
    async with Paceline(url, node=False, **settings()) as pl:
        print("ready", flush=True)
        told = asyncio.create_task(until_told())
        for number in [] if early else ledger.steps[-AGAIN:]:
            said = step(seed, number)
            if said.kind != "bulk":
                ledger.write(number, await submit(pl, said, ledger.jobs))
        for number in count(max(ledger.steps, default=-1) + 1):
            if told.done():
                return
            said = step(seed, number)
            if early:
                ledger.write(number, {one.work.key: 0 for one in said.jobs if said.kind != "bulk"})
                await asyncio.sleep(GAP_SECONDS)
            jobs = await submit(pl, said, ledger.jobs)
            ledger.write(number, jobs)
            await asyncio.sleep(random.uniform(0, 2 * pace))
            if number % LOOK_EVERY == 0:
                await until_room(pl)


async def until_room(pl: Paceline) -> None:
    """Waits while the queue is long, so that what is killed is always young work."""
    waiting = partial(pl.client.store.read, lambda tx: sum(tx.outcomes.pending()))
    while await waiting() > MOST_WAITING:  # noqa: ASYNC110 - other processes empty the queue
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    if "guards" in sys.argv[6]:  # what is wrong with the door as well as with the nodes
        CONTROLS["guards"]()
    asyncio.run(main(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), "ack" in sys.argv[6]))
