"""Which class a failure belongs to, and how facts are read from exceptions that may be hostile."""

import asyncio
import errno
import json
import socket
import sys
import urllib.error
from email.message import Message
from http.client import RemoteDisconnected
from itertools import count
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.failures import NARROW_TYPES, FailureClass, FailureFacts, classify, facts_of
from paceline.core.problem import Problem

RATE_LIMIT, CAPACITY, TIMEOUT = FailureClass.RATE_LIMIT, FailureClass.CAPACITY, FailureClass.TIMEOUT
TRANSIENT, PERMANENT, UNKNOWN = FailureClass.TRANSIENT, FailureClass.PERMANENT, FailureClass.UNKNOWN


class ProviderError(Exception):
    """What clients of services raise: attributes of every kind on one exception."""

    def __init__(self, message: str = "", **attributes: object) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            setattr(self, name, value)


class Reply:
    """A response as HTTP libraries hang it on their exceptions."""

    def __init__(self, status_code: int, **headers: str) -> None:
        self.status_code = status_code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Shouting(ValueError):
    """A subclass of a subclass is found through its bases."""


EXCEPTIONS: list[tuple[BaseException, FailureClass]] = [
    (TimeoutError(), TIMEOUT),
    (ConnectionResetError(errno.ECONNRESET, "reset"), TRANSIENT),
    (ConnectionRefusedError(), TRANSIENT),
    (BrokenPipeError(), TRANSIENT),
    (RemoteDisconnected("gone"), TRANSIENT),
    (asyncio.IncompleteReadError(b"", 5), TRANSIENT),
    (socket.gaierror(socket.EAI_AGAIN, "try again"), TRANSIENT),
    (urllib.error.URLError("unreachable"), TRANSIENT),
    (urllib.error.HTTPError("http://x", 503, "no", Message(), None), TRANSIENT),
    (urllib.error.HTTPError("http://x", 404, "no", Message(), None), PERMANENT),
    (OSError(errno.ETIMEDOUT, "timed out"), TRANSIENT),
    (OSError(errno.EHOSTUNREACH, "no route"), TRANSIENT),
    (OSError(errno.ENETUNREACH, "no network"), TRANSIENT),
    (OSError(errno.EBUSY, "busy"), TRANSIENT),
    (BlockingIOError(errno.EAGAIN, "again"), TRANSIENT),
    (OSError(errno.ENOSPC, "disk full"), UNKNOWN),
    (OSError("no number"), UNKNOWN),
    (FileNotFoundError(errno.ENOENT, "gone"), PERMANENT),
    (PermissionError(errno.EACCES, "no"), PERMANENT),
    (ValueError("bad"), PERMANENT),
    (Shouting(), PERMANENT),
    (TypeError(), PERMANENT),
    (KeyError("x"), PERMANENT),
    (IndexError(), PERMANENT),
    (ZeroDivisionError(), PERMANENT),
    (AssertionError(), PERMANENT),
    (ModuleNotFoundError(), PERMANENT),
    (json.JSONDecodeError("bad", "{", 0), PERMANENT),
    (Problem(code="bad_name", what="no"), PERMANENT),
    (RuntimeError("timeout 429 connection reset overloaded"), UNKNOWN),
    (Exception("503 Service Unavailable"), UNKNOWN),
    (KeyboardInterrupt(), UNKNOWN),
    (SystemExit(429), UNKNOWN),
    (ProviderError(code=429), RATE_LIMIT),
    (ProviderError(errno=errno.ECONNRESET), UNKNOWN),
    (ProviderError(failure_class="transient"), TRANSIENT),
    (ProviderError(failure_class=CAPACITY, status_code=400), CAPACITY),
    (ProviderError(failure_class="nonsense", status_code=400), PERMANENT),
    (ProviderError(status_code=429, code="insufficient_quota"), PERMANENT),
    (ProviderError(status_code=429, type="insufficient_quota"), PERMANENT),
    (ProviderError(status_code=429, code="rate_limit_exceeded"), RATE_LIMIT),
    (ProviderError(status_code=429, body={"error": {"code": "insufficient_quota"}}), PERMANENT),
    (ProviderError(body={"type": "error", "error": {"type": "overloaded_error"}}), CAPACITY),
    (ProviderError(response=Reply(503)), TRANSIENT),
    (ProviderError(status="503"), UNKNOWN),
    (ProviderError(status_code=True), UNKNOWN),
]

STATUSES = [
    (200, UNKNOWN),
    (302, UNKNOWN),
    (400, PERMANENT),
    (401, PERMANENT),
    (402, PERMANENT),
    (403, PERMANENT),
    (404, PERMANENT),
    (408, TRANSIENT),
    (409, PERMANENT),
    (422, PERMANENT),
    (429, RATE_LIMIT),
    (500, TRANSIENT),
    (502, TRANSIENT),
    (503, TRANSIENT),
    (504, TRANSIENT),
    (529, CAPACITY),
    (599, TRANSIENT),
    (600, UNKNOWN),
    (1006, UNKNOWN),
]

