"""Importing the code that somebody named on the command line. Nothing else is ever imported by a name."""

import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from paceline.agents.definition import Agent, as_agent
from paceline.agents.origin import FILE_MODULE
from paceline.agents.registry import registry
from paceline.core.names import closest, shown
from paceline.core.problem import Problem
from paceline.errors import NotFound, PacelineError, UsageError
from paceline.payloads import complaint

_IMPORT_SYSTEM = (__file__, importlib.__file__)
_importing: list[str] = []


def is_importing() -> str | None:
    """The file or module whose import is running: what starts a node meanwhile lacks its `__main__` guard."""
    return _importing[-1] if _importing else None


def refuse_while_importing() -> None:
    """For what must not happen when code is only imported, such as starting a node."""
    if (source := is_importing()) is not None:
        raise UsageError(
            code="missing_main_guard",
            what="this code starts a node as soon as it is imported",
            where=source,
            todo='put the part that starts it under: if __name__ == "__main__":',
        )


def load_app(name: str) -> ModuleType:
    """Imports a module (`package.module`) or a file (`path/file.py`), so that its agents are registered."""
    if name.endswith(".py") or "/" in name or os.sep in name:
        return load_file(name)
    if not all(part.isidentifier() for part in name.split(".")):
        allowed = "package.module or path/file.py"
        raise UsageError(code="bad_module", what="this names no module", found=shown(name), allowed=allowed)
    _search_first(os.getcwd())
    with _running(name):
        return importlib.import_module(name)


def load_file(path: str) -> ModuleType:
    """Runs a file as a module of its own, once; its `if __name__ == "__main__"` block does not run."""
    file = os.path.realpath(_existing(path))
    name = _module_name(file)
    if name in sys.modules:
        return sys.modules[name]
    loader = importlib.machinery.SourceFileLoader(name, file)
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, loader, origin=file))
    module.__file__ = file
    _search_first(os.path.dirname(file))
    sys.modules[name] = module
    try:
        with _running(file):
            loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_file_function(target: str) -> Agent[..., Any]:
    """The agent that `path/file.py:function` names; a plain function becomes one with the default settings."""
    path, _, name = target.rpartition(":")
    if not path or not name:
        allowed = "a file, a colon and a function in it: path/file.py:function"
        raise UsageError(code="bad_target", what="this names no function", found=shown(target), allowed=allowed)
    module = load_file(path)
    found = vars(module).get(name) or registry.find(name, str(module.__file__))
    if found is None:
        functions = [key for key, value in vars(module).items() if isinstance(value, Agent | FunctionType)]
        likely = closest(name, functions)
        raise NotFound(
            code="no_such_function",
            what=f"the file has no function {shown(name)}",
            where=path,
            allowed=", ".join(functions[:20]) or "it defines no function at all",
            todo=f"did you mean {likely[0]}?" if likely else "",
        )
    return as_agent(found)


def _existing(path: str) -> str:
    if os.path.isfile(path):
        return path
    folder, name = os.path.split(path)
    try:
        there = [each.name for each in Path(folder or ".").iterdir() if each.suffix == ".py"]
    except (OSError, ValueError):
        there = []
    likely = closest(name, there)
    raise NotFound(
        code="no_such_file",
        what="this is a folder, not a file" if os.path.isdir(path) else "there is no such file",
        where=shown(path),
        todo=f"did you mean {likely[0]}?" if likely else "name a Python file",
    )


def _module_name(file: str) -> str:
    stem = re.sub(r"\W", "_", Path(file).stem)
    return f"{FILE_MODULE}{stem}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:12]}"


def _search_first(folder: str) -> None:
    """As Python does for a script: what lies beside it can be imported."""
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


@contextmanager
def _running(source: str) -> Iterator[None]:
    """While somebody's code is imported; whatever goes wrong in it becomes one clear error."""
    _importing.append(source)
    try:
        yield
    except (Problem, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _failure(source, error) from error
    finally:
        _importing.pop()


def _failure(source: str, error: BaseException) -> PacelineError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{source}.".startswith(f"{error.name}."):
        todo = "run this in the folder it lies in, or install it"
        return NotFound(code="no_such_module", what=f"there is no module {error.name}", where=source, todo=todo)
    if isinstance(error, SyntaxError):
        where, said = f"{error.filename}:{error.lineno}", f"{error.msg}: {shown((error.text or '').strip())}"
        return UsageError(code="syntax_error", what="this is not valid Python", where=where, found=said)
    ends = isinstance(error, SystemExit)
    return UsageError(
        code="import_failed",
        what="this code ends the program when it is imported" if ends else "this code could not be imported",
        where=_line_of(source, error),
        found=f"{type(error).__name__}: {complaint(error)}",
        todo='put what shall only run as a script under: if __name__ == "__main__":' if ends else "",
    )


def _line_of(source: str, error: BaseException) -> str:
    """The last line that was reached: of the file itself, or for a module of anything but the import system."""
    reached = [(each.filename, each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    foreign = [line for line in reached if line[0] not in _IMPORT_SYSTEM and not line[0].startswith("<frozen ")]
    own = [line for line in reached if line[0] == source] or foreign
    return f"{own[-1][0]}:{own[-1][1]}" if own else source
