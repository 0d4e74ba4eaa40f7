"""From submission to result of one job on an idle node, and beside it three synced commits of the same rows.

`in_turn` submits the next job when the result of the one before is there, `rested` lets the node rest in between.
"""

import asyncio
import time
from pathlib import Path

from _measure import Files, Noise, figure, folder, machine, parser, percentiles, run, show, side_by_side, url
from _rows import Lifecycle, Raw, lifecycle
from paceline import Paceline, agent

SLOTS = 24
REST = 0.005
WARM_UP = 20


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


async def product(path: Path, jobs: int, rest: float) -> list[float]:
    """Milliseconds from the call of submit to the result, one job at a time."""
    took = []
    async with Paceline(url(path), agents=[noop], slots=SLOTS, synchronous="full") as pl:
        for number in range(WARM_UP + jobs):
            if rest:
                await asyncio.sleep(rest)
            started = time.perf_counter()
            job = await pl.submit(noop, number)
            await job.result()
            took.append((time.perf_counter() - started) * 1e3)
    return took[WARM_UP:]


def raw(path: Path, rows: Lifecycle) -> list[float]:
    """Milliseconds of three commits of one job's rows."""
    database = Raw(path, rows.preamble)
    took = []
    for place, submitted in enumerate(rows.submits):
        took.append(database.seconds([submitted, *rows.runs[2 * place : 2 * place + 2]]) * 1e3)
    database.close()
    return took[WARM_UP:]


def figures(runs: list[list[float]]) -> dict[str, object]:
    """Each percentile as the middle and range of several runs."""
    each = [percentiles(run) for run in runs]
    return {name: figure([one[name] for one in each], 3) for name in ("p50", "p90", "p99", "max")}


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures everything, in turns."""
    options = parser(__doc__, jobs=500).parse_args(arguments)
    jobs, repeat = (min(options.jobs, 100), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    rows = lifecycle(WARM_UP + jobs, 1)
    with folder() as where:
        files = Files(where)
        runs = {
            "in_turn": lambda: run(options.loop, product(files.fresh(), jobs, 0)),
            "rested": lambda: run(options.loop, product(files.fresh(), jobs, REST)),
            "raw": lambda: raw(files.fresh(), rows),
        }
        found = side_by_side(repeat, runs)
        facts = machine(where)
    return {
        "benchmark": "latency",
        "unit": "ms",
        "jobs": jobs,
        "repeat": repeat,
        "slots": SLOTS,
        "synchronous": "full",
        "loop": options.loop,
        **{name: figures(runs) for name, runs in found.items()},
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