MODEL_ERRORS = [
    (["ModelRateLimitError", "ModelHTTPError", "ModelAPIError"], 429, RATE_LIMIT),
    (["ModelQuotaExceededError", "ModelHTTPError", "ModelAPIError"], 429, PERMANENT),
    (["ModelQuotaExceededError", "ModelHTTPError", "ModelAPIError"], 402, PERMANENT),
    (["ModelOverloadedError", "ModelUnavailableError", "ModelHTTPError"], 529, CAPACITY),
    (["ModelOverloadedError", "ModelUnavailableError", "ModelHTTPError"], 503, CAPACITY),
    (["ModelUnavailableError", "ModelHTTPError"], 503, TRANSIENT),
    (["ModelServerError", "ModelHTTPError"], 500, TRANSIENT),
    (["ModelConnectionError", "ModelAPIError"], None, TRANSIENT),
    (["ModelTimeoutError", "ModelConnectionError", "ModelAPIError"], None, TIMEOUT),
    (["ModelRequestTimeout", "ModelAPIError"], 408, TIMEOUT),
    (["ModelAuthError", "ModelRequestRejectedError", "ModelHTTPError"], 401, PERMANENT),
    (["ModelHTTPError", "ModelAPIError"], 429, RATE_LIMIT),
    (["ModelHTTPError", "ModelAPIError"], 500, TRANSIENT),
    (["UnexpectedModelBehavior", "AgentRunError"], None, UNKNOWN),
]


@pytest.mark.parametrize("exc,expected", EXCEPTIONS, ids=count())
def test_an_exception_is_classified_by_what_it_is(exc: BaseException, expected: FailureClass) -> None:
    assert classify(facts_of(exc)) is expected


@pytest.mark.parametrize("status,expected", STATUSES)
def test_an_http_status_tells_the_class(status: int, expected: FailureClass) -> None:
    assert classify(facts_of(ProviderError(status_code=status))) is expected
    assert classify(FailureFacts(types=("builtins.Exception",), status=status)) is expected


@pytest.mark.parametrize("names,status,expected", MODEL_ERRORS, ids=count())
def test_errors_of_model_providers_are_known_by_type(
    names: list[str], status: int | None, expected: FailureClass
) -> None:
    types = tuple(f"pydantic_ai.exceptions.{name}" for name in names)
    assert classify(FailureFacts((*types, "builtins.RuntimeError"), status=status)) is expected


@pytest.mark.parametrize("module", ["pydantic_ai", "pydantic_ai.exceptions", "pydantic_ai._errors.http"])
def test_a_type_is_known_wherever_its_library_keeps_it(module: str) -> None:
    assert classify(FailureFacts((f"{module}.ModelRateLimitError",))) is RATE_LIMIT
    assert classify(FailureFacts((f"other.{module}.ModelRateLimitError",))) is UNKNOWN


def test_a_subclass_is_what_its_base_is() -> None:
    found = {name: classify(FailureFacts(("app.errors.Own", name, "builtins.Exception"))) for name in NARROW_TYPES}
    assert found == NARROW_TYPES


def test_an_error_number_counts_only_on_errors_of_the_operating_system() -> None:
    types = ("builtins.OSError", "builtins.Exception")
    assert classify(FailureFacts(types, errno=errno.EPIPE)) is TRANSIENT
    assert classify(FailureFacts(("app.Error",), errno=errno.EPIPE)) is UNKNOWN


def test_a_status_says_more_than_a_wide_type() -> None:
    assert classify(FailureFacts(("app.Unavailable", "builtins.ValueError"), status=503)) is TRANSIENT


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60) | st.sampled_from(["rate limit 429", "timed out", "ECONNRESET", "overloaded_error"]))
def test_the_words_of_a_message_decide_nothing(message: str) -> None:
    assert classify(facts_of(RuntimeError(message))) is UNKNOWN


def test_facts_name_the_type_and_its_bases() -> None:
    facts = facts_of(Shouting("no"))
    assert [name.rpartition(".")[2] for name in facts.types] == ["Shouting", "ValueError", "Exception", "BaseException"]
    assert facts.types[1:] == ("builtins.ValueError", "builtins.Exception", "builtins.BaseException")
    assert facts.message == "no"


