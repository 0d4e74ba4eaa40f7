"""How long the commits of a node take while somebody leaves a transaction open, and beside it when nobody does.

An open transaction that has read something keeps the database from clearing away what every job leaves behind. `idle`
has done nothing else, `limited` is the same with an agent whose limit every claim has to look after, `enqueued` has
submitted jobs of its own, one call after the other. `first` and `last` are the commits in which the first and the last
tenth of the jobs ran.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import psycopg

from _measure import Noise, figure, folder, machine, parser, percentiles, run, show, side_by_side
from _postgres import Databases, databases, figures
from paceline import Agent, Paceline, agent

SLOTS = 24
TENTHS = 10
CALLS = 100
"""How many jobs the application submits in its transaction, each in a call of its own."""

Hold = Callable[[Paceline, str, ExitStack], Any]
Worker = Agent[Any, Any]


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


@agent(max_concurrency=SLOTS)
async def limited_noop(n: int) -> int:
    return n


async def nobody(pl: Paceline, url: str, until: ExitStack) -> None:
    """No transaction but those of the node."""


async def idle(pl: Paceline, url: str, until: ExitStack) -> None:
    """A transaction that has looked once."""
    connection = until.enter_context(psycopg.connect(url))
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute("select count(*) from pg_class")
    until.callback(connection.rollback)


async def enqueued(pl: Paceline, url: str, until: ExitStack) -> None:
    """A transaction in which jobs were submitted."""
    connection = until.enter_context(psycopg.connect(url))
    for number in range(CALLS):
        await pl.submit(noop, number, connection=connection)
    until.callback(connection.rollback)


@contextmanager
def watched(pl: Paceline) -> Iterator[list[tuple[float, float]]]:
    """When each commit of the store that did something began, and how long it took."""
    took: list[tuple[float, float]] = []
    writer = pl.client.store._writer  # type: ignore[attr-defined]
    commit = writer._commit

    def timed(units: list[Any]) -> Any:
        began = time.perf_counter()
        try:
            return commit(units)
        finally:
            took.append((began, (time.perf_counter() - began) * 1e3))

    writer._commit = timed
    yield took
    writer._commit = commit


async def commits(url: str, jobs: int, hold: Hold, worker: Worker) -> dict[str, list[float]]:
    """Milliseconds of the commits in which the first and the last tenth of the jobs ran."""
    async with Paceline(url, agents=[noop, worker], slots=SLOTS, max_pending=jobs + 1_000) as pl:
        with ExitStack() as until:
            await hold(pl, url, until)
            found: list[list[float]] = []
            rates: list[float] = []
            for start, end in pairwise(range(0, jobs + 1, jobs // TENTHS)):
                tenth = await pl.submit_many(worker, range(start, end))
                with watched(pl) as took:
                    began = time.perf_counter()
                    await pl.results(tenth)
                    rates.append((end - start) / (time.perf_counter() - began))
                found.append([milliseconds for _, milliseconds in took])
    return {"first": found[0], "last": found[-1], "rates": rates}


def summed(runs: list[dict[str, list[float]]]) -> dict[str, object]:
    """Percentiles of the first and last commits over all runs, and how many times longer the last ones take."""
    first, last = (percentiles([one for each in runs for one in each[name]]) for name in ("first", "last"))
    over = [percentiles(each["last"])["p50"] / percentiles(each["first"])["p50"] for each in runs]
    rates = [{"first": each["rates"][0], "last": each["rates"][-1]} for each in runs]
    return {
        "first": first,
        "last": last,
        "last_over_first": figure(over, 2),
        "jobs_per_second": {name: figure([rate[name] for rate in rates]) for name in ("first", "last")},
    }


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures everything, in turns."""
    options = parser(__doc__, jobs=30_000, repeat=1).parse_args(arguments)
    jobs, repeat = (min(options.jobs, 500), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    with databases("postgres") as found:
        runs = {
            "nobody": measure(found, options.loop, jobs, nobody, noop),
            "idle": measure(found, options.loop, jobs, idle, noop),
            "limited": measure(found, options.loop, jobs, idle, limited_noop),
            "enqueued": measure(found, options.loop, jobs, enqueued, noop),
        }
        results = side_by_side(repeat, runs)
        server = figures(found.fresh())
        with folder() as where:
            facts = machine(where)
    return {
        "benchmark": "pinned",
        "unit": "ms",
        "jobs": jobs,
        "repeat": repeat,
        "slots": SLOTS,
        "loop": options.loop,
        **{name: summed(each) for name, each in results.items()},
        "server": server,
        "machine": facts,
        "noise": noise.figures(),
    }


def measure(found: Databases, loop: str, jobs: int, hold: Hold, worker: Worker) -> Callable[[], dict[str, list[float]]]:
    """One run over a database of its own."""
    return lambda: run(loop, commits(found.fresh(), jobs, hold, worker))


if __name__ == "__main__":
    show(main())
