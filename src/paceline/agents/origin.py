"""Where a function comes from: the name, the origin and the place that tell two agents apart."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from paceline.errors import UsageError

Handler = Callable[..., object]

FILE_MODULE = "__mp_main__:"
"""Begins the names of modules that were loaded from a file somebody named, as a script is."""

_SCRIPTS = ("__main__", "__mp_main__")
_LOCAL = ".<locals>"


class Place(NamedTuple):
    """Where the code of a function stands."""

    file: str
    line: int
    qualname: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def holds_the_same(self, other: "Place") -> bool:
        """Whether two functions are one, before and after an edit or a reload."""
        return (self.file, self.qualname) == (other.file, other.qualname)


def innermost(function: Handler) -> Handler:
    """The plain function under decorators, partials and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif not hasattr(function, "__code__") and hasattr(type(function).__call__, "__code__"):
            return type(function).__call__
        else:
            return function


def name_of(function: Handler) -> str:
    """The function's own name; a lambda, a partial and a callable object have none."""
    name = getattr(function, "__name__", None)
    if isinstance(name, str) and name != "<lambda>":
        return name
    raise UsageError(
        code="agent_without_name",
        what="an agent needs a name, and this function has none",
        where=str(place_of(function)),
        found=_qualname(innermost(function)),
        todo='name it: agent(name="…")',
    )


def origin_of(function: Handler) -> str:
    """The module, or the script's path; a function made inside another one adds its maker."""
    inner = innermost(function)
    name = str(getattr(inner, "__module__", None) or "builtins")
    base = _script(name) if name in _SCRIPTS or name.startswith(FILE_MODULE) else name
    maker, local, _ = _qualname(inner).rpartition(f"{_LOCAL}.")
    return f"{base}:{maker.replace(_LOCAL, '')}" if local else base


def place_of(function: Handler) -> Place:
    """File and line of the code; what was typed into a shell or a notebook cell has no file that stays."""
    inner = innermost(function)
    code = getattr(inner, "__code__", None)
    if code is None:
        return Place(str(getattr(inner, "__module__", None) or "builtins"), 0, _qualname(inner))
    file = os.path.abspath(code.co_filename)
    return Place(file if _exists(file) else "<interactive>", code.co_firstlineno, _qualname(inner))


def _qualname(function: Handler) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _script(module_name: str) -> str:
    """A script's real path, so that two scripts' `__main__` differ; for `python -m` the module's name."""
    module = sys.modules.get(module_name)
    spec = getattr(module, "__spec__", None)
    if module_name in _SCRIPTS and spec is not None:
        return str(spec.name)
    file = getattr(module, "__file__", None)
    return _real(file) if isinstance(file, str) else module_name


_real = functools.lru_cache(maxsize=256)(os.path.realpath)
_exists = functools.lru_cache(maxsize=256)(os.path.exists)
