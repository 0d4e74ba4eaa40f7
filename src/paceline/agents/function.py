"""An agent's function, ready for jobs: JSON in, arguments, a return value, JSON out."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.agents.hints import hints_of, wants_context
from paceline.agents.intake import Arguments, ByName, Input, Intake, Nothing, Whole
from paceline.agents.origin import Handler
from paceline.core.problem import Problem
from paceline.errors import UsageError
from paceline.payloads import Shape, complaint, shape_of

if TYPE_CHECKING:
    from paceline.agents.definition import Agent

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANYTHING = shape_of(object)


@dataclass(frozen=True, slots=True)
class BoundHandler:
    """What is known of a function once its signature has been read; everything about one job is an argument."""

    function: Handler
    is_async: bool
    takes_ctx: bool
    where: str
    prepare: Callable[[object], Arguments]
    """Arguments for a plain JSON input, without `ctx`; None stands for no input."""
    check_input: Callable[[object], str]
    """The JSON text of what a caller passes, once it fits the parameters."""
    returns: Shape
    unchecked: frozenset[str]
    """Parameters (and `return`) whose annotation cannot be resolved or checked; they take any JSON value."""

    def call(self, ctx: object, arguments: Arguments) -> object:
        """Calls the function; a coroutine when it is asynchronous."""
        args, kwargs = arguments
        return self.function(ctx, *args, **kwargs) if self.takes_ctx else self.function(*args, **kwargs)

    def encode_result(self, value: object) -> str:
        """The JSON text of a return value that is what the annotation promises."""
        return self.returns.encode(value, where=self.where, kind="result")


@functools.lru_cache(maxsize=4096)
def bind(agent: "Agent[..., Any]") -> BoundHandler:
    """Reads the signature of an agent's function, once."""
    function, where = agent.function, f"agent {agent.name}"
    try:
        hints = hints_of(function)
    except (TypeError, ValueError) as error:
        raise _bad_signature("its parameters cannot be read", where, complaint(error)) from None
    _refuse_generators(function, where)
    takes_ctx = bool(hints.parameters) and wants_context(hints.parameters[0])
    parameters = hints.parameters[takes_ctx:]
    _refuse_odd_parameters(hints.parameters, takes_ctx, where)
    intake = _intake(parameters, hints.unresolved, where)
    returns, checked = _return_shape(hints.returns, "return" in hints.unresolved)
    return BoundHandler(
        function=function,
        is_async=_is_async(function),
        takes_ctx=takes_ctx,
        where=where,
        prepare=intake.prepare,
        check_input=intake.encode,
        returns=returns,
        unchecked=hints.unresolved if checked else hints.unresolved | {"return"},
    )


def _intake(parameters: Sequence[inspect.Parameter], unresolved: frozenset[str], where: str) -> Intake:
    inputs: list[Input] = []
    rest: Shape | None = None
    for parameter in parameters:
        here = where if len(parameters) == 1 else f"{where}, parameter {parameter.name}"
        shape = _ANYTHING if parameter.name in unresolved else shape_of(parameter.annotation, where=here)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            rest = shape
        else:
            inputs.append(Input(parameter.name, shape, parameter.default, parameter.kind not in _BY_POSITION, here))
    if rest is None and len(inputs) <= 1:
        return Whole(inputs[0], where) if inputs else Nothing(where)
    return ByName(inputs, rest, where)


def _return_shape(annotation: object, unresolved: bool) -> tuple[Shape, bool]:
    """The shape of the return value, and whether it says anything: not every honest annotation can be checked."""
    if unresolved:
        return _ANYTHING, False
    try:
        return shape_of(annotation), True
    except Problem:
        return _ANYTHING, False


def _is_async(function: Handler) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _refuse_generators(function: Handler, where: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _bad_signature("it yields", where, "yield", "return one value, for example a list")


def _refuse_odd_parameters(parameters: Sequence[inspect.Parameter], takes_ctx: bool, where: str) -> None:
    for place, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise _bad_signature(f"*{parameter.name} has no name to give it by", where, str(parameter), "name each one")
        if parameter.name == "ctx" and (place > 0 or parameter.kind not in _BY_POSITION):
            raise _bad_signature("ctx must be the first parameter", where, str(parameter), "write (ctx, …)")
        if place == 0 and parameter.name in ("self", "cls") and not takes_ctx:
            raise _bad_signature("it is a method", where, str(parameter), "make it a function of its own")


def _bad_signature(what: str, where: str, found: str, todo: str = "") -> UsageError:
    return UsageError(
        code="bad_signature", what=f"this function cannot be an agent: {what}", where=where, found=found, todo=todo
    )
