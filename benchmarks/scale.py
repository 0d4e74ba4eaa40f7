"""Jobs a second of one, two and four nodes, each a process of its own, on one Postgres or one SQLite file.

An agent sleeps 5 ms and each node has the same few slots, so that one node alone is bound by its slots and not by
anything that nodes share. The jobs lie ready before the nodes begin; the clock runs by the log, from the first tenth of
the starts to the last of the nine tenths of the ends, while every node has enough to do.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from _chaos_work import die_with, until_told
from _measure import Files, Noise, figure, folder, machine, parser, run, show, side_by_side
from _postgres import add_store, figures, stores
from paceline import Paceline, agent
from paceline.events import Kind
from paceline.store.tx import Tx

NODES = (1, 2, 4)
SLOTS = 4
SLEEP_S = 0.005
FLOOR = 3.2
PAGE = 10_000


@agent(max_concurrency=None)
async def nap(n: int) -> int:
    await asyncio.sleep(SLEEP_S)
    return n


class Ran(NamedTuple):
    """Jobs a second in the middle of a run, and how many jobs each node began."""

    rate: float
    shares: list[int]


async def scaled(store: str, nodes: int, jobs: int) -> Ran:
    """So many nodes empty a queue that was filled before."""
    async with Paceline(store, node=False, max_pending=10 * jobs) as pl:
        made = await pl.submit_many(nap, range(jobs))
        processes = [await _begin(store) for _ in range(nodes)]
        try:
            for process in processes:
                assert process.stdout is not None
                await process.stdout.readline()
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"go\n")
            await pl.results(made)
        finally:
            for process in processes:
                assert process.stdin is not None
                process.stdin.close()
            await asyncio.gather(*(process.wait() for process in processes))
        return await pl.client.store.read(partial(_read, jobs=jobs))


async def _begin(store: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--node", str(os.getpid()), store, stdin=PIPE, stdout=PIPE
    )


def _read(tx: Tx, jobs: int) -> Ran:
    """The middle of the run, from the log."""
    ...
