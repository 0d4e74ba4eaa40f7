"""Paceline for scripts without asyncio: the same object on an event loop of its own, in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from paceline.client.graph import Call
from paceline.client.job import Job
from paceline.errors import UsageError

if TYPE_CHECKING:
    from paceline.app import Paceline

T = TypeVar("T")


class SyncJob:
    """A handle on one job."""

    __slots__ = ("_job", "_owner")

    def __init__(self, owner: "SyncPaceline", job: Job) -> None:
        self._owner = owner
        self._job = job

    @property
    def id(self) -> str:
        """The job's name: `j42`."""
        return self._job.id

    @property
    def number(self) -> int:
        """The job's number."""
        return self._job.number

    def __repr__(self) -> str:
        return f"SyncJob({self.id!r})"

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the end and returns the result."""
        return self._owner.run(self._job.result(timeout))

    def cancel(self) -> bool:
        """Ends the job and its tree."""
        return self._owner.run(self._job.cancel())


class SyncPaceline:
    """Every call waits for its answer; agents run on the background loop and in threads meanwhile."""

    def __init__(self, make: "Callable[[], Paceline]") -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._app: Paceline | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="paceline-loop", daemon=True)
        self._thread.start()
        try:
            self._app = self._make()
            self.run(self._app.__aenter__())
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self.app.stop(drain=None if error is None else 0.0))
        finally:
            self._end_loop()

    @property
    def app(self) -> "Paceline":
        """The asynchronous object behind this one."""
        if self._app is None:
            raise RuntimeError("use `with Paceline.sync(...) as pl:`")
        return self._app

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for a coroutine that runs on the background loop."""
        if self._loop is None:
            work.close()
            raise RuntimeError("use `with Paceline.sync(...) as pl:`")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def submit(self, agent: Any, input: object = None, *, connection: object = None, **options: Any) -> SyncJob:
        """One job; when this returns it is durable, or part of the transaction that is open on the connection."""
        _refuse_async(connection)
        return SyncJob(self, self.run(self.app.submit(agent, input, connection=connection, **options)))

    def submit_many(
        self, agent: Any, inputs: Iterable[object], *, connection: object = None, **options: Any
    ) -> list[SyncJob]:
        """One job per input, all of them or none."""
        _refuse_async(connection)
        jobs = self.run(self.app.submit_many(agent, inputs, connection=connection, **options))
        return [SyncJob(self, job) for job in jobs]

    def submit_graph(self, calls: Mapping[str, Call]) -> dict[str, SyncJob]:
        """Jobs that depend on each other by name, all of them or none."""
        return {name: SyncJob(self, job) for name, job in self.run(self.app.submit_graph(calls)).items()}

    def job(self, id: object) -> SyncJob:
        """A handle on a job by its id."""
        return SyncJob(self, self.app.job(id))

    def retry(self, job: SyncJob | str | int) -> SyncJob:
        """Tries a dead job again."""
        return SyncJob(self, self.run(self.app.retry(job)))

    def results(self, jobs: Sequence[SyncJob], timeout: float | None = None) -> list[Any]:
        """All results, in the order of the jobs."""
        return self.run(self.app.results([job._job for job in jobs], timeout))

    def _end_loop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None


def _refuse_async(connection: object) -> None:
    """The event loop of such a connection is the caller's, which waits here for the answer."""
    if iscoroutinefunction(getattr(connection, "commit", None)):
        raise UsageError(
            code="bad_connection", what="the connection belongs to another event loop", where="connection",
            found=type(connection).__name__, allowed="psycopg.Connection",
            todo="use `async with Paceline(...)` with it",
        )  # fmt: skip
