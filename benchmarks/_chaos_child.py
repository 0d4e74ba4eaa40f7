"""One process of the rig, as the driver sees it."""

import asyncio
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from pathlib import Path

PATIENCE = 30.0


class Child:
    """One process of the rig; ended by its own number and by nothing broader."""

    def __init__(self, role: str, process: Process, errors: Path) -> None:
        self.role = role
        self.process = process
        self.errors = errors
        self.ready = False
        self.frozen = False
        self.condemned = False
        self._reading = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        self.ready = await self.process.stdout.readline() == b"ready\n"

    @property
    def alive(self) -> bool:
        """Nobody has ended it and it has not ended."""
        return self.process.returncode is None

    def send(self, number: signal.Signals) -> None:
        """A signal, unless it is gone."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill(self) -> None:
        """Ends it at once."""
        self.send(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> bool:
        """Asks it to finish; False when it had to be killed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), PATIENCE)
            return self.process.returncode == 0
        await self.kill()
        return False
