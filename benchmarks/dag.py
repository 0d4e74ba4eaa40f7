"""A graph of no-op jobs from submission to the last result: 10 layers of 100 with three parents each, and a chain.

Raw is the same rows and edges through apsw or psycopg alone: inserted in units of 500, then a claim and a completion
per layer.
"""

import time
from collections.abc import Iterator
from functools import partial

from _measure import Noise, figure, folder, machine, parser, run, show, side_by_side
from _postgres import add_store, kind, stores
from _postgres import figures as figures_of
from _rows import NODE, Commit, Lifecycle, Tape, claim_now, no_bound, raw_of
from paceline import Paceline, agent, call
from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS, Wants
from paceline.core.submission import Terms, Wish
from paceline.store.tx import Tx
from paceline.units.settle import settle
from paceline.units.submit import submit

LAYERS, PARENTS = 10, 3
LIMITS = {"layers": (256, 24, 1_000), "chain": (256,)}
Graph = list[list[int]]
"""For each job the places of those before it."""


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


def layered(jobs: int) -> Graph:
    """Layers of equal size; each job waits for three neighbours in the layer before."""
    width = max(PARENTS, jobs // LAYERS)
    first: Graph = [[] for _ in range(width)]
    rest = [
        [(layer - 1) * width + (place + step) % width for step in range(PARENTS)]
        for layer in range(1, LAYERS)
        for place in range(width)
    ]
    return first + rest


def chain(jobs: int) -> Graph:
    """Each job waits for the one before it."""
    return [[place - 1] if place else [] for place in range(jobs)]


async def product(store: str, graph: Graph, slots: int) -> float:
    """Milliseconds from the submission to the last result."""
    calls = {f"n{place}": call(noop, place, after=[f"n{one}" for one in before]) for place, before in enumerate(graph)}
    async with Paceline(store, agents=[noop], slots=slots, synchronous="full") as pl:
        await (await pl.submit(noop, 0)).result()
        started = time.perf_counter()
        jobs = await pl.submit_graph(calls)
        await pl.results(list(jobs.values()))
        return (time.perf_counter() - started) * 1e3


def rows_of(graph: Graph, store: str) -> Lifecycle:
    """What a graph writes: jobs and edges, then each layer claimed, completed and its dependents readied."""
    tape = Tape(store)
    ids: list[int] = []
    submits = []
    for start in range(0, len(graph), UNIT_ROWS):
        chunk = list(wishes(graph, start, ids, tape.agent))
        made, said = tape.record(partial(submit, wishes=chunk, check_room=no_bound))
        ids += made
        submits.append(said)
    runs = []
    for layer in layers_of(graph):
        runs += run_layer(tape, [ids[place] for place in layer])
    tape.close()
    return Lifecycle(tape.preamble, submits, runs)


def wishes(graph: Graph, start: int, ids: list[int], agent_number: int) -> Iterator[Wish]:
    """One unit's worth of the graph: those before it are jobs by now."""
    for place in range(start, min(start + UNIT_ROWS, len(graph))):
        before = graph[place]
        outside = tuple((ids[one], Wants.COMPLETED) for one in before if one < start)
        inside = tuple((one - start, Wants.COMPLETED) for one in before if one >= start)
        yield Wish(Terms(agent_number), str(place), outside, inside)


def layers_of(graph: Graph) -> list[list[int]]:
    """Places by their depth."""
    depths: list[int] = []
    for before in graph:
        depths.append(1 + max((depths[one] for one in before), default=-1))
    return [[place for place, depth in enumerate(depths) if depth == layer] for layer in range(max(depths) + 1)]


def run_layer(tape: Tape, jobs: list[int]) -> list[Commit]:
    """Two commits: a layer is claimed, a layer completes."""
    claimed, claim = tape.record(lambda tx: claim_now(tx, jobs, NODE))

    def complete(tx: Tx) -> None:
        done = tx.jobs.complete([(job, epoch, "null") for job, epoch in claimed], tx.now)
        settle(tx, [(job, State.COMPLETED) for job in done])

    return [claim, tape.record(complete)[1]]


def raw(store: str, rows: Lifecycle) -> float:
    """Milliseconds of the same rows without the product."""
    database = raw_of(store, rows.preamble)
    took = database.seconds([*rows.submits, *rows.runs]) * 1e3
    database.close()
    return took


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures both shapes, in turns."""
    made = parser(__doc__, jobs=1_000)
    add_store(made)
    options = made.parse_args(arguments)
    jobs, repeat = (min(options.jobs, 300), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    shapes: dict[str, object] = {}
    with folder() as where, stores(options.store, where) as fresh:

        def limited(graph: Graph, slots: int) -> float:
            return run(options.loop, product(fresh(), graph, slots))

        def bare(rows: Lifecycle) -> float:
            return raw(fresh(), rows)

        for shape, graph in (("layers", layered(jobs)), ("chain", chain(jobs))):
            runs = {f"slots_{slots}": partial(limited, graph, slots) for slots in LIMITS[shape]}
            runs["raw"] = partial(bare, rows_of(graph, fresh()))
            found = side_by_side(repeat, runs)
            over_raw = {
                name: figure([bare / one for bare, one in zip(found["raw"], took, strict=True)], 3)
                for name, took in found.items()
                if name != "raw"
            }
            took = {name: figure(some, 1) for name, some in found.items()}
            shapes[shape] = {"nodes": len(graph), **took, "product_over_raw": over_raw}
        facts = {**machine(where), **figures_of(fresh())}
    return {
        "benchmark": "dag",
        "store": kind(options.store),
        "unit": "ms",
        "repeat": repeat,
        "synchronous": "full",
        "loop": options.loop,
        **shapes,
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
