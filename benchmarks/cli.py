"""Wall time of two commands a person types all day, beside starting Python for nothing at all."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from _measure import Noise, figure, folder, machine, parser, percentiles, run, show, side_by_side, url
from paceline import Paceline, agent

TIMES = 10
PACELINE = Path(sys.executable).with_name("paceline")


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


async def fill(path: Path, jobs: int) -> None:
    """A small store to list."""
    async with Paceline(url(path), agents=[noop]) as pl:
        await pl.results(await pl.submit_many(noop, range(jobs)))


def milliseconds(command: list[str], where: Path, environment: Mapping[str, str]) -> float:
    """How long a command takes from start to end; it must succeed."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=60, check=False)
    took = (time.perf_counter() - started) * 1e3
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
    return took


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures the commands in turns."""
    options = parser(__doc__, jobs=50, repeat=TIMES).parse_args(arguments)
    jobs, repeat = (min(options.jobs, 20), 2) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    with folder() as where:
        store = where / "small.db"
        run(options.loop, fill(store, jobs))
        environment = {**os.environ, "PACELINE_STORE": url(store)}
        commands = {
            "help": [str(PACELINE), "--help"],
            "ps": [str(PACELINE), "ps"],
            "raw": [sys.executable, "-c", "pass"],
            "raw_import": [sys.executable, "-c", "import paceline"],
        }
        runs = {name: lambda some=said: milliseconds(some, where, environment) for name, said in commands.items()}
        found = side_by_side(repeat, runs)
        facts = machine(where)
    return {
        "benchmark": "cli",
        "unit": "ms",
        "jobs": jobs,
        "repeat": repeat,
        **{name: {**figure(took, 1), "p90": percentiles(took, 1)["p90"]} for name, took in found.items()},
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
