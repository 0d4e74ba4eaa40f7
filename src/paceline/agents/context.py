"""What agent code sees of its job: who it is, and a way to say how it is going."""

from typing import Protocol

from paceline.core.names import storable

LONGEST_LINE = 8_192
LEVELS = ("debug", "info", "warning", "error")


class Reporter(Protocol):
    """Takes what an epoch says on to the store."""

    def log(self, job: int, epoch: int, level: str, text: str) -> None:
        """One line, in order."""

    def progress(self, job: int, epoch: int, fraction: float | None, note: str) -> None:
        """The newest word counts."""


class Context:
    """Handed to every agent that asks for `ctx`; one for each epoch, safe to use from any thread."""

    __slots__ = ("_cancelled", "_epoch", "_job", "_reporter", "_store_id", "agent", "attempt")

    def __init__(self, job: int, epoch: int, attempt: int, agent: str, store_id: str, reporter: Reporter) -> None:
        self._job = job
        self._epoch = epoch
        self._store_id = store_id
        self._reporter = reporter
        self._cancelled = False
        self.attempt = attempt
        self.agent = agent

    @property
    def job(self) -> str:
        """The job's id: `j42`."""
        return f"j{self._job}"

    @property
    def epoch(self) -> int:
        """Rises whenever the job is started again, for whatever reason."""
        return self._epoch

    @property
    def idempotency_key(self) -> str:
        """The same in every try of this job and in no other job: hand it to whatever has side effects."""
        return f"{self._store_id}-{self._job}"

    @property
    def cancelled(self) -> bool:
        """Somebody ended this job: code that cannot be interrupted should return soon."""
        return self._cancelled

    def cancel(self) -> None:
        """Called by the node when the job has been ended."""
        self._cancelled = True

    def log(self, text: object, level: str = "info") -> None:
        """One line for `paceline logs`."""
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
        self._reporter.log(self._job, self._epoch, level, storable(str(text), LONGEST_LINE))

    def progress(self, fraction: float | None, note: object = "") -> None:
        """How far the job is, from 0 to 1, and what it is doing."""
        if fraction is not None:
            fraction = float(fraction)
            if not 0 <= fraction <= 1:
                raise ValueError(f"progress is a fraction from 0 to 1, not {fraction!r}")
        self._reporter.progress(self._job, self._epoch, fraction, storable(str(note), LONGEST_LINE))
