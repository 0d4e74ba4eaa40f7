"""The parameters of a function and what its annotations mean, also where some of them cannot be resolved."""

import importlib
import inspect
import sys
from types import SimpleNamespace
from typing import Any, ForwardRef, NamedTuple, get_type_hints

from paceline.agents.context import Context
from paceline.agents.origin import Handler, innermost


class Hints(NamedTuple):
    """A signature with its annotations resolved one by one.

    `unresolved` names those that only a type checker knows; they stand there as they were written.
    """

    parameters: tuple[inspect.Parameter, ...]
    returns: Any
    unresolved: frozenset[str]


def hints_of(function: Handler) -> Hints:
    """Raises TypeError or ValueError when the function does not tell its parameters."""
    signature = _signature_of(function)
    inner = innermost(function)
    names = {**getattr(inner, "__globals__", {}), **_closure_of(inner)}
    unresolved: set[str] = set()

    def resolve(name: str, annotation: object) -> Any:
        if annotation is inspect.Parameter.empty:
            return Any
        try:
            return get_type_hints(SimpleNamespace(__annotations__={name: annotation}), names, include_extras=True)[name]
        except Exception:
            unresolved.add(name)
            return annotation

    parameters = [
        each.replace(annotation=resolve(each.name, each.annotation)) for each in signature.parameters.values()
    ]
    return Hints(tuple(parameters), resolve("return", signature.return_annotation), frozenset(unresolved))


def wants_context(parameter: inspect.Parameter) -> bool:
    """Whether this is the parameter for what a job can do and see: by its name, or by its type."""
    kind = parameter.annotation
    if isinstance(kind, str | ForwardRef):
        written = kind if isinstance(kind, str) else kind.__forward_arg__
        return parameter.name == "ctx" or written.rpartition(".")[2] == "Context"
    return parameter.name == "ctx" or (isinstance(kind, type) and issubclass(kind, Context))


def _signature_of(function: Handler) -> inspect.Signature:
    """From Python 3.14 on, annotations are evaluated when they are read, and those that cannot be raise unless told."""
    if sys.version_info < (3, 14):
        return inspect.signature(function)
    lenient = importlib.import_module("annotationlib").Format.FORWARDREF  # a module that older Pythons do not have
    return inspect.signature(function, annotation_format=lenient)


def _closure_of(function: Handler) -> dict[str, object]:
    """The names that a function made inside another one keeps of it."""
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except (TypeError, ValueError):
        return {}
