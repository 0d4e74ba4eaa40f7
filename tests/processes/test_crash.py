"""Real processes, killed at any instant: nothing acknowledged is lost, and nothing that completed runs again."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import paceline
from paceline.core.lifecycle import State
from paceline.core.model import JobRow
from paceline.events import Event, Kind
from paceline.payloads import decode
from paceline.store.doors import sqlite_store
from paceline.store.maintenance import check
from paceline.store.protocol import Tx
from paceline.testing.clock import ManualClock

SOURCE = Path(paceline.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
PATIENCE_S = 30
KILLS = 6

WORKING = """
import asyncio, itertools, os, sys
from paceline import Paceline, agent, call

STORE, WITNESS, MODE = sys.argv[1:]
witness = os.open(WITNESS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def note(*words):
    os.write(witness, (" ".join(map(str, words)) + "\\n").encode())

@agent(isolation="inline", max_concurrency=None)
async def step(ctx, n: int) -> int:
    note("began", ctx.job, ctx.epoch)
    await asyncio.sleep(n % 4 / 100)
    note("ended", ctx.job, ctx.epoch)
    return 2 * n

@agent(isolation="inline", max_concurrency=None)
def slow(ctx, n: int) -> int:
    note("began", ctx.job, ctx.epoch)
    for _ in range(20):
        if not ctx.cancelled:
            import time; time.sleep(0.005)
    note("ended", ctx.job, ctx.epoch)
    return 2 * n

async def submit(pl):
    for n in itertools.count():
        jobs = await pl.submit_graph({
            "first": call(step, n), "left": call(slow, n, after=["first"]), "right": call(step, n, after=["first"]),
            "last": call(step, n, after=["left", "right"]),
        })
        note("acknowledged", *(f"{job.id}={2 * n}" for job in jobs.values()))
        key = await pl.submit(step, 7, key=f"once-{n % 10}")
        note("acknowledged", f"{key.id}=14")
        await asyncio.sleep(0.01)

async def finish(pl):
    with open(WITNESS) as lines:
        words = [line.split() for line in lines]
    asked = [word.split("=") for line in words if line[0] == "acknowledged" for word in line[1:]]
    answers = await pl.results([pl.job(job) for job, _ in asked], timeout=20)
    assert answers == [int(answer) for _, answer in asked]

async def main():
    async with Paceline(STORE, heartbeat="500ms", dead_after="5s") as pl:
        print("ready", flush=True)
        await (submit if MODE == "submit" else finish)(pl)
    print("finished", flush=True)

if __name__ == "__main__":
    asyncio.run(main())
"""

PLAIN = """
import sys
from dataclasses import dataclass
from paceline import Paceline, agent

@dataclass
class Point:
    x: int
    y: int

@agent
def mirror(point: Point) -> Point:
    return Point(point.y, point.x)

def main():
    with Paceline.sync(sys.argv[1]) as pl:
        print(pl.submit(mirror, Point(1, 2), key="once").result(timeout=20))

if __name__ == "__main__":
    main()
"""

NAMESAKE = """
import asyncio, sys
from paceline import Paceline, agent

@agent(max_concurrency=None)
async def work(n: int) -> str:
    return f"{n} by WHO"

async def main():
    store, mode = sys.argv[1:]
    async with Paceline(store, node=mode == "run") as pl:
        jobs = [await pl.submit(work, n, key=f"{n}") for n in range(5)]
        if mode == "run":
            print(*await pl.results(jobs, timeout=20), sep=",")
        else:
            print(*[(await job.state()).word for job in jobs], sep=",")

if __name__ == "__main__":
    asyncio.run(main())
"""


class Run(NamedTuple):
    """What the witness saw of one start of a job's code; places are lines of the witness file."""

    epoch: int
    began: int
    ended: int | None


class Evidence:
    """What was acknowledged, what ran, and what the store says of it, once every process is gone."""

    def __init__(self, path: Path, witness: Path) -> None:
        self.acknowledged: set[int] = set()
        self.runs: dict[int, list[Run]] = defaultdict(list)
        for place, line in enumerate(witness.read_text().splitlines()):
            word, *rest = line.split()
            if word == "acknowledged":
                self.acknowledged |= {int(job.partition("=")[0][1:]) for job in rest}
                continue
            job, epoch = int(rest[0][1:]), int(rest[1])
            runs = self.runs[job]
            if word == "began":
                assert not any(run.epoch == epoch for run in runs), "one epoch began twice"
                runs.append(Run(epoch, place, None))
            else:
                runs[-1] = runs[-1]._replace(ended=place)
        store = sqlite_store(path, ManualClock())
        last = max(store.look(lambda tx: tx.listing.find("newest", 1)))
        self.rows: dict[int, JobRow] = {row.id: row for row in store.look(lambda tx: tx.jobs.rows(range(1, last + 1)))}
        self.events: dict[int, list[Event]] = {}
        self.waits: dict[int, list[int]] = {}
        for job in self.rows:
            self.events[job] = store.look(partial(events_of, job))
            self.waits[job] = store.look(partial(waits_of, job))
        self.nodes = store.look(lambda tx: tx.nodes.newest(100))
        store.close()


def events_of(job: int, tx: Tx) -> list[Event]:
    return tx.events.of_job(job)


def waits_of(job: int, tx: Tx) -> list[int]:
    return [edge.dependency for edge in tx.edges.before(job)]


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


@contextmanager
def started(path: Path, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """A script that runs, until the block ends."""
    command = [sys.executable, str(path), *map(str, arguments)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, cwd=path.parent) as process:
        try:
            yield process
        finally:
            process.kill()


def output_of(path: Path, *arguments: object) -> str:
    """What a script prints that ends by itself, well and without a word on its error stream."""
    command = [sys.executable, str(path), *map(str, arguments)]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=path.parent
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A script that submits and runs graphs is killed again and again; then it is let to finish what is left."""
    folder = tmp_path_factory.mktemp("crash")
    path, witness = folder / "work.db", folder / "witness"
    work = script(folder, "work.py", WORKING)
    chance = random.Random(20_240_229)
    for _ in range(KILLS):
        with started(work, f"sqlite:///{path}", witness, "submit") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 0.5))
            process.send_signal(signal.SIGKILL)
            assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert output_of(work, f"sqlite:///{path}", witness, "finish") == "ready\nfinished"
    report = check(path)
    assert report.findings == (), report.findings
    return Evidence(path, witness)


def test_nothing_that_was_acknowledged_is_missing(evidence: Evidence) -> None:
    assert len(evidence.acknowledged) > 20
    assert {evidence.rows[job].state for job in evidence.acknowledged} == {State.COMPLETED}


def test_a_submission_that_was_not_acknowledged_is_there_whole_or_not_at_all(evidence: Evidence) -> None:
    for job, row in evidence.rows.items():
        assert row.state in (State.COMPLETED, State.QUEUED, State.BLOCKED), f"j{job}"
    in_graphs = [job for job, waits in evidence.waits.items() if len(waits) == 2]
    assert sum(len(waits) == 1 for waits in evidence.waits.values()) == 2 * len(in_graphs)


def test_interrupted_attempts_are_closed_with_the_reason_and_run_again(evidence: Evidence) -> None:
    interrupted = 0
    for job, row in evidence.rows.items():
        back = [event for event in evidence.events[job] if event.kind is Kind.JOB_GIVEN_BACK]
        begun = [event.epoch for event in evidence.events[job] if event.kind is Kind.JOB_STARTED]
        assert begun == list(range(1, row.epoch + 1))
        if row.state is State.COMPLETED:
            assert [event.epoch for event in back] == begun[:-1], "every start but the last was closed"
        assert {decode(event.data or "null")["reason"] for event in back} <= {"node_died"}  # type: ignore[index]
        interrupted += len(back)
    assert interrupted > 0, "no kill met a running job"
    assert {row.attempt for row in evidence.rows.values()} == {0}, "a death costs nothing"


def test_nothing_that_completed_runs_again(evidence: Evidence) -> None:
    for job, runs in evidence.runs.items():
        ended = [event.epoch for event in evidence.events[job] if event.kind is Kind.JOB_COMPLETED]
        assert len(ended) <= 1
        assert [run.epoch for run in runs] == sorted(run.epoch for run in runs)
        assert not ended or runs[-1].epoch == ended[0]


def test_no_job_began_before_its_prerequisites_had_ended(evidence: Evidence) -> None:
    looked_at = 0
    for job, waits in evidence.waits.items():
        for before in waits if job in evidence.runs else []:
            last = evidence.runs[before][-1].ended
            assert last is not None
            assert last < evidence.runs[job][0].began
            looked_at += 1
    assert looked_at > 20


def test_every_killed_process_left_a_life_that_others_ended(evidence: Evidence) -> None:
    endings = [node.ending for node in sorted(evidence.nodes)]
    assert endings[-1] == "stopped"
    assert set(endings[:-1]) == {"process_gone"}
    assert len(endings) == KILLS + 1


def test_a_plain_script_with_its_own_agents_works_and_works_again(tmp_path: Path) -> None:
    path = script(tmp_path, "plain.py", PLAIN)
    store = f"sqlite:///{tmp_path}/work.db"
    assert [output_of(path, store) for _ in range(2)] == ["{'x': 2, 'y': 1}"] * 2


def test_two_scripts_with_agents_of_one_name_never_swap_jobs(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/work.db"
    one, other = (script(tmp_path / who, "work.py", NAMESAKE.replace("WHO", who)) for who in ("one", "other"))
    assert output_of(one, store, "submit") == ",".join(["queued"] * 5)
    assert output_of(other, store, "run") == ",".join(f"{n} by other" for n in range(5))
    assert output_of(one, store, "submit") == ",".join(["queued"] * 5), "nobody else has run them"
    assert output_of(one, store, "run") == ",".join(f"{n} by one" for n in range(5))
