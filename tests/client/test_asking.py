"""A program asks its own Paceline: why, which, what happened; and a command line beside it would see the same."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from paceline import NotFound, Paceline, State, UsageError, agent
from paceline.core.explanation import Why

Act = Callable[[Paceline], Awaitable[None]]


@agent(max_concurrency=None)
async def asked_double(n: int) -> int:
    return 2 * n


@agent(max_concurrency=None)
async def asked_fail() -> None:
    raise ValueError("boom")


def play(folder: Path, act: Act, *, node: bool = True) -> None:
    async def within() -> None:
        store = f"sqlite:///{folder / 'work.db'}"
        async with asyncio.timeout(20), Paceline(store, node=node, agents=[asked_double, asked_fail]) as pl:
            await act(pl)

    asyncio.run(within())


def test_a_program_asks_why_its_job_does_not_run(tmp_path: Path) -> None:
    async def act(pl: Paceline) -> None:
        job = await pl.submit(asked_double, 1)
        found = await pl.explain(job)
        assert found.code is Why.NO_NODE
        assert str(found).startswith(f"{job.id} queued: no node is running")
        assert await pl.explain(job.number) == await pl.explain(job.id)

    play(tmp_path, act, node=False)


def test_a_program_lists_jobs_and_dead_ones(tmp_path: Path) -> None:
    async def act(pl: Paceline) -> None:
        jobs = await pl.submit_many(asked_double, range(3), tenant="acme")
        bad = await pl.submit(asked_fail)
        await pl.results([*jobs, bad], return_exceptions=True)
        assert [line.name for line in await pl.jobs(agent="asked_double")] == [job.id for job in reversed(jobs)]
        assert [line.state for line in await pl.jobs(state="failed")] == [State.FAILED]
        assert len(await pl.jobs(state=State.COMPLETED, tenant="acme", limit=2)) == 2
        assert [line.id for line in await pl.dead()] == [bad.number]
        detail = await pl.client.show(bad)
        assert (detail.error.type, detail.error.message) == ("ValueError", "boom")
        with pytest.raises(UsageError):
            await pl.jobs(state="done")
        with pytest.raises(NotFound):
            await pl.explain("j99")

    play(tmp_path, act)


def test_a_program_reads_and_follows_events(tmp_path: Path) -> None:
    async def act(pl: Paceline) -> None:
        job = await pl.submit(asked_double, 1)
        await job.result()
        told = [event.kind.word async for event in pl.events(job=job)]
        assert told == ["job.queued", "job.started", "job.completed"]
        followed = pl.events(kinds=["job.failed"], follow=True)
        failed = await pl.submit(asked_fail)
        assert (await anext(followed)).job == failed.number
        assert await pl.client.logs(failed) == []

    play(tmp_path, act)
