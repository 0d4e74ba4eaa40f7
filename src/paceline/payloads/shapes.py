"""Shapes: what an annotation asks for, compiled once and applied to plain JSON values."""

import re
from dataclasses import dataclass
from types import NoneType
from typing import Any

from paceline.core.problem import Problem
from paceline.errors import UsageError
from paceline.payloads.encoding import decode, encode
from paceline.payloads.models import builtins_of, check_annotation, typed
from paceline.payloads.wording import complaint, place, refusal, type_name

_TAKEN_AS_THEY_ARE = frozenset({int, str, bool, float, NoneType, dict, list})
_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<bound>[^,]*)(?:, got `(?P<found>[^`]+)`)?")


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotation. Strict: "21" is no int, and neither is true."""

    annotation: Any
    anything: bool
    exact: type | None

    def convert(self, plain: object, *, where: str = "", path: str = "$", kind: str = "input") -> object:
        """The typed value, or a Problem that says where, what stands there and what was expected."""
        if self.anything or type(plain) is self.exact:
            return plain
        try:
            return typed(plain, self.annotation)
        except Exception as error:
            raise _misfit(error, where, path, kind) from None

    def encode(self, value: object, *, where: str = "", kind: str = "input") -> str:
        """The JSON text of a value that fits; a date or a set is taken when the annotation restores exactly it."""
        text = self._text_of(value, where, kind)
        if not self.anything and type(value) is not self.exact:
            self.convert(decode(text), where=where, kind=kind)
        return text

    def _text_of(self, value: object, where: str, kind: str) -> str:
        try:
            return encode(value, where=where, kind=kind)
        except Problem:
            if self.anything or (plain := self._restorable(value)) is None:
                raise
        return encode(plain, where=where, kind=kind)

    def _restorable(self, value: object) -> object:
        try:
            plain = builtins_of(value)
            back = typed(plain, self.annotation)
            return plain if type(back) is type(value) and back == value else None
        except Exception:
            return None


def shape_of(annotation: Any, *, where: str = "") -> Shape:
    """The shape of an annotation; a type that no JSON value can be turned into is a Problem at once."""
    if annotation is Any or annotation is object:
        return Shape(annotation, anything=True, exact=None)
    try:
        check_annotation(annotation)
    except Exception as error:
        raise UsageError(
            code="bad_annotation",
            what="no JSON value can be turned into this type",
            where=where,
            found=type_name(annotation),
            allowed="JSON types, dataclasses, msgspec structs, pydantic models, unions that JSON can tell apart",
            todo=complaint(error),
        ) from None
    exact = annotation if isinstance(annotation, type) and annotation in _TAKEN_AS_THEY_ARE else None
    return Shape(annotation, anything=False, exact=exact)


def _misfit(error: Exception, where: str, path: str, kind: str) -> Problem:
    said, _, spot = complaint(error).partition(" - at `$")
    mismatch = _MISMATCH.fullmatch(said)
    return refusal(
        kind,
        "invalid",
        what=f"the {kind} does not fit" + ("" if mismatch else f": {said}"),
        where=place(where, path + spot.rstrip("`")),
        found=mismatch["found"] or "" if mismatch else "",
        allowed=mismatch["expected"] + mismatch["bound"] if mismatch else "",
    )
