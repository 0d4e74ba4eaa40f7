"""Does a deep queue slow a node down? The rate with a million jobs queued over a thousand, with 10,000 tenants over 1.

A round opens the gate of a node that has stood still beside a filled queue, lets about a thousand jobs run, closes the
gate and waits until nothing runs; only rounds are measured. The shallow queue is filled again between rounds, the deep
ones stay deep. `raw` claims and completes the heads of the same lanes through the store's own verbs, 200 at a time.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

from _measure import Noise, figure, folder, machine, parser, run, show, side_by_side, url
from _rows import claim_now
from paceline import Paceline, agent
from paceline.clock import SystemClock, measure_offset
from paceline.store.doors import sqlite_store
from paceline.store.tx import Tx

SLOTS = 256
ROUND = 1_000
ROUNDS = 20
RAW_BATCH = 200
AT_ONCE = 64
SHALLOW = 1_000
LOOK_EVERY = 0.0005
MOST_IN_ROUND = 2_000
LEAST = 50_000


class Gate:
    """Counts runs; closes the node's door when a round is full."""

    def __init__(self) -> None:
        self.ran = 0
        self.pl: Paceline | None = None

    def passed(self) -> None:
        """One more job has run."""
        self.ran += 1
        if self.ran >= ROUND:
            self.accepting(False)

    def accepting(self, open_: bool) -> None:
        """Lets the node claim, or not."""
        if self.pl is not None and self.pl.node is not None:
            self.pl.node.pump.accepting = open_

    @contextmanager
    def at(self, pl: Paceline) -> Iterator[None]:
        """This gate stands before that node."""
        self.pl = pl
        self.accepting(False)
        yield
        self.accepting(True)
        self.pl = None


gate = Gate()


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    gate.passed()
    return n


class Queue(NamedTuple):
    """A store with that many jobs waiting, of that many tenants."""

    path: Path
    queued: int
    tenants: int


def program(queue: Queue, *, node: bool) -> Paceline:
    """The product on a queue; while nobody runs, everything in it may wait."""
    most = 2 * queue.queued + 10 * ROUND
    return Paceline(url(queue.path), node=node, agents=[noop], slots=SLOTS, synchronous="full", max_pending=most)


async def fill(queue: Queue) -> float:
    """Queues everything; answers submissions a second."""
    each, started = queue.queued // queue.tenants, time.perf_counter()
    async with program(queue, node=False) as pl:
        parts = [
            (f"t{tenant}", range(start, min(start + 500, each)))
            for tenant in range(queue.tenants)
            for start in range(0, each, 500)
        ]
        for place in range(0, len(parts), AT_ONCE):
            some = parts[place : place + AT_ONCE]
            await asyncio.gather(*(pl.submit_many(noop, numbers, tenant=tenant) for tenant, numbers in some))
    return queue.queued / (time.perf_counter() - started)


async def rounds(queue: Queue, count: int) -> tuple[float, float]:
    """(jobs a second over all rounds, milliseconds of the first round, in which the node gets to know the queue)."""
    async with program(queue, node=True) as pl:
        with gate.at(pl):
            if queue.queued <= SHALLOW:
                await refill(pl, queue.queued)
            first, _ = await one_round(pl)
            spent, ran = 0.0, 0
            for _ in range(count):
                if queue.queued <= SHALLOW:
                    await refill(pl, queue.queued)
                seconds, jobs = await one_round(pl)
                spent, ran = spent + seconds, ran + jobs
        await pl.stop(drain=0)
    return ran / spent, first * 1e3


async def one_round(pl: Paceline) -> tuple[float, int]:
    """(seconds, jobs run) from the opening of the gate until nothing runs any more."""
    node = pl.node
    assert node is not None
    gate.ran = 0
    started = time.perf_counter()
    gate.accepting(True)
    node.poke()
    while gate.ran < ROUND or node.running:  # noqa: ASYNC110 - the last commit of a round has no event to wait for
        await asyncio.sleep(LOOK_EVERY)
    return time.perf_counter() - started, gate.ran


