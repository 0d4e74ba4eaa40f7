"""Paceline runs many AI agents in parallel without losing work and without running over any limit."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.agents.context import Context  # noqa: I001 - one line each would hide how few names there are
    from paceline.agents.definition import Agent, agent
    from paceline.app import Paceline
    from paceline.client.graph import Call as call  # noqa: N813 - `call(agent, input)` reads as a verb where it is used
    from paceline.client.job import Job
    from paceline.core.lifecycle import State
    from paceline.errors import (
        Conflict, JobCancelled, JobFailed, JobTimedOut, NotFound, OutOfCapacity, PacelineError, PermanentError,
        RateLimited, Refused, StoreError, TransientError, UsageError, WaitTimedOut,
    )  # fmt: skip

__all__ = [
    "Agent", "Conflict", "Context", "Job", "JobCancelled", "JobFailed", "JobTimedOut", "NotFound", "OutOfCapacity",
    "Paceline", "PacelineError", "PermanentError", "RateLimited", "Refused", "State", "StoreError", "TransientError",
    "UsageError", "WaitTimedOut", "agent", "call",
]  # fmt: skip

_HOMES = {
    "Agent": "agents.definition",
    "Context": "agents.context",
    "Job": "client.job",
    "Paceline": "app",
    "State": "core.lifecycle",
    "agent": "agents.definition",
    "call": "client.graph",
}
_NAMES_AT_HOME = {"call": "Call"}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Public names are imported when first used: `paceline --help` needs none of them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"paceline.{_HOMES.get(name, 'errors')}")
        value = globals()[name] = getattr(home, _NAMES_AT_HOME.get(name, name))
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
