"""`paceline init`: files that work as they are, and nothing that was there before is touched."""

import json
import tomllib
from pathlib import Path

from cli.conftest import Enter
from paceline.cli.setup import SETTINGS
from paceline.config import Settings, load


def test_a_new_folder_gets_settings_an_agent_and_a_store(enter: Enter, folder: Path) -> None:
    typed = enter("init", "new/project")
    assert typed.code == 0
    made = folder / "new" / "project"
    assert {one.name for one in made.iterdir()} == {"paceline.toml", "agents.py", ".paceline"}
    assert (made / ".paceline").stat().st_mode & 0o777 == 0o700
    assert "Next: cd new/project" in typed.out


def test_the_example_agents_run(enter: Enter) -> None:
    enter("init")
    assert enter("run", "agents.py:greet", "world").out == "Hello, world!\n"
    typed = enter("run", "agents.py:count", '{"word": "tidal", "letters": 1}')
    assert json.loads(typed.out) == {"t": 1}
    assert "counted 1 letters" in typed.err


def test_what_is_there_is_left_alone(enter: Enter, folder: Path) -> None:
    (folder / "agents.py").write_text("mine = 1\n")
    (folder / "paceline.toml").write_text("slots = 5\n")
    typed = enter("init", "-o", "json")
    assert json.loads(typed.out)["kept"] == ["agents.py", "paceline.toml"]
    assert (folder / "agents.py").read_text() == "mine = 1\n"
    assert enter("init").code == 0
    assert load(folder, {}, {}).slots == 5


def test_settings_in_a_pyproject_are_not_silenced_by_a_new_file(enter: Enter, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.paceline]\nslots = 7\n")
    assert enter("init").code == 0
    assert not (folder / "paceline.toml").exists()
    assert load(folder, {}, {}).slots == 7


def test_the_commented_lines_are_the_defaults(folder: Path) -> None:
    said = [line.removeprefix("# ") for line in SETTINGS.splitlines() if " = " in line]
    (folder / "paceline.toml").write_text("\n".join(line for line in said if not line.startswith("llm")))
    assert load(folder, {}, {}) == Settings()
    (folder / "paceline.toml").write_text(SETTINGS)
    assert load(folder, {}, {}) == Settings()
    assert tomllib.loads(SETTINGS) == {}


def test_a_file_in_the_way_is_refused(enter: Enter, folder: Path) -> None:
    (folder / "taken").write_text("")
    for name in ("taken", "taken/inside"):
        typed = enter("init", name)
        assert (typed.code, typed.out) == (2, "")
        assert "not a folder" in typed.err


def test_the_store_that_is_named_is_the_one_that_is_made(enter: Enter, folder: Path) -> None:
    assert enter("init", "here", "--store", f"sqlite:///{folder}/other.db").code == 0
    assert (folder / "other.db").exists()
    assert not (folder / "here" / ".paceline").exists()


def test_a_store_is_made_once_and_then_kept_on_each_kind_of_database(enter: Enter, anywhere: str) -> None:
    made, kept = (json.loads(enter("init", "-o", "json").out) for _ in range(2))
    assert made["kept"] == kept["made"] == []
    assert len(made["made"]) == len(kept["kept"]) == 3
