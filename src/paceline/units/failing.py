"""How a failure is written down: one small JSON object, the same for every way to fail."""

import msgspec


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """What is kept of a failure."""

    type: str
    message: str
    failure_class: str = "permanent"
    trace: str | None = None
    chain: tuple[int, ...] = ()
    length: int = 0
    cause: str = ""


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(ErrorBody)


def write_error(error: ErrorBody) -> str:
    """The error as text."""
    return _encode(error).decode()


def read_error(body: str | None) -> ErrorBody:
    """The error from its text; a missing one is an empty one."""
    return _decoder.decode(body) if body else ErrorBody(type="", message="")


class Summary(msgspec.Struct, omit_defaults=True):
    """What the event log says about a failure; the whole of it stands with the job's result."""

    reason: str | None = None
    type: str = ""
    message: str = ""
    due_at: int | None = None


def summary(body: str, reason: str | None, due_at: int | None) -> str:
    """A failure in a line for the event log."""
    error = read_error(body) if body else read_error(None)
    return _encode(Summary(reason, error.type, error.message[:300], due_at)).decode()
