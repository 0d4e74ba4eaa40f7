"""Values to JSON text and back, refusing whatever would not come back as it went in."""

from math import isfinite
from types import NoneType
from typing import Any

import msgspec

from paceline.core.names import shown
from paceline.core.problem import Problem
from paceline.payloads.models import builtins_of, is_model
from paceline.payloads.wording import Trail, complaint, path_of, place, refusal, type_name

LARGEST_PAYLOAD = 10_000_000
DEEPEST_NESTING = 200
SMALLEST_INT, LARGEST_INT = -(2**63), 2**63 - 1
WHAT_IS_JSON = (
    "text, numbers, true, false, null, lists, objects with text keys, dataclasses, msgspec structs, pydantic models"
)

_WHAT_TO_DO = {
    "bytes": "turn it into text, for example with base64",
    "set": "use a list",
    "frozenset": "use a list",
    "generator": "use a list",
    "datetime": "use .isoformat()",
    "date": "use .isoformat()",
    "coroutine": "await it, or write the function as async def",
    "nan": "use None, or leave it out",
    "inf": "use None, or leave it out",
    "-inf": "use None, or leave it out",
}
_ALWAYS_SOUND = frozenset({str, bool, NoneType})
_CONTAINERS = frozenset({dict, list, tuple})
_NUL_IN_JSON = b"\\u0000"
_dump = msgspec.json.Encoder().encode
_dump_in_order = msgspec.json.Encoder(order="deterministic").encode
_load = msgspec.json.Decoder().decode


