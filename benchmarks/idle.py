"""What a node costs that has nothing to do: its share of one core, beside an event loop that only sleeps."""

import asyncio
import os
import resource
import time
from pathlib import Path

from _measure import Files, Noise, figure, folder, machine, parser, run, show, side_by_side, url
from _rows import commits_of
from paceline import Paceline, agent

SETTLE = 0.5


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


async def node(path: Path, seconds: float) -> dict[str, float]:
    """Processor time, commits and wake-ups of a node that has run a few jobs and has none left."""
    async with Paceline(url(path), agents=[noop], synchronous="full") as pl:
        await pl.results(await pl.submit_many(noop, range(100)))
        await asyncio.sleep(SETTLE)
        commits = commits_of(pl)
        found = await asleep(seconds)
        found["commits_per_s"] = (commits_of(pl) - commits) / seconds
        return found


async def asleep(seconds: float) -> dict[str, float]:
    """What this process takes while it sleeps."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    await asyncio.sleep(seconds)
    after, took = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - started
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"percent_of_a_core": 100 * cpu / took, "wake_ups_per_s": (after.ru_nvcsw - before.ru_nvcsw) / took}


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures an idle node, in turns with an idle event loop."""
    options = parser(__doc__, jobs=100)
    options.add_argument("--seconds", type=float, default=20.0, help="how long to look (default: %(default)s)")
    said = options.parse_args(arguments)
    seconds, repeat = (min(said.seconds, 1.0), 1) if said.quick else (said.seconds, said.repeat)
    noise = Noise()
    with folder() as where:
        files = Files(where)
        runs = {
            "node": lambda: run(said.loop, node(files.fresh(), seconds)),
            "raw": lambda: run(said.loop, asleep(min(seconds, 5.0))),
        }
        found = side_by_side(repeat, runs)
        facts = machine(where)
    return {
        "benchmark": "idle",
        "seconds": seconds,
        "repeat": repeat,
        "loop": said.loop,
        "resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        **{name: {what: figure([one[what] for one in ones], 4) for what in ones[0]} for name, ones in found.items()},
        "cores": os.cpu_count(),
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
