"""Submissions larger than one unit of work: written unseen in chunks, accepted in one step, then made visible."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from paceline.client.bound import Bound
from paceline.core.model import UNIT_ROWS, Wants
from paceline.core.problem import Problem
from paceline.core.submission import Wish
from paceline.store.protocol import Store, Tx
from paceline.units.submit import forget, publish, stage

IN_FLIGHT = 3


async def accept_in_chunks(store: Store, wishes: list[Wish], bound: Bound, poke: Callable[[], None]) -> list[int]:
    """All wishes or none of them; once accepted, a crash leaves the rest to whichever node comes by."""
    if any(wish.terms.key or wish.terms.session for wish in wishes):
        raise Problem(
            code="too_many_at_once", what="keys and sessions need a submission that fits into one transaction",
            found=f"{len(wishes):,} jobs", allowed=f"{UNIT_ROWS} jobs", todo="submit in smaller parts",
        )  # fmt: skip
    batch = await store.transact(lambda tx: tx.submissions.open_batch(tx.now))

    def accept(tx: Tx) -> bool:
        bound.check(tx, len(wishes))
        if not tx.submissions.publish_batch(batch, tx.now):
            raise Problem(code="submission_abandoned", what="the submission took too long and was swept away",
                          todo="submit it again")  # fmt: skip
        return publish(tx, batch)

    try:
        ids = await _stage(store, batch, wishes)
        more = await store.transact(accept)
    except Problem:
        await _withdraw(store, batch)
        raise
    poke()
    while more:
        more = await store.transact(lambda tx: publish(tx, batch))
        poke()
    return ids


async def _withdraw(store: Store, batch: int) -> None:
    """Nothing of a refused submission stays; of one that was accepted after all nothing goes."""
    more = await store.transact(lambda tx: tx.submissions.is_open(batch) and forget(tx, batch))
    while more:
        more = await store.transact(lambda tx: forget(tx, batch))


async def _stage(store: Store, batch: int, wishes: list[Wish]) -> list[int]:
    """Writes the chunks, a few at a time; places inside the submission become ids as these are known."""
    ids: list[int] = []
    linked = any(wish.inner for wish in wishes)
    window: list[asyncio.Future[list[int]]] = []
    starts = [*range(0, len(wishes), UNIT_ROWS), len(wishes)]
    try:
        for start, end in pairwise(starts):
            chunk = wishes[start:end]
            if linked:
                chunk = [_with_ids(wish, ids, start) for wish in chunk]
            window.append(store.enqueue(partial(stage, batch=batch, wishes=chunk)))
            if linked or len(window) >= IN_FLIGHT:
                ids += await window.pop(0)
        while window:
            ids += await window.pop(0)
    finally:
        for rest in window:  # one has failed, and nobody is going to ask the others
            rest.cancel()
    return ids


def _with_ids(wish: Wish, ids: list[int], start: int) -> Wish:
    """Prerequisites in earlier chunks are jobs by now; those in this chunk are places counted from its start."""
    if not wish.inner:
        return wish
    before: list[tuple[int, Wants]] = [(ids[place], wants) for place, wants in wish.inner if place < start]
    inside = tuple((place - start, wants) for place, wants in wish.inner if place >= start)
    return wish._replace(after=(*wish.after, *before), inner=inside)
