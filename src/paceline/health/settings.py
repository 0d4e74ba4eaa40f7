"""What is set, and who says so."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from paceline.config import Settings, load
from paceline.core.durations import format_duration
from paceline.health.verdicts import Verdict, listed, ok
from paceline.store.postgres_place import names_postgres, place_of

DURATIONS = {"heartbeat", "dead_after", "drain"}


class Origin(NamedTuple):
    """A setting that holds, and who says so."""

    name: str
    value: object
    source: str


def origins(folder: Path, environment: Mapping[str, str], said: Mapping[str, object]) -> list[Origin]:
    """Every setting with where it comes from: the default, a file, the environment or the command line."""
    settings, from_file = load(folder, environment, said), load(folder, {}, {})
    file = "paceline.toml" if (folder / "paceline.toml").is_file() else "pyproject.toml"
    found = []
    for one in fields(Settings):
        value = getattr(settings, one.name)
        if said.get(one.name) is not None:
            source = "command line"
        elif one.name != "limits" and environment.get(f"PACELINE_{one.name.upper()}", "").strip():
            source = f"PACELINE_{one.name.upper()}"
        else:
            source = file if getattr(from_file, one.name) != getattr(Settings(), one.name) else "default"
        found.append(Origin(one.name, _shown(one.name, value), source))
    return found


def changed(settings: list[Origin]) -> Verdict:
    """Which settings are not at their defaults."""
    said = [f"{one.name} from {one.source}" for one in settings if one.source != "default"]
    return ok("settings", listed(said) or "all at their defaults")


def _shown(name: str, value: Any) -> object:
    """A value as people may see it: a duration in words, a URL without its password."""
    if name == "store" and names_postgres(value):
        return place_of(value).shown
    return format_duration(value) if name in DURATIONS else value
