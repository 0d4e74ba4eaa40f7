"""A server that goes and comes again, or is not there, and a node that was frozen: nothing is lost or counts twice."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import paceline
from paceline import Context, Paceline, State, agent
from paceline.errors import StoreError
from paceline.events import Kind
from paceline.store.protocol import Tx
from postgres_server import PrivateServer, Stop, fresh_database

PATIENCE_S = 30
JOBS = 300
SURVIVES = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(paceline.__file__).parents[1])}

NODE = """
import asyncio, sys
from paceline import Paceline, agent

@agent(max_concurrency=None)
async def work(ctx, seconds: float) -> int:
    print("began", ctx.job, ctx.epoch, flush=True)
    await asyncio.sleep(seconds)
    return ctx.epoch

async def main():
    async with Paceline(sys.argv[1], heartbeat="500ms", dead_after="2s", drain="1s") as pl:
        print("ready", pl.node.id, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


@agent(max_concurrency=None)
async def brief(ctx: Context, n: int) -> int:
    """Works for a moment, longer than a server takes to stop when it is the last."""
    await asyncio.sleep(0.01 * (n % 20))
    return n


@contextmanager
def node(url: str, script: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, str(script), url], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert said(process)[0] == "ready"
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def ends(tx: Tx) -> Counter[int]:
    """How often each job has completed, by the log."""
    events = tx.events.after(0, 100 * JOBS)
    return Counter(event.job for event in events if event.kind is Kind.JOB_COMPLETED and event.job is not None)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_restarts_while_jobs_run_costs_nothing_and_the_node_goes_on_by_itself(how: Stop) -> None:
    async def act(server: PrivateServer, url: str) -> None:
        async with asyncio.timeout(PATIENCE_S), Paceline(url, agents=[brief], slots=20) as pl:
            jobs = await pl.submit_many(brief, range(JOBS))
            node = pl.node
            assert node is not None
            life = node.id
            assert await jobs[0].result() == 0
            await asyncio.to_thread(server.restart, how)
            assert await pl.results(jobs) == list(range(JOBS))
            assert await (await pl.submit(brief, 5)).result() == 5
            counted = await pl.client.store.read(ends)
            assert set(counted.values()) == {1}
            assert len(counted) == JOBS + 1
            assert (node.id, node.trouble) == (life, None)

    with PrivateServer(SURVIVES) as server, server.fresh_database() as url:
        asyncio.run(act(server, url))


def test_a_server_that_is_away_at_the_start_is_named_at_once_and_can_be_used_when_it_is_there() -> None:
    async def start(url: str) -> int:
        async with asyncio.timeout(PATIENCE_S), Paceline(url, agents=[brief]) as pl:
            return await (await pl.submit(brief, 1)).result()  # type: ignore[no-any-return]

    with PrivateServer() as server, server.fresh_database() as url:
        server.stop()
        before = time.monotonic()
        with pytest.raises(StoreError) as caught:
            asyncio.run(start(url))
        assert time.monotonic() - before < 5
        assert caught.value.code == "store_unreachable"
        server.start()
        assert asyncio.run(start(url)) == 1


def test_a_node_that_was_frozen_beyond_its_lease_is_fenced_and_begins_another_life(tmp_path: Path) -> None:
    async def act(url: str) -> None:
        async with asyncio.timeout(PATIENCE_S), Paceline(url, node=False) as pl:
            with node(url, script) as frozen:
                job = await pl.submit("work", 1.0)
                assert said(frozen) == ["began", job.id, "1"]
                frozen.send_signal(signal.SIGSTOP)
                await asyncio.sleep(2.1)
                with node(url, script) as other:
                    assert said(other) == ["began", job.id, "2"]
                    frozen.send_signal(signal.SIGCONT)
                    assert await job.result() == 2
                events = await pl.client.store.read(lambda tx: tx.events.of_job(job.number))
                again = await pl.submit("work", 0.0)
                assert said(frozen) == ["began", again.id, "1"]
                assert (await again.result(), await again.state()) == (1, State.COMPLETED)
            started = [event.epoch for event in events if event.kind is Kind.JOB_STARTED]
            completed = [event.epoch for event in events if event.kind is Kind.JOB_COMPLETED]
            assert (started, completed) == ([1, 2], [2])

    script = tmp_path / "serves.py"
    script.write_text(NODE)
    with fresh_database() as url:
        asyncio.run(act(url))
