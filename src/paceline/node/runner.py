"""Runs what the pump has claimed and says how it ended."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from paceline.agents.context import Context
from paceline.agents.function import BoundHandler
from paceline.core.completion import Ended, Ending
from paceline.core.model import Claimed
from paceline.node.dispatcher import Start
from paceline.node.raising import raised
from paceline.node.reports import Reporter
from paceline.payloads import decode
from paceline.workers.inline import InlineWorkers, Outcome


class Epoch:
    """One run of a job's code on this node."""

    __slots__ = ("context", "job", "stopped")

    def __init__(self, job: Claimed, context: Context | None) -> None:
        self.job = job
        self.context = context
        self.stopped = False

    def stop(self) -> None:
        """Somebody else has ended the job."""
        self.stopped = True
        if self.context is not None:
            self.context.cancel()


class Runner:
    """Between claimed rows and running code; every epoch that begins here says once how it ended."""

    def __init__(
        self,
        workers: InlineWorkers,
        store_id: str,
        reporter: Reporter,
        ended: Callable[[Ended], None],
    ) -> None:
        self._workers = workers
        self._store_id = store_id
        self._reporter = reporter
        self._ended = ended
        self._epochs: dict[tuple[int, int], Epoch] = {}
        self._handlers: dict[int, tuple[str, BoundHandler]] = {}
        self._giving_back = False

    def serve(self, agent: int, name: str, handler: BoundHandler) -> None:
        """Code for an agent; jobs that run keep what they started with."""
        self._handlers[agent] = (name, handler)

    def begin(self, start: Start) -> None:
        """Starts the code of a claimed job."""
        job = start.job
        name, handler = self._handlers[start.agent]
        context = (
            Context(job.id, job.epoch, job.attempt + 1, name, self._store_id, self._reporter)
            if handler.takes_ctx
            else None
        )
        key = (job.id, job.epoch)
        epoch = self._epochs[key] = Epoch(job, context)
        self._workers.run(key, self._run(key, epoch, handler, start.body))

    def stop(self, job: int, epoch: int) -> None:
        """The job was ended by somebody else: its code should stop."""
        running = self._epochs.get((job, epoch))
        if running is not None and not running.stopped:
            running.stop()
            self._workers.cancel((job, epoch))

    def holds(self, job: int, epoch: int) -> bool:
        """The code of this epoch has not ended."""
        return (job, epoch) in self._epochs

    def give_back(self) -> None:
        """The node stops: what still runs returns to the queue."""
        self._giving_back = True
        for key in list(self._epochs):
            self._workers.cancel(key)

    def abandon(self) -> None:
        """The node's life was ended by others: nothing that runs here counts any more."""
        for key, epoch in list(self._epochs.items()):
            epoch.stop()
            self._workers.cancel(key)

    async def _run(self, key: tuple[int, int], epoch: Epoch, handler: BoundHandler, body: str) -> None:
        job = epoch.job
        try:
            arguments = handler.prepare(decode(body))
            value: object
            if handler.is_async:
                value = await handler.call(epoch.context, arguments)  # type: ignore[misc]
            else:
                value = await self._in_thread(lambda: handler.call(epoch.context, arguments))
            end = Ended(job, Ending.RETURNED, handler.encode_result(value))
        except asyncio.CancelledError as error:
            end = self._interrupted(epoch, error, body)
        except BaseException as error:
            end = raised(job, error, body)
        del self._epochs[key]
        self._workers.ended(key)
        self._ended(end)

    async def _in_thread(self, function: Callable[[], object]) -> object:
        """A thread cannot be interrupted: a cancelled job's slot is free only when its function has returned."""
        thread = self._workers.in_thread(function)
        try:
            outcome: Outcome = await asyncio.shield(thread)
        except asyncio.CancelledError:
            while not thread.done() and not self._giving_back:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([thread])
            raise
        value, error = outcome
        if error is not None:
            raise error
        return value

    def _interrupted(self, epoch: Epoch, error: BaseException, body: str) -> Ended:
        if epoch.stopped:
            return Ended(epoch.job, Ending.STOPPED)
        if self._giving_back:
            return Ended(epoch.job, Ending.GIVEN_BACK, reason="node_stopped")
        return raised(epoch.job, error, body)
