"""The three ways in which a function takes its input: nothing, the whole, or an object by name."""

import inspect
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from paceline.core.names import closest, shown
from paceline.errors import UsageError
from paceline.payloads import LARGEST_PAYLOAD, Shape, decode, encode

Arguments = tuple[tuple[object, ...], dict[str, object]]

_NO_DEFAULT = inspect.Parameter.empty


class Input(NamedTuple):
    """One parameter that takes input."""

    name: str
    shape: Shape
    default: object
    keyword_only: bool
    where: str

    @property
    def required(self) -> bool:
        return self.default is _NO_DEFAULT


class Intake(Protocol):
    """How JSON becomes arguments, and how what a caller passes becomes JSON."""

    def prepare(self, plain: object) -> Arguments:
        """The arguments for a plain JSON value; nothing given is None."""

    def encode(self, value: object) -> str:
        """The JSON text of what a caller passes, once it is known to fit."""


class Nothing:
    """For a function that takes no input."""

    def __init__(self, where: str) -> None:
        self.where = where

    def prepare(self, plain: object) -> Arguments:
        if plain is not None:
            raise UsageError(
                code="input_invalid", what="this agent takes no input", where=self.where, found=shown(plain)
            )
        return (), {}

    def encode(self, value: object) -> str:
        self.prepare(value)
        return "null"


class Whole:
    """For one parameter: it takes the whole input, or its default when there is none."""

    def __init__(self, only: Input, where: str) -> None:
        self.only = only
        self.where = where

    def prepare(self, plain: object) -> Arguments:
        name, shape, _, keyword_only, _ = self.only
        if plain is None and not self.only.required:
            return (), {}
        try:
            value = shape.convert(plain, where=self.where)
        except UsageError as misfit:
            raise self._explained(misfit, plain) from None
        return ((), {name: value}) if keyword_only else ((value,), {})

    def encode(self, value: object) -> str:
        if value is None and not self.only.required:
            return "null"
        try:
            return self.only.shape.encode(value, where=self.where)
        except UsageError as misfit:
            raise self._explained(misfit, value) from None

    def _explained(self, misfit: UsageError, value: object) -> UsageError:
        """The likely slip: naming the only parameter."""
        if not isinstance(value, dict) or list(value) != [self.only.name]:
            return misfit
        return UsageError(
            code=misfit.code,
            what=misfit.what,
            where=misfit.where,
            found=misfit.found,
            allowed=misfit.allowed,
            todo=f"pass what {self.only.name} shall be, without an object around it",
        )


class ByName:
    """For several parameters: an object that names them. `rest` is the shape of what `**names` takes."""

    def __init__(self, inputs: Iterable[Input], rest: Shape | None, where: str) -> None:
        self.inputs = tuple(inputs)
        self.shapes = {each.name: each.shape for each in self.inputs}
        self.places = {each.name: each.where for each in self.inputs}
        self.required = frozenset(each.name for each in self.inputs if each.required)
        self.rest = rest
        self.where = where

    def prepare(self, plain: object) -> Arguments:
        given = {} if plain is None else plain
        if not isinstance(given, dict):
            raise self._refusal("this agent takes an object by name", shown(plain))
        self._check_names(given)
        positional: list[object] = []
        named: dict[str, object] = {}
        for name, shape, default, keyword_only, where in self.inputs:
            value = shape.convert(given[name], where=where) if name in given else default
            if keyword_only:
                named[name] = value
            else:
                positional.append(value)
        if self.rest is not None:
            others = (name for name in given if name not in self.shapes)
            named |= {name: self.rest.convert(given[name], where=self._parameter(name)) for name in others}
        return tuple(positional), named

    def encode(self, value: object) -> str:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            text = encode(value, where=self.where)
            self.prepare(decode(text))
            return text
        self._check_names(value)
        parts = (f"{encode(name)}:{self._encode_one(name, value[name])}" for name in value)
        text = "{" + ",".join(parts) + "}"
        if len(text) > LARGEST_PAYLOAD // 4:  # only then can the whole be too many bytes
            return encode(decode(text), where=self.where)
        return text

    def _encode_one(self, name: str, value: object) -> str:
        shape = self.shapes.get(name) or self.rest
        where = self._parameter(name)
        return encode(value, where=where) if shape is None else shape.encode(value, where=where)

    def _parameter(self, name: str) -> str:
        return self.places.get(name) or f"{self.where}, parameter {shown(name)}"

    def _check_names(self, given: Mapping[object, object]) -> None:
        missing = self.required - given.keys()
        if missing:
            raise self._refusal(f"the input lacks {', '.join(sorted(missing))}", ", ".join(map(shown, given)) or "{}")
        for name in given:
            if not isinstance(name, str) or (self.rest is None and name not in self.shapes):
                likely = closest(name, self.shapes) if isinstance(name, str) else []
                todo = f"did you mean {likely[0]}?" if likely else "leave it out"
                raise self._refusal("the agent has no such parameter", shown(name), todo)

    def _refusal(self, what: str, found: str, todo: str = "") -> UsageError:
        names = ", ".join(each.name if each.required else f"{each.name} (has a default)" for each in self.inputs)
        return UsageError(
            code="input_invalid", what=what, where=self.where, found=found, allowed=names or "any names", todo=todo
        )
