"""What one no-op job costs: processor time, commits, statements, rows and bytes, at 256 and at 24 in flight.

`cpu_us` is the time of the whole process, `python_us` what is left of it when the processor time of the same rows,
replayed raw in batches of the same size, is taken away. Bytes are what went to the write-ahead log (whole pages), what
the process wrote to all files, and what stays in the database file.
"""

import time
from collections import Counter
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import apsw
import psutil

from _measure import Files, Noise, figure, folder, machine, parser, run, show, side_by_side, url
from _rows import Raw, commits_of, lifecycle
from paceline import Paceline, agent
from paceline.store.tx import Tx

LIMITS = (256, 24)
PAGE_IN_LOG = 4096 + 24
Counts = dict[str, float]


@agent(max_concurrency=None)
async def noop(n: int) -> int:
    return n


class Watch:
    """Sees every database connection that this process opens, and counts statements where that is asked for."""

    def __init__(self, counting: bool) -> None:
        self._counting = counting
        self._connections: list[apsw.Connection] = []
        self.statements: Counter[str] = Counter()

    def __enter__(self) -> "Watch":
        apsw.connection_hooks.append(self._opened)
        return self

    def __exit__(self, *_: object) -> None:
        apsw.connection_hooks.remove(self._opened)

    def totals(self, _: Tx) -> tuple[int, int]:
        """(rows changed, pages written to the log) so far; runs on the writer's thread."""
        rows, pages = 0, 0
        for connection in self._connections:
            with suppress(apsw.ConnectionClosedError):
                rows += connection.total_changes()
                pages += connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]
        return rows, pages

    def _opened(self, connection: apsw.Connection) -> None:
        self._connections.append(connection)
        if self._counting:
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._said)

    def _said(self, event: dict[str, str]) -> None:
        self.statements[" ".join(event["sql"].split())[:60]] += 1


async def counted(path: Path, slots: int, jobs: int, tracing: bool) -> Counts:
    """One bulk run between two looks at every counter."""
    process = psutil.Process()
    with Watch(tracing) as watch:
        async with Paceline(url(path), agents=[noop], slots=slots, synchronous="full", max_pending=10 * jobs) as pl:
            await (await pl.submit(noop, 0)).result()
            rows, pages = await pl.client.store.transact(watch.totals)
            watch.statements.clear()
            written, commits = process.io_counters().write_chars, commits_of(pl)
            wall, cpu, here = time.perf_counter(), time.process_time(), time.thread_time()
            await pl.results(await pl.submit_many(noop, range(jobs)))
            wall, cpu, here = time.perf_counter() - wall, time.process_time() - cpu, time.thread_time() - here
            commits, written = commits_of(pl) - commits, process.io_counters().write_chars - written
            statements = sum(watch.statements.values())
            rows_after, pages_after = await pl.client.store.transact(watch.totals)
    return {
        "wall_us": wall * 1e6,
        "cpu_us": cpu * 1e6,
        "cpu_us_event_loop": here * 1e6,
        "cpu_us_writer_and_others": (cpu - here) * 1e6,
        "commits": commits,
        "statement_runs": statements,
        "rows": rows_after - rows,
        "log_bytes": (pages_after - pages) * PAGE_IN_LOG,
        "written_bytes": written,
        "file_bytes": size_without_log(path),
    }


def size_without_log(path: Path) -> int:
    """The size of the database file once everything has moved into it."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("select count(*) from jobs").fetchall()  # only a connection that has read knows of the log
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return path.stat().st_size


def replayed(path: Path, jobs: int, batch: int) -> Counts:
    """The same rows, raw: processor and wall time."""
    rows = lifecycle(jobs, batch)
    database = Raw(path, rows.preamble)
    cpu, wall = time.process_time(), database.seconds([*rows.submits, *rows.runs])
    cpu = time.process_time() - cpu
    database.close()
    return {"wall_us": wall * 1e6, "cpu_us": cpu * 1e6}


def per_job(found: list[Counts], jobs: int) -> dict[str, object]:
    """Every counter as figures for one job."""
    return {name: figure([one[name] / jobs for one in found], 3) for name in found[0]}


def main(arguments: list[str] | None = None) -> dict[str, object]:
    """Measures both limits, in turns with the raw replay."""
    options = parser(__doc__, jobs=10_000).parse_args(arguments)
    jobs, repeat = (min(options.jobs, 2_000), 1) if options.quick else (options.jobs, options.repeat)
    noise = Noise()
    limits: dict[str, object] = {}
    with folder() as where:
        files = Files(where)

        def product(slots: int, tracing: bool) -> Counts:
            return run(options.loop, counted(files.fresh(), slots, jobs, tracing))

        def raw(slots: int) -> Counts:
            return replayed(files.fresh(), jobs, slots)

        for slots in LIMITS:
            runs = {
                "product": partial(product, slots, tracing=False),
                "raw": partial(raw, slots),
                "traced": partial(product, slots, tracing=True),
            }
            found = side_by_side(repeat, runs)
            for one, same_rows, seen in zip(*found.values(), strict=True):
                one["python_us"] = one["cpu_us"] - same_rows["cpu_us"]
                one["statement_runs"] = seen["statement_runs"]
            limits[f"slots_{slots}"] = {
                "per_job": per_job(found["product"], jobs),
                "raw_per_job": per_job(found["raw"], jobs),
            }
        facts = machine(where)
    return {
        "benchmark": "cost",
        "jobs": jobs,
        "repeat": repeat,
        "synchronous": "full",
        "loop": options.loop,
        **limits,
        "machine": facts,
        "noise": noise.figures(),
    }


if __name__ == "__main__":
    show(main())
