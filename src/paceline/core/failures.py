"""What kind of failure an exception is: facts are read from it once, then a table decides.

The table looks at types, codes, statuses and error numbers and never at the words of a message.
"""

import errno
import math
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, TypeVar

from paceline.core.names import storable

T = TypeVar("T")


class FailureClass(StrEnum):
    """Why something failed, as far as trying again is concerned."""

    RATE_LIMIT = "rate_limit"
    CAPACITY = "capacity"
    TIMEOUT = "timeout"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


class FailureFacts(NamedTuple):
    """What is known of a failure once the exception itself is gone."""

    types: tuple[str, ...]
    """Dotted names of the exception's class and its bases, nearest first."""
    message: str = ""
    status: int | None = None
    errno: int | None = None
    retry_after: float | None = None
    """Seconds that the other side asked for."""
    explicit: FailureClass | None = None
    """The class that the exception itself claims."""
    codes: tuple[str, ...] = ()
    """A provider's own words for the error, such as `insufficient_quota`."""


_RATE_LIMIT, _CAPACITY, _TIMEOUT = FailureClass.RATE_LIMIT, FailureClass.CAPACITY, FailureClass.TIMEOUT
_TRANSIENT, _PERMANENT = FailureClass.TRANSIENT, FailureClass.PERMANENT

CODES: dict[str, FailureClass] = {
    "insufficient_quota": _PERMANENT,  # waiting does not fill an account
    "billing_hard_limit_reached": _PERMANENT,
    "billing_not_active": _PERMANENT,
    "overloaded_error": _CAPACITY,
    "rate_limit_error": _RATE_LIMIT,
    "rate_limit_exceeded": _RATE_LIMIT,
}

# Keyed by top-level package and class name: libraries move their classes between modules, not between packages.
NARROW_TYPES: dict[str, FailureClass] = {
    "pydantic_ai.ModelQuotaExceededError": _PERMANENT,
    "pydantic_ai.ModelRateLimitError": _RATE_LIMIT,
    "pydantic_ai.ModelOverloadedError": _CAPACITY,
    "pydantic_ai.ModelUnavailableError": _TRANSIENT,
    "pydantic_ai.ModelServerError": _TRANSIENT,
    "pydantic_ai.ModelTimeoutError": _TIMEOUT,
    "pydantic_ai.ModelRequestTimeout": _TIMEOUT,
    "pydantic_ai.ModelConnectionError": _TRANSIENT,
    "pydantic_ai.ModelRequestRejectedError": _PERMANENT,
    **{
        f"{package}.{name}": kind
        for package in ("httpx", "httpx2")
        for name, kind in (
            ("TimeoutException", _TIMEOUT),
            ("NetworkError", _TRANSIENT),
            ("RemoteProtocolError", _TRANSIENT),
            ("ProxyError", _TRANSIENT),
        )
    },
    "openai.APITimeoutError": _TIMEOUT,
    "openai.APIConnectionError": _TRANSIENT,
    "anthropic.APITimeoutError": _TIMEOUT,
    "anthropic.APIConnectionError": _TRANSIENT,
    "aiohttp.ServerTimeoutError": _TIMEOUT,
    "aiohttp.ClientConnectionError": _TRANSIENT,
    "requests.Timeout": _TIMEOUT,
    "requests.ConnectionError": _TRANSIENT,
    "requests.ChunkedEncodingError": _TRANSIENT,
    "asyncio.IncompleteReadError": _TRANSIENT,
    "http.IncompleteRead": _TRANSIENT,
    "socket.gaierror": _TRANSIENT,  # its numbers are not errnos
    "paceline.Problem": _PERMANENT,
    "msgspec.MsgspecError": _PERMANENT,
}

STATUSES: dict[int, FailureClass] = {408: _TRANSIENT, 429: _RATE_LIMIT, 529: _CAPACITY}

TRANSIENT_ERRNOS: frozenset[int] = frozenset(
    number
    for name in (
        "ECONNRESET",
        "ECONNREFUSED",
        "ECONNABORTED",
        "ENOTCONN",
        "ESHUTDOWN",
        "EPIPE",
        "ETIMEDOUT",
        "EHOSTUNREACH",
        "EHOSTDOWN",
        "ENETUNREACH",
        "ENETDOWN",
        "ENETRESET",
        "EADDRNOTAVAIL",
        "ENOBUFS",
        "EMFILE",
        "ENFILE",
        "EAGAIN",
        "EWOULDBLOCK",
        "EBUSY",
        "EINTR",
    )
    if (number := getattr(errno, name, None)) is not None
)

WIDE_TYPES: dict[str, FailureClass] = {
    "builtins.TimeoutError": _TIMEOUT,
    "builtins.ConnectionError": _TRANSIENT,
    "builtins.BlockingIOError": _TRANSIENT,
    "builtins.InterruptedError": _TRANSIENT,
    "urllib.URLError": _TRANSIENT,
    "builtins.FileNotFoundError": _PERMANENT,
    "builtins.FileExistsError": _PERMANENT,
    "builtins.IsADirectoryError": _PERMANENT,
    "builtins.NotADirectoryError": _PERMANENT,
    "builtins.PermissionError": _PERMANENT,
    **{
        f"builtins.{name}": _PERMANENT  # the same code on the same input fails in the same way
        for name in (
            "ValueError",
            "TypeError",
            "LookupError",
            "AttributeError",
            "NameError",
            "ImportError",
            "SyntaxError",
            "AssertionError",
            "ArithmeticError",
            "NotImplementedError",
            "RecursionError",
        )
    },
}
"""Types so wide that an HTTP status or an errno on the same exception says more than they do."""


