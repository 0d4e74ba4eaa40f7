"""What the command line's tests share: a folder of one's own and a way to type into it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from paceline.cli.main import main
from postgres_server import fresh_database


class Typed(NamedTuple):
    """What came of one command line."""

    code: int
    out: str
    err: str


Enter = Callable[..., Typed]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the test, with nothing set that would change what commands do."""
    monkeypatch.chdir(tmp_path)
    for name in ("PACELINE_STORE", "PACELINE_DEBUG", "PACELINE_SLOTS", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def enter(folder: Path, capsys: pytest.CaptureFixture[str]) -> Enter:
    """Types a command line; a traceback fails the test, whatever it is about."""

    def type_in(*words: str) -> Typed:
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Typed(code, out, err)

    return type_in


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty Postgres database, which the settings name as the store."""
    with fresh_database() as url:
        monkeypatch.setenv("PACELINE_STORE", url)
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def anywhere(request: pytest.FixtureRequest, folder: Path) -> str:
    """The store is in the working folder, then in a Postgres database."""
    if request.param == "postgres":
        request.getfixturevalue("server")
    return str(request.param)
