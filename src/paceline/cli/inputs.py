"""What a person gives a job: JSON, `@file`, `-` for standard input, or plain text."""

import sys
from collections.abc import Callable
from typing import BinaryIO

from paceline.core.names import shown
from paceline.errors import NotFound, UsageError
from paceline.payloads import LARGEST_PAYLOAD, decode_text_from_person

Fits = Callable[[object], object]
"""Raises where a value is not what the agent takes."""

HELP = "JSON, @file, - for standard input, or plain text"


def read_input(word: str | None, fits: Fits | None = None) -> object:
    """The value that INPUT stands for; what looks like JSON but fits only as text is text."""
    if word is None:
        return None
    if word == "-":
        return _value(_standard_input(), "standard input", False, fits)
    if word.startswith("@@"):
        return word[1:]
    if word.startswith("@"):
        return _value(_file(word[1:]), word[1:], word.endswith(".json"), fits)
    return _value(word, "INPUT", False, fits)


def _value(text: str | bytes, where: str, must_be_json: bool, fits: Fits | None) -> object:
    try:
        value = decode_text_from_person(text, where=where)
    except UsageError as error:
        if error.code != "bad_json" or must_be_json:
            raise
        plain = _plain(text)
        if plain.lstrip()[:1] == "{":
            error.todo = "correct it, or write text that begins with a brace as a JSON string"
            raise
        return plain
    return value if fits is None or _passes(fits, value) or not _passes(fits, _plain(text)) else _plain(text)


def _plain(text: str | bytes) -> str:
    """The text itself, without the line end that files and `echo` add."""
    return (text if isinstance(text, str) else text.decode()).removesuffix("\n")


def _passes(fits: Fits, value: object) -> bool:
    try:
        fits(value)
    except UsageError:
        return False
    return True


def _standard_input() -> bytes:
    if sys.stdin.isatty():
        sys.stderr.write("reading the input from the terminal; Ctrl-D ends it\n")
    return _at_most(sys.stdin.buffer)


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return _at_most(file)
    except FileNotFoundError:
        raise NotFound(
            code="no_such_file", what="the file of the input does not exist", where=shown(path),
            todo="for text that begins with @ write @@",
        ) from None  # fmt: skip
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            code="unreadable", what="the file of the input cannot be read", where=shown(path), found=said
        ) from None


def _at_most(file: BinaryIO) -> bytes:
    """One byte more than is allowed is enough to refuse it."""
    return file.read(LARGEST_PAYLOAD + 1)
