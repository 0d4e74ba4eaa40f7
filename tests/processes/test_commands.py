"""`paceline up` and `paceline run` as real processes: signals, lost stores, closed pipes, and the time to start."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline import Paceline
from paceline.core.lifecycle import State

PATIENCE_S = 30
PACELINE = [sys.executable, "-m", "paceline"]

AGENTS = """
import asyncio, pathlib, time
from paceline import agent

@agent(max_concurrency=None)
async def double(n: int) -> int:
    return 2 * n

@agent(max_concurrency=None)
async def nap(seconds: float) -> str:
    pathlib.Path("began").touch()
    await asyncio.sleep(seconds)
    return "rested"

@agent(max_concurrency=None)
def block(seconds: float) -> None:
    pathlib.Path("began").touch()
    time.sleep(seconds)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with agents and a store."""
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")
    subprocess.run([*PACELINE, "init"], cwd=tmp_path, capture_output=True, check=True, timeout=PATIENCE_S)
    return tmp_path


@contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A command in a session of its own, as a shell would start it; ended at the latest with the test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PACELINE_")}
    process = subprocess.Popen(
        [*PACELINE, *words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in out + err
    return process.returncode, out, err


def wait_for(path: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.01)


def submitted(folder: Path, agent: str, value: float) -> int:
    """One job for a node that runs elsewhere; the agent is known to the store already."""
    with Paceline.sync(f"sqlite:///{folder}/.paceline/paceline.db", node=False) as pl:
        return pl.submit(agent, value).number


def state_of(folder: Path, job: int) -> State:
    with Paceline.sync(f"sqlite:///{folder}/.paceline/paceline.db", node=False) as pl:
        return pl.run(pl.app.job(job).state())


def test_a_node_says_what_it_serves_works_and_stops_cleanly_when_asked(folder: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with started(folder, "up", "--app", "agents.py", "--slots", "3") as node:
            first = line_of(node)
            assert "serves block, double, nap" in first
            assert "up to 3 jobs at once" in first
            job = submitted(folder, "double", 4)
            with Paceline.sync(f"sqlite:///{folder}/.paceline/paceline.db", node=False) as pl:
                assert pl.run(pl.app.job(job).result(PATIENCE_S)) == 8
            node.send_signal(number)
            code, out, err = ended(node)
            assert (code, out, err) == (0, "", "stopped\n")


def test_the_first_ctrl_c_lets_running_jobs_finish(folder: Path) -> None:
    with started(folder, "up", "--app", "agents.py") as node:
        line_of(node)
        job = submitted(folder, "nap", 0.6)
        wait_for(folder / "began")
        node.send_signal(signal.SIGINT)
        code, _, err = ended(node)
    assert code == 0
    assert "stopping: no new jobs; 1 job may run on for 30 s" in err
    assert state_of(folder, job) is State.COMPLETED


def test_the_second_ctrl_c_gives_jobs_back(folder: Path) -> None:
    with started(folder, "up", "--app", "agents.py") as node:
        line_of(node)
        job = submitted(folder, "nap", 600)
        wait_for(folder / "began")
        node.send_signal(signal.SIGINT)
        assert "stopping" in line_of(node)
        node.send_signal(signal.SIGINT)
        code, _, err = ended(node)
    assert code == 130
    assert "1 job went back to the queue" in err
    assert state_of(folder, job) is State.QUEUED


def test_the_third_ctrl_c_ends_even_what_cannot_be_interrupted(folder: Path) -> None:
    with started(folder, "up", "--app", "agents.py") as node:
        line_of(node)
        submitted(folder, "block", 600)
        wait_for(folder / "began")
        for _ in range(3):
            node.send_signal(signal.SIGINT)
            time.sleep(0.1)
        code, _, _ = ended(node)
    assert code == 130


def test_a_node_whose_store_is_deleted_ends_and_says_what_to_do(folder: Path) -> None:
    with started(folder, "up", "--app", "agents.py") as node:
        line_of(node)
        (folder / ".paceline" / "paceline.db").unlink()
        code, out, err = ended(node)
    assert (code, out) == (1, "")
    assert err.count("store_gone") == 1
    assert "restore the file" in err


def test_a_node_without_agents_does_not_start(folder: Path) -> None:
    with started(folder, "up") as node:
        code, out, err = ended(node)
    assert (code, out) == (2, "")
    assert "paceline up --app agents.py" in err


@pytest.mark.parametrize("agent", ["nap", "block"])
def test_ctrl_c_gives_the_job_of_a_run_back_and_says_so(folder: Path, agent: str) -> None:
    with started(folder, "run", f"agents.py:{agent}", "600") as run:
        wait_for(folder / "began")
        run.send_signal(signal.SIGINT)
        code, out, err = ended(run)
    assert (code, out) == (130, "")
    assert "j1 is back in the queue" in err
    assert state_of(folder, 1) is State.QUEUED


def test_a_run_whose_job_is_cancelled_elsewhere_ends_with_that(folder: Path) -> None:
    with started(folder, "run", "agents.py:nap", "600") as run:
        wait_for(folder / "began")
        with Paceline.sync(f"sqlite:///{folder}/.paceline/paceline.db", node=False) as pl:
            assert pl.run(pl.app.cancel("j1"))
        code, out, err = ended(run)
    assert (code, out) == (1, "")
    assert "cancelled" in err


def test_a_thread_that_outlives_its_job_does_not_keep_the_process(folder: Path) -> None:
    with started(folder, "run", "agents.py:block", "600", "--timeout", "200ms") as run:
        code, _, err = ended(run)
    assert code == 1
    assert "timed out" in err


def test_a_closed_pipe_is_quiet(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PACELINE, "--help"], stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_script_in_the_place_of_agents_is_refused_before_it_starts_a_node(folder: Path) -> None:
    (folder / "script.py").write_text("from paceline import Paceline\nPaceline.sync('sqlite:///x.db').__enter__()\n")
    with started(folder, "up", "--app", "script.py") as node:
        code, _, err = ended(node)
    assert code == 2
    assert '__name__ == "__main__"' in err


def test_help_is_there_before_anybody_notices() -> None:
    """The best of several: what the machine does beside it must not decide."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([*PACELINE, "--help"], capture_output=True, check=True, timeout=PATIENCE_S)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.15
