"""Settings: a file, then the environment, then what the program says; one place knows every name and range."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from paceline.core.durations import parse_duration
from paceline.core.leasing import TTL_LEAST, TTL_MOST
from paceline.core.names import closest, escape_for_terminal, shown
from paceline.core.problem import Problem
from paceline.errors import UsageError, as_error

FOLDER = ".paceline"
DEFAULT_STORE = f"sqlite:///{FOLDER}/paceline.db"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; durations in microseconds."""

    store: str = DEFAULT_STORE
    synchronous: str = "full"
    slots: int = 1_000
    max_pending: int = 100_000
    heartbeat: int = 15_000_000
    dead_after: int = 60_000_000
    drain: int = 30_000_000
    work_sharing: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)


_RANGES = {"slots": (1, 100_000), "max_pending": (1, 100_000_000)}
_DURATIONS = {
    "heartbeat": (100_000, 600_000_000),
    "dead_after": (TTL_LEAST, TTL_MOST),
    "drain": (0, 3_600_000_000),
}
_SWITCHES = ("work_sharing",)
_ON, _OFF = ("true", "1", "on", "yes"), ("false", "0", "off", "no")
_WORDS = {"synchronous": ("full", "normal")}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def load(folder: Path, environment: Mapping[str, str], said: Mapping[str, object]) -> Settings:
    """What holds in a folder: `paceline.toml` or `[tool.paceline]`, then `PACELINE_*`, then what is said."""
    file, in_file = _from_files(folder)
    settings = _with(Settings(), in_file, lambda name: file)
    settings = _with(settings, _from_environment(environment), lambda name: f"environment {_variable(name)}")
    settings = _with(settings, said, lambda name: "arguments")
    if settings.dead_after <= settings.heartbeat:
        raise UsageError(
            code="bad_setting", what="dead_after must be longer than heartbeat, or nodes die between two beats",
            found=f"dead_after {settings.dead_after / 1e6:g} s, heartbeat {settings.heartbeat / 1e6:g} s",
        )  # fmt: skip
    return settings


def _with(settings: Settings, values: Mapping[str, object], where: Callable[[str], str]) -> Settings:
    known = {name: value for name, value in values.items() if value is not None}
    checked: dict[str, Any] = {name: _checked(name, value, where(name)) for name, value in known.items()}
    return replace(settings, **checked)


def _from_files(folder: Path) -> tuple[str, Mapping[str, object]]:
    own, project = folder / "paceline.toml", folder / "pyproject.toml"
    if own.is_file():
        return str(own), _read(own)
    if project.is_file():
        where, tools = f"{project} [tool.paceline]", _read(project).get("tool", {})
        found = tools.get("paceline", {}) if isinstance(tools, dict) else {}
        if not isinstance(found, dict):
            raise _bad("tool.paceline", found, "a table of settings", where)
        return where, found
    return "", {}


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:  # of these ValueErrors each says line or byte
        raise UsageError(
            code="bad_config", what="the configuration cannot be read", where=str(path),
            found=escape_for_terminal(str(error)),
        ) from None  # fmt: skip


def _from_environment(environment: Mapping[str, str]) -> Mapping[str, object]:
    """What is set there; a variable that is empty says nothing."""
    found: dict[str, object] = {}
    for setting in fields(Settings):
        text = environment.get(_variable(setting.name), "").strip()
        if text and setting.name != "limits":
            found[setting.name] = _read_text(setting.name, text)
    return found


def _read_text(name: str, text: str) -> object:
    """A number or a switch where one is meant; what is neither stays text, and is refused as such."""
    if name in _RANGES and _INTEGER.fullmatch(text):
        return int(text)
    word = text.lower()
    return word in _ON if name in _SWITCHES and word in _ON + _OFF else text


def _variable(name: str) -> str:
    return f"PACELINE_{name.upper()}"


def _checked(name: str, value: object, where: str) -> object:
    names = [setting.name for setting in fields(Settings)]
    if name not in names:
        guess = closest(name, names)
        raise UsageError(
            code="unknown_setting", what=f"no setting is called {shown(name)}", where=where, allowed=", ".join(names),
            todo=f"did you mean {guess[0]!r}?" if guess else "",
        )  # fmt: skip
    if name in _DURATIONS:
        low, high = _DURATIONS[name]
        try:
            return parse_duration(value, field=f"{name} ({where})", minimum=low, maximum=high)
        except Problem as problem:
            raise as_error(problem) from None
    if name in _RANGES:
        return _integer(name, value, *_RANGES[name], where)
    if name in _SWITCHES:
        if not isinstance(value, bool):
            raise _bad(name, value, f"true or false; in the environment {', '.join(_ON)}, {', '.join(_OFF)}", where)
        return value
    if name == "limits":
        return _limits(value, where)
    if not isinstance(value, str) or value not in _WORDS.get(name, (value,)):
        raise _bad(name, value, ", ".join(_WORDS.get(name, ("text",))), where)
    return value


def _limits(value: object, where: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise _bad("limits", value, "a table: pool = units", where)
    return {str(pool): _integer(f"limits.{pool}", units, 1, 1_000_000, where) for pool, units in value.items()}


def _integer(name: str, value: object, low: int, high: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _bad(name, value, f"an integer, {low:,} to {high:,}", where)
    return value


def _bad(name: str, value: object, allowed: str, where: str) -> UsageError:
    return UsageError(
        code="bad_setting", what=f"{name} cannot be this", where=where, found=shown(value), allowed=allowed
    )


def current(**said: object) -> Settings:
    """The settings of this process: from the working folder and the environment."""
    return load(Path.cwd(), os.environ, said)
