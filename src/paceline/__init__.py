"""Paceline runs many AI agents in parallel without losing work and without running over any limit."""

from paceline.agents.context import Context
from paceline.agents.definition import Agent, agent
from paceline.app import Paceline
from paceline.client.graph import Call as call
from paceline.client.job import Job
from paceline.core.lifecycle import State
from paceline.errors import (
    Conflict,
    JobCancelled,
    JobFailed,
    JobTimedOut,
    NotFound,
    OutOfCapacity,
    PacelineError,
    PermanentError,
    RateLimited,
    Refused,
    StoreError,
    TransientError,
    UsageError,
    WaitTimedOut,
)

__all__ = [
    "Agent",
    "Conflict",
    "Context",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobTimedOut",
    "NotFound",
    "OutOfCapacity",
    "Paceline",
    "PacelineError",
    "PermanentError",
    "RateLimited",
    "Refused",
    "State",
    "StoreError",
    "TransientError",
    "UsageError",
    "WaitTimedOut",
    "agent",
    "call",
]