class Unfit(Exception):
    """A part of a value that JSON does not have, and the way to it."""

    def __init__(self, wrong: str, trail: Trail, found: str, allowed: str, todo: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.trail = trail
        self.found = found
        self.allowed = allowed
        self.todo = todo or _WHAT_TO_DO.get(found, "")

    def problem(self, where: str, kind: str) -> Problem:
        return refusal(
            kind,
            "not_json",
            what=f"the {kind} {self.wrong}",
            where=place(where, path_of(self.trail)),
            found=self.found,
            allowed=self.allowed,
            todo=self.todo,
        )


def encode(value: object, *, where: str = "", kind: str = "input", limit: int = LARGEST_PAYLOAD) -> str:
    """The JSON text of a value; `kind` begins the error codes (`input_not_json`, `result_too_large`)."""
    if type(value) is int and SMALLEST_INT <= value <= LARGEST_INT:
        return str(value)
    if value is None:
        return "null"
    most = limit // 2 + 1  # no part takes less than two bytes
    try:
        text = _text_of(value, most)
    except Unfit as unfit:
        raise unfit.problem(where, kind) from None
    except _TooManyParts:
        raise too_large(f"more than {most:,} parts", where, kind, limit) from None
    except RecursionError:
        raise too_deep(None).problem(where, kind) from None
    if len(text) > limit:
        raise too_large(f"{len(text):,} bytes", where, kind, limit)
    return text.decode()


def decode(text: str | bytes, *, where: str = "") -> object:
    """The plain value of JSON text that a program wrote."""
    try:
        return _load(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Problem(code="bad_json", what="this is not JSON", where=where, found=complaint(error)) from None


def canonical(text: str) -> str:
    """The same JSON with its keys in order and without spaces: equal values give equal text."""
    return _dump_in_order(decode(text)).decode()


def too_large(found: str, where: str, kind: str, limit: int) -> Problem:
    """A payload over the limit."""
    return refusal(
        kind,
        "too_large",
        what=f"the {kind} is too large",
        where=where,
        found=found,
        allowed=f"{limit:,} bytes of JSON",
        todo="keep it in a file or a table of yours and pass its name",
    )


def too_deep(trail: Trail) -> Unfit:
    """A value with more levels than anybody means."""
    return Unfit("is nested too deeply, or contains itself", trail, "more levels", f"{DEEPEST_NESTING} levels")


def sound_text(text: str, trail: Trail) -> str:
    """The text itself, when every store and every parser can keep it."""
    plain = str.__str__(text)
    if "\0" in plain:
        raise Unfit("has a NUL character in its text", trail, "U+0000", "text without it")
    try:
        plain.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(plain[error.start]):04X} at character {error.start}"
        raise Unfit("has half of a surrogate pair in its text", trail, half, "complete Unicode text") from None
    return plain


class _TooManyParts(Exception):
    pass


def _text_of(value: object, most: int) -> bytes:
    """The fast way for plain values that are sound as they are; the careful way, which knows places, for the rest."""
    if _is_sound(value, most):
        try:
            text = _dump(value)
        except UnicodeEncodeError:
            text = _NUL_IN_JSON
        if _NUL_IN_JSON not in text:
            return text
    return _dump(_Flattener(most).flatten(value, None, DEEPEST_NESTING))


def _is_sound(value: object, most: int) -> bool:
    """Whether a value is plain JSON, its text aside. Goes level by level, so that depth and cycles end it."""
    level: list[Any] = [(value,)]
    for _ in range(DEEPEST_NESTING + 1):
        below: list[Any] = []
        for container in level:
            items = container
            if type(container) is dict:
                items = container.values()
                for key in container:
                    if type(key) is not str:
                        return False
            for item in items:
                kind = type(item)
                if kind in _ALWAYS_SOUND:
                    continue
                if kind in _CONTAINERS:
                    below.append(item)
                elif kind is int:
                    if not SMALLEST_INT <= item <= LARGEST_INT:
                        return False
                elif kind is not float or not isfinite(item):
                    return False
        if not below:
            return True
        most -= len(below)
        if most < 0:
            raise _TooManyParts
        level = below
    return False


class _Flattener:
    """Rebuilds a value from plain parts, opening typed models, and names the place of the first part that is none."""

    def __init__(self, most: int) -> None:
        self.parts_left = most

    def flatten(self, value: object, trail: Trail, room: int) -> object:
        self.parts_left -= 1
        if self.parts_left < 0:
            raise _TooManyParts
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return sound_text(value, trail)
        if isinstance(value, int):
            return _sound_int(value, trail)
        if isinstance(value, float):
            return _sound_float(value, trail)
        if is_model(type(value)):
            return self.flatten(_fields_of(value, trail), trail, room)
        if not isinstance(value, dict | list | tuple):
            raise Unfit("is not JSON", trail, type_name(type(value)), WHAT_IS_JSON)
        if room == 0:
            raise too_deep(trail)
        if isinstance(value, dict):
            return {_sound_key(key, trail): self.flatten(value[key], (trail, key), room - 1) for key in value}
        return [self.flatten(item, (trail, index), room - 1) for index, item in enumerate(value)]


def _fields_of(model: object, trail: Trail) -> object:
    try:
        return builtins_of(model)
    except RecursionError:
        raise too_deep(trail) from None
    except Exception as error:
        found = f"{type_name(type(model))} ({complaint(error)})"
        raise Unfit("holds something that is not JSON", trail, found, WHAT_IS_JSON) from None


def _sound_key(key: object, trail: Trail) -> str:
    if isinstance(key, str):
        return sound_text(key, (trail, key))
    raise Unfit("has a key that is not text", (trail, shown(key)), type_name(type(key)), "text keys")


def _sound_int(number: int, trail: Trail) -> int:
    plain = int.__int__(number)
    if SMALLEST_INT <= plain <= LARGEST_INT:
        return plain
    size = f"an integer of {plain.bit_length()} bits"
    raise Unfit("has an integer that is too large", trail, size, "64 bits with sign", "send it as text")


def _sound_float(number: float, trail: Trail) -> float:
    plain = float.__float__(number)
    if isfinite(plain):
        return plain
    raise Unfit("has a number that JSON does not have", trail, str(plain), "finite numbers")
