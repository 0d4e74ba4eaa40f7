"""All questions, one after the other."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from paceline.config import load
from paceline.core.problem import Problem
from paceline.health.host import code, host
from paceline.health.postgres import server_store
from paceline.health.settings import changed, origins
from paceline.health.sqlite import file_store
from paceline.health.verdicts import Verdict, failed, warn
from paceline.opening import path_of
from paceline.store.postgres_place import names_postgres, place_of


def examine(folder: Path, environment: Mapping[str, str], said: Mapping[str, object]) -> Iterator[Verdict]:
    """All verdicts; what cannot be asked after a failure is left out."""
    yield from host()
    try:
        settings = load(folder, environment, said)
        server = names_postgres(settings.store)
        home = place_of(settings.store) if server else path_of(settings.store)
    except Problem as problem:
        yield failed("settings", problem)
        return
    yield changed(origins(folder, environment, said))
    yield from code()
    if home is None:
        yield warn("store", "in memory: it ends with its process", "name a file to keep jobs")
    elif isinstance(home, Path):
        yield from file_store(home.absolute(), settings)
    else:
        yield from server_store(home, settings)
