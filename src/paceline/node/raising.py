"""How an exception ends an epoch; what the exception does when somebody looks at it does not matter."""

import traceback
import zlib

from paceline.core.completion import Ended, Ending
from paceline.core.failures import classify, facts_of
from paceline.core.model import Claimed
from paceline.core.names import storable
from paceline.units.failing import ErrorBody, write_error

TRACE_LINES = 20


def raised(job: Claimed, error: BaseException, body: str) -> Ended:
    """The end of an epoch whose code raised; `body` is its input, which tells one task from another."""
    facts = facts_of(error)
    kind = facts.types[0].removeprefix("builtins.")
    written = write_error(ErrorBody(kind, facts.message, classify(facts).value, trace=_trace(error)))
    return Ended(job, Ending.RAISED, written, classify(facts), facts.retry_after, task=zlib.crc32(body.encode()))


def _trace(error: BaseException) -> str | None:
    """The last frames of the agent's own code."""
    frames = traceback.extract_tb(error.__traceback__)[1:][-TRACE_LINES:]
    return storable("".join(traceback.format_list(frames))) or None
