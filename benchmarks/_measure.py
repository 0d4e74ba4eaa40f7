"""What every benchmark shares: arguments, a folder on the repository's disk, figures with their range, the machine."""

import argparse
import asyncio
import gc
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import psutil
import uvloop

T = TypeVar("T")
Figure = dict[str, float | int]

REPOSITORY = Path(__file__).resolve().parent.parent
IN_MEMORY = ("tmpfs", "ramfs")


def parser(about: str, *, jobs: int, repeat: int = 3) -> argparse.ArgumentParser:
    """The arguments that all benchmarks take."""
    made = argparse.ArgumentParser(description=about.partition("\n")[0])
    made.add_argument("--jobs", type=int, default=jobs, help="jobs per run (default: %(default)s)")
    made.add_argument("--repeat", type=int, default=repeat, help="runs of everything (default: %(default)s)")
    made.add_argument("--quick", action="store_true", help="smaller and once: to see that it works")
    made.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio", help="event loop")
    return made


def run(loop: str, work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on an event loop of its own, with the garbage of the run before gone."""
    gc.collect()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        return runner.run(work)


@contextmanager
def folder() -> Iterator[Path]:
    """An empty folder on the disk of the repository, never in memory; removed afterwards."""
    usual = Path(tempfile.gettempdir())
    same_disk = usual.stat().st_dev == REPOSITORY.stat().st_dev and _kind_of_disk(usual) not in IN_MEMORY
    parent = usual if same_disk else REPOSITORY / "build"
    parent.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="paceline-bench-", dir=parent))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _kind_of_disk(path: Path) -> str:
    mounts = [one for one in psutil.disk_partitions(all=True) if path.resolve().is_relative_to(one.mountpoint)]
    return max(mounts, key=lambda one: len(one.mountpoint)).fstype if mounts else ""


class Files:
    """Database files in a folder; each run gets one of its own."""

    def __init__(self, where: Path) -> None:
        self._where = where
        self._count = 0

    def fresh(self) -> Path:
        """A path where nothing is yet."""
        self._count += 1
        return self._where / f"{self._count}.db"


def url(path: Path) -> str:
    """The file as a program names it."""
    return f"sqlite:///{path}"


def side_by_side(repeat: int, runs: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Runs each in turn, again and again, so that what disturbs one disturbs the others as well."""
    found: dict[str, list[T]] = {name: [] for name in runs}
    for _ in range(repeat):
        for name, measure in runs.items():
            found[name].append(measure())
    return found


def figure(values: Sequence[float], digits: int = 0) -> Figure:
    """Median and range of the same thing measured several times."""
    shown = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, digits) if digits else round(value) for name, value in shown.items()}


def percentiles(values: Sequence[float], digits: int = 3) -> Figure:
    """p50, p90, p99 and the longest."""
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    places = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    found = {
        name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], digits) for name, share in places.items()
    }
    return {**found, "max": round(ordered[-1], digits), "count": len(ordered)}


def fdatasync_us(where: Path, times: int = 200) -> float:
    """What one synced write of a page costs on this disk, in the middle."""
    took = []
    descriptor = os.open(where / "sync", os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(times):
            os.write(descriptor, bytes(4096))
            started = time.perf_counter()
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - started)
    finally:
        os.close(descriptor)
    return round(statistics.median(took) * 1e6, 1)


class Noise:
    """How busy the machine was with other things while a benchmark ran."""

    def __init__(self) -> None:
        self._load = os.getloadavg()[0]
        self._started = time.perf_counter()
        self._busy = _busy_seconds()
        self._own = _own_seconds()

    def figures(self) -> dict[str, object]:
        """Load averages, and the share of all cores that other processes took."""
        seconds = time.perf_counter() - self._started
        others = (_busy_seconds() - self._busy) - (_own_seconds() - self._own)
        share = max(0.0, others) / (seconds * (os.cpu_count() or 1))
        return {
            "load_before": round(self._load, 2),
            "load_after": round(os.getloadavg()[0], 2),
            "cpu_share_of_others": round(share, 3),
            "seconds": round(seconds, 1),
        }


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0))


def _own_seconds() -> float:
    return sum(os.times()[:4])


def machine(where: Path) -> dict[str, object]:
    """What must be known of the machine to read the figures."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "disk": _kind_of_disk(where),
        "fdatasync_p50_us": fdatasync_us(where),
    }


def show(result: Mapping[str, object]) -> None:
    """One JSON object; spread out for people."""
    print(json.dumps(result, indent=2 if sys.stdout.isatty() else None))
