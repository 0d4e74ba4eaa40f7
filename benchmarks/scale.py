"""Jobs a second of one, two and four nodes, each a process of its own, on one Postgres or one SQLite file.

The agent sleeps for 5 ms and every node has the same few slots, so that a node alone is bound by them and not by what
nodes share. The queue is full before the nodes begin. A rate is that of the middle four fifths of the ends, by the log,
when every node has long begun and none is out of work.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from functools import partial
from typing import NamedTuple

from _chaos_work import die_with, until_told
from _measure import Noise, figure, folder, machine, parser, run, show, side_by_side
from _postgres import OWN, add_store, figures, kind, stores
from paceline import Paceline, agent
from paceline.events import Kind
from paceline.store.tx import Tx

NODES = (1, 2, 4)
SLOTS = 1
SLEEP_S = 0.005
FLOOR, AIM = 3.2, 3.9
PAGE = 10_000


@agent(max_concurrency=None)
async def nap(n: int) -> int:
    """Answers in whose process it ran."""
    await asyncio.sleep(SLEEP_S)
    return os.getpid()


class Ran(NamedTuple):
    """Jobs a second in the middle of a run, and the smallest share of a node beside the largest."""

    rate: float
    evenness: float


async def scaled(store: str, nodes: int, jobs: int, slots: int) -> Ran:
    """So many nodes empty a queue that was filled before."""
    async with Paceline(store, node=False, max_pending=10 * jobs) as pl:
        made = await pl.submit_many(nap, range(jobs))
        processes = [await _begin(store, slots) for _ in range(nodes)]
        try:
            for process in processes:
                assert process.stdout is not None
                await process.stdout.readline()
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"go\n")
            ran = Counter(await pl.results(made))
        finally:
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
            await asyncio.gather(*(process.wait() for process in processes))
        ends = await pl.client.store.read(_ends)
    if len(ends) != jobs:
        raise SystemExit(f"{len(ends)} ends of {jobs} jobs")
    first, last = jobs // 10, jobs - jobs // 10 - 1
    least = min(ran.values()) if len(ran) == nodes else 0
    return Ran((last - first) / max(1, ends[last] - ends[first]) * 1e6, least / max(ran.values()))


def _ends(tx: Tx) -> list[int]:
    """When jobs completed, in order."""
    found: list[int] = []
    after = 0
    while events := tx.events.after(after, PAGE):
        found += [event.at for event in events if event.kind is Kind.JOB_COMPLETED]
        after = events[-1].id
    return sorted(found)


async def _begin(store: str, slots: int) -> Process:
    command = [sys.executable, __file__, "node", str(os.getpid()), store, str(slots)]
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)


async def serve(store: str, slots: int) -> None:
    """One node, until the driver lets go."""
    async with Paceline(store, agents=[nap], slots=slots):
        await until_told()


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures all numbers of nodes, in turns."""
    made = parser(__doc__, jobs=4_000)
    add_store(made)
    made.add_argument("--slots", type=int, default=SLOTS, help="jobs that a node runs at once (default: %(default)s)")
    made.set_defaults(store=OWN)
    options = made.parse_args(arguments)
    jobs, repeat = (min(options.jobs, 400), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    with folder() as where, stores(options.store, where) as fresh:

        def measured(nodes: int) -> Ran:
            return run(options.loop, scaled(fresh(), nodes, jobs, options.slots))

        found = side_by_side(repeat, {f"nodes_{nodes}": partial(measured, nodes) for nodes in NODES})
        facts = {**machine(where), **figures(fresh())}
    ratios = [many.rate / one.rate for one, many in zip(found["nodes_1"], found["nodes_4"], strict=True)]
    return {
        "benchmark": "scale",
        "store": kind(options.store),
        "jobs": jobs,
        "repeat": repeat,
        "slots": options.slots,
        "sleep_ms": SLEEP_S * 1e3,
        "jobs_per_s": {name: figure([ran.rate for ran in some], 1) for name, some in found.items()},
        "least_share_over_most": {name: figure([ran.evenness for ran in some], 2) for name, some in found.items()},
        "four_over_one": figure(ratios, 2),
        "floor": FLOOR,
        "aim": AIM,
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["node"]:
        die_with(int(sys.argv[2]))
        print("ready", flush=True)
        sys.stdin.readline()
        asyncio.run(serve(sys.argv[3], int(sys.argv[4])))
    else:
        show(main())
