"""Whole systems under faults: every law after every commit, then peace until everything has ended."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import paceline
from paceline.testing.mutants import MUTANTS
from paceline.testing.simulation import LawBroken, simulate
from paceline.testing.world import SimulatedStore

PARTS, SEEDS, STEPS = 4, 260, 50_000
RARE = {
    "a caller's patience ended",
    "a deposed leader reaped nothing",
    "a chain of failed dependencies",
    "a job went to another node than it came through",
    "a pinned job was taken over from the dead",
    "a unit raised in a group commit",
    "abandoned submission swept",
    "amnesty used",
    "cancelled while blocked",
    "cancelled while queued",
    "cancelled while running",
    "cancelled with its parent",
    "commit unknown, resolved by key",
    "crash after the commit, before it was heard of",
    "crash before the commit",
    "error after the commit",
    "error before the commit",
    "failed: dependency_failed",
    "failed: repeating",
    "failed: too_many_timeouts",
    "frozen node fenced",
    "leader changed",
    "late completion after cancel",
    "late completion of an older epoch",
    "node reaped: lease_expired",
    "node reaped: process_gone",
    "node stopped gracefully",
    "refused: not_dead",
    "refused: parent_ended",
    "refused: queue_full",
    "refused: submission_abandoned",
    "replayed",
    "revived",
    "settle postponed",
    "stale completion refused",
    "submission finished by the janitor",
    "third epoch",
    "timed out while blocked",
    "timed out while queued",
    "timed out while running",
    "what a frozen process had sent came late",
    "work was left for other nodes",
}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_law_holds_and_every_rare_branch_is_taken(part: int) -> None:
    hits: Counter[str] = Counter()
    steps = 0
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        report = simulate(seed)
        steps += report.steps
        hits += report.hits
    assert RARE - hits.keys() == set()
    assert steps >= STEPS


def kept_seeds() -> list[int]:
    lines = (Path(__file__).parent / "seeds.txt").read_text("utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def test_seeds_that_once_failed_hold_at_twice_the_length() -> None:
    for seed in kept_seeds():
        simulate(seed, steps=600)


def test_a_seed_takes_the_same_steps_every_time() -> None:
    for seed in range(5_000, 5_012):
        assert simulate(seed) == simulate(seed)


def test_different_seeds_take_different_steps() -> None:
    assert len({simulate(seed, steps=60).trace for seed in range(6_000, 6_008)}) == 8


def test_the_order_of_hashes_does_not_matter() -> None:
    said = [_said_by_another_process(seed=7, hash_seed=hash_seed) for hash_seed in ("1", "2")]
    assert said[0] == said[1]
    assert simulate(7).trace in said[0]


def _said_by_another_process(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(paceline.__file__).parents[1])}
    command = [sys.executable, "-m", "paceline.testing", str(seed), "--trace"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def _simulate_many(seeds: int, store: SimulatedStore) -> None:
    for seed in range(seeds):
        simulate(seed, store=store)


def test_a_broken_law_names_seed_and_step_and_how_to_see_it_again() -> None:
    with MUTANTS[1].store() as store, pytest.raises(LawBroken) as broken:
        _simulate_many(50, store)
    assert broken.value.law in MUTANTS[1].breaks
    assert str(broken.value).startswith(f"seed {broken.value.seed}, step {broken.value.step}: {broken.value.law}: ")
    assert f"python -m paceline.testing {broken.value.seed} --trace" in str(broken.value)