async def refill(pl: Paceline, jobs: int) -> None:
    """The shallow queue is full again."""
    ready = sum(await pl.client.store.read(lambda tx: tx.outcomes.pending()))
    if jobs > ready:
        await pl.submit_many(noop, range(jobs - ready))


def raw(queue: Queue, count: int) -> float:
    """Jobs a second of claim and completion, one lane after the other, without dispatcher and node."""
    store = sqlite_store(queue.path, SystemClock(measure_offset()))
    try:
        lanes = store.execute(lambda tx: tx.lanes.with_ready_jobs())
        each = RAW_BATCH // min(RAW_BATCH, len(lanes))
        started, done, place = time.perf_counter(), 0, 0
        while done < count * ROUND:
            some = [lanes[(place + step) % len(lanes)] for step in range(RAW_BATCH // each)]
            place += len(some)
            ran = store.execute(partial(run_heads, lanes=some, each=each))
            if not ran:
                break
            done += ran
        return done / (time.perf_counter() - started)
    finally:
        store.close()


def run_heads(tx: Tx, lanes: list[int], each: int) -> int:
    """Claims and completes the first jobs of some lanes in one transaction."""
    ids = [cast(int, row[2]) for row in tx.lanes.heads([(lane, -1, -1) for lane in lanes], each)]
    claimed = claim_now(tx, ids, 1)
    tx.jobs.complete([(job, epoch, "null") for job, epoch in claimed], tx.now)
    return len(claimed)


def queues(where: Path, jobs: int, tenants: int) -> dict[str, Queue]:
    """What is compared."""
    return {
        "shallow": Queue(where / "shallow.db", SHALLOW, 1),
        "deep": Queue(where / "deep.db", jobs, 1),
        "one_tenant": Queue(where / "one_tenant.db", jobs // 10, 1),
        "many_tenants": Queue(where / "many_tenants.db", jobs // 10, tenants),
    }


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Fills the queues once, then measures them in turns."""
    options = parser(__doc__, jobs=1_000_000).parse_args(arguments)
    jobs = max(LEAST, min(options.jobs, 100_000) if options.quick else options.jobs)
    tenants, repeat = min(10_000, jobs // 100), 1 if options.quick else options.repeat
    count = max(1, min(ROUNDS, jobs // 10 // (MOST_IN_ROUND * repeat) - 1))
    noise = Noise()
    with folder() as where:
        made = queues(where, jobs, tenants)
        filled = {name: run(options.loop, fill(queue)) for name, queue in made.items() if name != "shallow"}
        run(options.loop, fill(made["shallow"]._replace(queued=0)))
        runs = {name: lambda some=queue: run(options.loop, rounds(some, count)) for name, queue in made.items()}
        found = side_by_side(repeat, runs)
        bare = {name: raw(queue, count) for name, queue in made.items() if name != "shallow"}
        facts = machine(where)
    rates = {name: [rate for rate, _ in some] for name, some in found.items()}
    each_of = {
        name: {
            "queued": queue.queued,
            "tenants": queue.tenants,
            "jobs_per_s": figure(rates[name]),
            "first_round_ms": figure([first for _, first in found[name]], 1),
            **({"submits_per_s": round(filled[name]), "raw_jobs_per_s": round(bare[name])} if name in filled else {}),
        }
        for name, queue in made.items()
    }
    return {
        "benchmark": "dispatch",
        "repeat": repeat,
        "rounds": count,
        "jobs_per_round": ROUND,
        "slots": SLOTS,
        "synchronous": "full",
        "loop": options.loop,
        "deep_over_shallow": ratio(rates["deep"], rates["shallow"]),
        "many_tenants_over_one": ratio(rates["many_tenants"], rates["one_tenant"]),
        "raw_many_tenants_over_one": round(bare["many_tenants"] / bare["one_tenant"], 3),
        **each_of,
        "machine": facts,
        "noise": noise.figures(),
    }


def ratio(upper: list[float], lower: list[float]) -> dict[str, float | int]:
    """Each run over the run beside it."""
    return figure([one / other for one, other in zip(upper, lower, strict=True)], 3)


if __name__ == "__main__":
    show(main())