def classify(facts: FailureFacts) -> FailureClass:
    """The class of a failure: the first of these that knows it, else unknown."""
    return (
        facts.explicit
        or _first(CODES, facts.codes)
        or _first(NARROW_TYPES, map(_key, facts.types))
        or _by_status(facts.status)
        or _by_errno(facts)
        or _first(WIDE_TYPES, map(_key, facts.types))
        or FailureClass.UNKNOWN
    )


def _first(table: dict[str, FailureClass], keys: Iterable[str]) -> FailureClass | None:
    return next((table[key] for key in keys if key in table), None)


def _key(dotted: str) -> str:
    return f"{dotted.partition('.')[0]}.{dotted.rpartition('.')[2]}"


def _by_status(status: int | None) -> FailureClass | None:
    if status is None or not 400 <= status < 600:
        return None
    return STATUSES.get(status, _PERMANENT if status < 500 else _TRANSIENT)


def _by_errno(facts: FailureFacts) -> FailureClass | None:
    return _TRANSIENT if facts.errno in TRANSIENT_ERRNOS and "builtins.OSError" in facts.types else None


_NAME_BYTES = 200
_MOST_MEMBERS = 1_000
_GRAVITY = (
    FailureClass.RATE_LIMIT,
    FailureClass.CAPACITY,
    FailureClass.TRANSIENT,
    FailureClass.TIMEOUT,
    FailureClass.UNKNOWN,
    FailureClass.PERMANENT,
)


def facts_of(exc: BaseException) -> FailureFacts:
    """What an exception tells about itself; never raises, whatever the exception does.

    Of an exception group the gravest member speaks: if one of them cannot be cured, neither can the group.
    """
    members = map(_facts_of_one, _safely(_members, exc, [exc]))
    return max(members, key=lambda facts: (_GRAVITY.index(classify(facts)), facts.retry_after or 0))


def _members(exc: BaseException) -> list[BaseException]:
    """The exceptions inside a group, in order; groups can be nested deeper than the call stack."""
    members: list[BaseException] = []
    waiting = [exc]
    while waiting and len(members) < _MOST_MEMBERS:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup) and _safely(_explicit, one, None) is None:
            waiting.extend(reversed(one.exceptions))
        else:
            members.append(one)
    return members


def _facts_of_one(exc: BaseException) -> FailureFacts:
    types: tuple[str, ...] = _safely(_types, exc, ("builtins.BaseException",))
    return FailureFacts(
        types=types,
        message=_safely(_message, exc, f"<unprintable {types[0].rpartition('.')[2]}>"),
        status=_safely(_status, exc, None),
        errno=_safely(_errno, exc, None),
        retry_after=_safely(_retry_after, exc, None),
        explicit=_safely(_explicit, exc, None),
        codes=_safely(_codes, exc, ()),
    )


def _safely(read: Callable[[BaseException], T], exc: BaseException, otherwise: T) -> T:
    try:
        return read(exc)
    except BaseException:  # an attribute or __str__ of foreign code may raise anything, SystemExit included
        return otherwise


def _types(exc: BaseException) -> tuple[str, ...]:
    return tuple(storable(f"{kind.__module__}.{kind.__qualname__}", _NAME_BYTES) for kind in type(exc).__mro__[:-1])


def _message(exc: BaseException) -> str:
    return storable(str.__str__(str(exc)))


def _explicit(exc: BaseException) -> FailureClass | None:
    claimed: object = getattr(exc, "failure_class", None)
    return FailureClass(claimed) if isinstance(claimed, str) else None


def _status(exc: BaseException) -> int | None:
    response: object = getattr(exc, "response", None)
    candidates: tuple[object, ...] = (
        getattr(exc, "status_code", None),
        getattr(exc, "status", None),
        getattr(response, "status_code", None),
        getattr(response, "status", None),
        getattr(exc, "code", None) if isinstance(exc, Exception) else None,  # of SystemExit it is another number
    )
    return next((int(n) for n in candidates if isinstance(n, int) and 400 <= n < 600), None)


def _errno(exc: BaseException) -> int | None:
    number: object = getattr(exc, "errno", None)
    return int(number) if isinstance(number, int) else None


def _codes(exc: BaseException) -> tuple[str, ...]:
    body: object = getattr(exc, "body", None)
    error: object = body.get("error") if isinstance(body, dict) else None
    found: list[object] = [getattr(exc, "code", None), getattr(exc, "type", None)]
    found += [part.get(name) for part in (body, error) if isinstance(part, dict) for name in ("code", "type")]
    return tuple(dict.fromkeys(storable(code, _NAME_BYTES) for code in found if isinstance(code, str)))


def _retry_after(exc: BaseException) -> float | None:
    told = _seconds(getattr(exc, "retry_after", None))
    if told is not None:
        return told
    headers: object = getattr(exc, "headers", None) or getattr(getattr(exc, "response", None), "headers", None)
    milliseconds = _seconds(_header(headers, "Retry-After-Ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = _header(headers, "Retry-After")
    seconds = _seconds(value)
    return _seconds_between(_header(headers, "Date"), value) if seconds is None else seconds


def _header(headers: object, name: str) -> object:
    get = getattr(headers, "get", None)
    return None if get is None else get(name) or get(name.lower())


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_between(sent: object, until: object) -> float | None:
    """A Retry-After that is a date, measured by the clock of the one who sent it."""
    if not isinstance(sent, str) or not isinstance(until, str):
        return None
    return _seconds(_http_date(until) - _http_date(sent))


def _http_date(text: str) -> datetime:
    return datetime.strptime(text.strip().removesuffix("GMT") + "+0000", "%a, %d %b %Y %H:%M:%S %z")
