"""From submission to result of one job on an idle node, and beside it three synced commits of the same rows.

`in_turn` submits the next job when the result of the one before is there, `rested` lets the node rest in between.
"""

import asyncio
import time

from _measure import Noise, figure, folder, machine, parser, percentiles, run, show, side_by_side
from _postgres import add_store, kind, stores
from _postgres import figures as figures_of
from _rows import Lifecycle, lifecycle, raw_of
from paceline import Paceline, agent

SLOTS = 24
REST = 0.005
WARM_UP = 20


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


async def product(store: str, jobs: int, rest: float) -> list[float]:
    """Milliseconds from the call of submit to the result, one job at a time."""
    took = []
    async with Paceline(store, agents=[noop], slots=SLOTS, synchronous="full") as pl:
        for number in range(WARM_UP + jobs):
            if rest:
                await asyncio.sleep(rest)
            started = time.perf_counter()
            job = await pl.submit(noop, number)
            await job.result()
            took.append((time.perf_counter() - started) * 1e3)
    return took[WARM_UP:]


def raw(store: str, rows: Lifecycle) -> list[float]:
    """Milliseconds of three commits of one job's rows."""
    database = raw_of(store, rows.preamble)
    took = []
    for place, submitted in enumerate(rows.submits):
        took.append(database.seconds([submitted, *rows.runs[2 * place : 2 * place + 2]]) * 1e3)
    database.close()
    return took[WARM_UP:]


def figures(runs: list[list[float]]) -> dict[str, object]:
    """Each percentile as the middle and range of several runs."""
    each = [percentiles(run) for run in runs]
    return {name: figure([one[name] for one in each], 3) for name in ("p50", "p90", "p99", "max")}


def middle(took: list[float]) -> float:
    """Half of them took less."""
    return percentiles(took)["p50"]


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures everything, in turns."""
    made = parser(__doc__, jobs=500)
    add_store(made)
    options = made.parse_args(arguments)
    jobs, repeat = (min(options.jobs, 100), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    with folder() as where, stores(options.store, where) as fresh:
        rows = lifecycle(WARM_UP + jobs, 1, fresh())
        runs = {
            "in_turn": lambda: run(options.loop, product(fresh(), jobs, 0)),
            "rested": lambda: run(options.loop, product(fresh(), jobs, REST)),
            "raw": lambda: raw(fresh(), rows),
        }
        found = side_by_side(repeat, runs)
        facts = {**machine(where), **figures_of(fresh())}
    pairs = zip(found["raw"], found["in_turn"], strict=True)
    return {
        "benchmark": "latency",
        "store": kind(options.store),
        "unit": "ms",
        "jobs": jobs,
        "repeat": repeat,
        "slots": SLOTS,
        "synchronous": "full",
        "loop": options.loop,
        **{name: figures(runs) for name, runs in found.items()},
        "product_over_raw": figure([middle(bare) / middle(one) for bare, one in pairs], 3),
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
