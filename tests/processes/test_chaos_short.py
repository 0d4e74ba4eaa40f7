"""The short form of the chaos rig: real processes are killed and frozen, each promise holds, broken ones are seen."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RIG = Path(__file__).parents[2] / "benchmarks" / "chaos.py"
PROMISES = (
    "lost",
    "doubled",
    "stuck",
    "over_limit",
    "early",
    "unexpected",
    "event_gaps",
    "leaked",
    "repaired",
    "damaged",
)
PATIENCE_S = 200


def torment(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, str(RIG), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def test_kills_and_freezes_at_random_moments_break_no_promise() -> None:
    status, found = torment("--kills", "25", "--freezes", "5", "--seconds", "9", "--seed", "1")

    assert {promise: found[promise] for promise in PROMISES} == dict.fromkeys(PROMISES, 0), found
    assert (found["did_not_stop"], found["died_by_themselves"]) == ([], [])
    assert (found["kills"], found["freezes"], status) == (25, 5, 0)
    assert found["given_back"] > 0 < found["edges"]


def test_the_rig_notices_what_is_broken_on_purpose() -> None:
    status, found = torment("--kills", "10", "--freezes", "2", "--seconds", "5", "--seed", "2", "--control")

    assert found["over_limit"] > 0, found
    assert {"lost", "doubled", "stuck", "repaired", "unexpected"} & set(found["failed"]), found
    assert status == 1
