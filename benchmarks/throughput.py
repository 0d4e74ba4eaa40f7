"""How many jobs a second: no-op jobs, inline, every commit synced, beside the raw lifecycle of the same rows.

`bulk` submits all jobs at once and collects all results; the clock runs from the first submission to the last result.
`one_by_one` has 16 callers, each waiting for the commit of its job before it submits the next.
`raw` is the product's own statements in batches of 200 through apsw or psycopg alone: insert, claim, complete, an event
each.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from _measure import Noise, figure, folder, machine, parser, run, show, side_by_side
from _postgres import add_store, kind, stores
from _postgres import figures as figures_of
from _rows import Lifecycle, commits_of, lifecycle, raw_of
from paceline import Paceline, agent

LIMITS = (256, 24, 1_000)
CALLERS = 16
RAW_BATCH = 200


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


class Took(NamedTuple):
    """Seconds until everything was submitted and until everything was done; commits of the writer."""

    submitted: float
    done: float
    commits: int


async def bulk(store: str, slots: int, jobs: int) -> Took:
    """All jobs in one submission."""
    async with Paceline(store, agents=[noop], slots=slots, synchronous="full", max_pending=10 * jobs) as pl:
        await (await pl.submit(noop, 0)).result()
        commits, started = commits_of(pl), time.perf_counter()
        made = await pl.submit_many(noop, range(jobs))
        submitted = time.perf_counter() - started
        if await pl.results(made) != list(range(jobs)):
            raise SystemExit("results are wrong")
        took = Took(submitted, time.perf_counter() - started, commits_of(pl) - commits)
        await check(pl, jobs)
        return took


async def one_by_one(store: str, slots: int, jobs: int) -> Took:
    """Each caller submits its next job when the one before is durable, while the node runs them."""
    async with Paceline(store, agents=[noop], slots=slots, synchronous="full", max_pending=10 * jobs) as pl:
        await (await pl.submit(noop, 0)).result()

        async def caller(first: int) -> list[object]:
            return [await pl.submit(noop, number) for number in range(first, jobs, CALLERS)]

        commits, started = commits_of(pl), time.perf_counter()
        made = await asyncio.gather(*(caller(first) for first in range(CALLERS)))
        submitted = time.perf_counter() - started
        await pl.results([job for some in made for job in some])  # type: ignore[misc]
        took = Took(submitted, time.perf_counter() - started, commits_of(pl) - commits)
        await check(pl, jobs)
        return took


async def check(pl: Paceline, jobs: int) -> None:
    """Every job went its whole way: at least three events each."""
    last = await pl.client.store.read(lambda tx: tx.events.last())
    if last < 3 * jobs:
        raise SystemExit(f"only {last} events for {jobs} jobs")


def raw(store: str, rows: Lifecycle) -> Took:
    """The same rows without the product."""
    database = raw_of(store, rows.preamble)
    submitted = database.seconds(rows.submits)
    done = submitted + database.seconds(rows.runs)
    database.close()
    return Took(submitted, done, len(rows.submits) + len(rows.runs))


def figures(took: list[Took], jobs: int) -> dict[str, object]:
    """Rates of several runs."""
    return {
        "jobs_per_s": figure([jobs / one.done for one in took]),
        "submits_per_s": figure([jobs / one.submitted for one in took]),
        "us_per_job": figure([one.done / jobs * 1e6 for one in took], 1),
        "commits": figure([one.commits for one in took]),
    }


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures everything, in turns."""
    made = parser(__doc__, jobs=10_000)
    add_store(made)
    options = made.parse_args(arguments)
    jobs, repeat = (min(options.jobs, 2_000), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    with folder() as where, stores(options.store, where) as fresh:
        rows, singles = lifecycle(jobs, RAW_BATCH, fresh()), lifecycle(jobs, CALLERS, fresh())

        def limited(slots: int) -> Took:
            return run(options.loop, bulk(fresh(), slots, jobs))

        runs: dict[str, Callable[[], Took]] = {f"slots_{slots}": partial(limited, slots) for slots in LIMITS}
        runs["one_by_one"] = lambda: run(options.loop, one_by_one(fresh(), LIMITS[0], jobs))
        runs["raw"] = lambda: raw(fresh(), rows)
        runs["raw_in_16s"] = lambda: raw(fresh(), singles)
        took = side_by_side(repeat, runs)
        found = {name: figures(some, jobs) for name, some in took.items()}
        facts = {**machine(where), **figures_of(fresh())}
    found["one_by_one"]["slots"] = LIMITS[0]
    bare = [one.done for one in took["raw"]]
    shares = {name: [raw_s / one.done for raw_s, one in zip(bare, some, strict=True)] for name, some in took.items()}
    return {
        "benchmark": "throughput",
        "store": kind(options.store),
        "jobs": jobs,
        "repeat": repeat,
        "synchronous": "full",
        "loop": options.loop,
        "callers": CALLERS,
        "bulk": {name: found[name] for name in found if name.startswith("slots")},
        "one_by_one": found["one_by_one"],
        "raw": {"batch": RAW_BATCH, **found["raw"]},
        "raw_in_16s": {"batch": CALLERS, **found["raw_in_16s"]},
        "product_over_raw": {name: figure(some, 3) for name, some in shares.items() if name.startswith("slots")},
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
