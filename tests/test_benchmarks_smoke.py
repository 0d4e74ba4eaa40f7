"""Every benchmark runs, in small, and prints one JSON object with what its figures depend on; no figure is judged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PATIENCE_S = 120

EXPECTED = {
    "throughput": "bulk one_by_one raw product_over_raw callers synchronous",
    "cost": "slots_256 slots_24 synchronous",
    "latency": "in_turn rested raw product_over_raw slots store synchronous",
    "dag": "layers chain synchronous",
    "scale": "jobs_per_s four_over_one least_share_over_most slots store",
    "dispatch": "deep_over_shallow many_tenants_over_one slots synchronous",
    "idle": "node raw seconds",
    "cli": "help ps raw",
    "pinned": "nobody idle enqueued server slots",
}
SMALL = {"idle": ["--seconds", "0.2"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_benchmark_runs_and_says_what_it_measured(name: str) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--quick", "--jobs", "64", *SMALL.get(name, [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["benchmark"] == name
    assert {"machine", "noise", "repeat", *EXPECTED[name].split()} <= found.keys()
    assert {"cores", "python", "sqlite", "fdatasync_p50_us"} <= found["machine"].keys()
    assert {"load_before", "load_after", "cpu_share_of_others"} <= found["noise"].keys()


@pytest.mark.parametrize("name", ["throughput", "latency", "dag"])
def test_a_benchmark_runs_on_postgres_beside_the_raw_cost_there(name: str) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--quick", "--jobs", "48", "--store", "postgres"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["store"], found["machine"]["fsync"]) == ("postgres", "on")
    assert {*EXPECTED[name].split()} <= found.keys()


def test_every_benchmark_is_listed_here_or_has_a_test_of_its_own() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("[a-z]*.py")}
    assert scripts == {*EXPECTED, "chaos"}


DATABASES = """
from _postgres import databases, figures
with databases("postgres") as found:
    one, other = found.fresh(), found.fresh()
    print(one != other, figures(one)["fsync"], figures(one)["synchronous_commit"])
"""


def test_benchmarks_on_postgres_get_a_server_that_syncs_every_commit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DATABASES],
        cwd=BENCHMARKS, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True on on\n", "")