def test_facts_hold_status_error_number_and_codes() -> None:
    facts = facts_of(ProviderError("no", status=502, errno=104, code="c", type="t", body={"type": "t", "code": "d"}))
    assert (facts.status, facts.errno, facts.codes) == (502, 104, ("c", "t", "d"))
    plain = facts_of(Exception())
    assert (plain.status, plain.errno, plain.retry_after, plain.explicit, plain.codes) == (None, None, None, None, ())


DATE, LATER = "Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:29:30 GMT"


@pytest.mark.parametrize(
    "exc,seconds",
    [
        (ProviderError(retry_after=2.5), 2.5),
        (ProviderError(retry_after="7"), 7),
        (ProviderError(retry_after=0), 0),
        (ProviderError(retry_after=-1), None),
        (ProviderError(retry_after=float("nan")), None),
        (ProviderError(retry_after=10**400), None),
        (ProviderError(retry_after="soon"), None),
        (ProviderError(retry_after=True), None),
        (ProviderError(headers={"retry-after": "12"}), 12),
        (ProviderError(headers={"retry-after": 12}), 12),
        (ProviderError(headers={"retry-after": "12", "retry-after-ms": "1500"}), 1.5),
        (ProviderError(response=Reply(429, Retry_After="30")), 30),
        (ProviderError(response=Reply(429, Retry_After=LATER, Date=DATE)), 90),
        (ProviderError(response=Reply(429, Retry_After=DATE, Date=LATER)), None),
        (ProviderError(response=Reply(429, Retry_After=LATER)), None),
        (ProviderError(response=Reply(429, Retry_After="gibberish", Date=DATE)), None),
        (ProviderError(response=Reply(429)), None),
    ],
    ids=count(),
)
def test_the_wait_that_a_server_asked_for_is_read_in_seconds(exc: BaseException, seconds: float | None) -> None:
    assert facts_of(exc).retry_after == seconds


class Mute(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Deadly(Exception):
    """Looking at it would end the process."""

    def __str__(self) -> str:
        raise SystemExit(1)

    def __getattribute__(self, name: str) -> object:
        raise KeyboardInterrupt(name)


class Untrue(Exception):
    """Its text is no text."""

    def __str__(self) -> str:
        return cast(str, 5)


class Trick(str):
    """Text that fights back."""

    def __getitem__(self, key: object) -> str:
        raise RuntimeError("no slice")


class Tricky(Exception):
    """Its text is a subclass of text."""

    def __str__(self) -> str:
        return Trick("tricky")


class Closed(ExceptionGroup[Exception]):
    """A group that does not let anybody in."""

    @property
    def exceptions(self) -> tuple[Exception, ...]:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    "exc,message",
    [
        (Mute(), "<unprintable Mute>"),
        (Deadly(), "<unprintable Deadly>"),
        (Untrue(), "<unprintable Untrue>"),
        (Tricky(), "tricky"),
        (Closed("closed", [ValueError()]), "closed (1 sub-exception)"),
        (Exception("a\0b\ud800c"), "a\ufffdb\ufffdc"),
        (Exception(), ""),
    ],
    ids=count(),
)
def test_a_hostile_exception_is_read_without_harm(exc: BaseException, message: str) -> None:
    facts = facts_of(exc)
    assert facts.message == message
    assert classify(facts) is UNKNOWN


def test_a_huge_message_is_cut_at_sixteen_kibibytes() -> None:
    message = facts_of(Exception("€" * 1_000_000)).message
    assert 16_000 < len(message.encode()) <= 16 * 1024
    assert message.startswith("€€€")
    assert message.endswith("(cut)")


def test_the_gravest_member_speaks_for_a_group() -> None:
    slow = ProviderError("slow", status_code=429, retry_after=5)
    slower = ProviderError("slower", status_code=429, retry_after=50)
    lost = ConnectionResetError("lost")
    wrong = ValueError("wrong")
    assert facts_of(ExceptionGroup("g", [lost])).message == "lost"
    assert facts_of(ExceptionGroup("g", [slow, slower])).retry_after == 50
    assert classify(facts_of(ExceptionGroup("g", [slow, lost]))) is TRANSIENT
    assert classify(facts_of(ExceptionGroup("g", [lost, ExceptionGroup("h", [wrong, slow])]))) is PERMANENT


def test_a_group_that_states_its_class_speaks_for_itself() -> None:
    group = ExceptionGroup("all three mirrors", [ValueError()])
    group.failure_class = "transient"  # type: ignore[attr-defined]
    facts = facts_of(group)
    assert classify(facts) is TRANSIENT
    assert facts.message.startswith("all three mirrors")


def test_a_group_nested_deeper_than_the_stack_is_read() -> None:
    exc: Exception = ConnectionResetError("deep")
    for _ in range(2 * sys.getrecursionlimit()):
        exc = ExceptionGroup("g", [exc])
    assert facts_of(exc).message == "deep"
