"""JSON that a person typed: whatever parsers disagree about is refused, with its line and column."""

import json
import re
from math import isfinite
from typing import NamedTuple, NoReturn

from paceline.core.names import shown
from paceline.core.problem import Problem
from paceline.errors import UsageError
from paceline.payloads.encoding import (
    DEEPEST_NESTING,
    LARGEST_INT,
    LARGEST_PAYLOAD,
    SMALLEST_INT,
    Unfit,
    encode,
    sound_text,
    too_large,
)
from paceline.payloads.wording import complaint, place

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)


class _Fault(NamedTuple):
    at: int
    wrong: str
    found: str

    def problem(self, text: str, where: str) -> Problem:
        line, column = text.count("\n", 0, self.at) + 1, self.at - text.rfind("\n", 0, self.at)
        spot = place(where, f"line {line}, column {column}")
        return UsageError(code="bad_json", what=f"this is not JSON: {self.wrong}", where=spot, found=self.found)


def decode_text_from_person(text: str | bytes, *, where: str = "", limit: int = LARGEST_PAYLOAD) -> object:
    """The plain value of what a person typed; duplicate keys, NaN, huge numbers and half characters are refused."""
    if len(text) > limit:
        raise too_large(f"{len(text):,} bytes", where, "input", limit)
    if isinstance(text, bytes):
        text = _from_utf8(text, where)
    text = text.removeprefix("\ufeff")
    try:
        value: object = _careful.decode(text)
        encode(value, where=where)
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + 20]
        fault = _scan(text) or _Fault(error.pos, error.msg, shown(rest) if rest else "the end of the text")
    except (ValueError, RecursionError, Problem) as error:
        fault = _scan(text) or _Fault(0, complaint(error), shown(text[:20]))
    else:
        return value
    raise fault.problem(text, where)


def _from_utf8(text: bytes, where: str) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            code="bad_encoding",
            what="this is not UTF-8 text",
            where=where,
            found=f"byte 0x{text[error.start]:02x} at offset {error.start}",
            todo="save it as UTF-8",
        ) from None


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _int64(digits: str) -> int:
    if len(digits) > 20 or not SMALLEST_INT <= (number := int(digits)) <= LARGEST_INT:
        raise ValueError("an integer does not fit into 64 bits")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_careful = json.JSONDecoder(
    object_pairs_hook=_no_twins, parse_int=_int64, parse_float=_finite, parse_constant=_no_constant
)


def _scan(text: str) -> _Fault | None:
    """The first thing that parsers disagree about, and its place. Syntax is left to the parser."""
    open_keys: list[set[str] | None] = []  # one entry for each open bracket: the keys seen, or None in a list
    wants_key = False
    for token in _TOKEN.finditer(text):
        word, at = token.group(), token.start()
        if word in "{[":
            open_keys.append(set() if word == "{" else None)
            if len(open_keys) > DEEPEST_NESTING:
                return _Fault(at, "it is nested too deeply", f"more than {DEEPEST_NESTING} levels")
        elif word in "}]":
            del open_keys[-1:]
        elif word[0] == '"':
            said = _unquoted(word)
            keys = open_keys[-1] if open_keys and wants_key else None
            if keys is not None and said in keys:
                return _Fault(at, "a key appears twice", shown(said))
            if keys is not None:
                keys.add(said)
            if (wrong := _fault_in_text(said)) is not None:
                return _Fault(at, *wrong)
        elif word not in ":," and (wrong := _fault_in_number(word)) is not None:
            return _Fault(at, *wrong)
        wants_key = word in "{,"
    return None


def _fault_in_number(word: str) -> tuple[str, str] | None:
    try:
        _careful.decode(word)
    except json.JSONDecodeError:
        return None
    except ValueError as error:
        return str(error), word if len(word) < 40 else f"{len(word):,} characters"
    return None


def _unquoted(word: str) -> str:
    try:
        return str(json.loads(word))
    except ValueError:
        return word


def _fault_in_text(text: str) -> tuple[str, str] | None:
    try:
        sound_text(text, None)
    except Unfit as unfit:
        return f"it {unfit.wrong}", unfit.found
    return None
