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
    "late",
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


def test_nor_do_they_on_postgres_when_its_server_and_the_links_to_it_fail_as_well() -> None:
    faults = ("--kills", "6", "--freezes", "1", "--restarts", "1", "--cuts", "1", "--terminations", "4")
    status, found = torment("--store", "postgres", "--links", "proxy", *faults, "--seconds", "8", "--seed", "3")

    assert {promise: found[promise] for promise in PROMISES} == dict.fromkeys(PROMISES, 0), found
    assert (found["did_not_stop"], found["died_by_themselves"]) == ([], [])
    struck = {name: found[name] for name in ("kills", "freezes", "crashes", "cuts", "terminations")}
    assert struck == {"kills": 6, "freezes": 1, "crashes": 1, "cuts": 1, "terminations": 4}
    assert (found["cut_by"], status) == ("proxy", 0)
    assert found["given_back"] > 0 < found["edges"]


def test_the_rig_notices_what_is_broken_on_purpose() -> None:
    status, found = torment("--kills", "10", "--freezes", "2", "--seconds", "5", "--seed", "2", "--control")

    assert found["over_limit"] > 0, found
    assert {"lost", "doubled", "stuck", "repaired", "unexpected"} & set(found["failed"]), found
    assert status == 1


def test_the_rig_notices_decisions_over_rows_that_nobody_holds() -> None:
    status, found = torment(
        "--store", "postgres", "--kills", "0", "--freezes", "0", "--seconds", "0", "--jobs", "2000", "--seed", "4",
        "--patience", "8", "--control", "guards",
    )  # fmt: skip

    assert {"over_limit", "stuck", "repaired", "lost"} & set(found["failed"]), found
    assert status == 1
