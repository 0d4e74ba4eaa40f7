"""The documentation names everything there is, and nothing that is not."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from docs.pages import PAGES, ROOT
from paceline import errors
from paceline.agents.definition import AgentOptions
from paceline.cli.main import COMMANDS
from paceline.client.options import Options
from paceline.config import Settings
from paceline.events import Kind

SOURCE = ROOT / "src" / "paceline"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
EVERY_PAGE = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
_LAW = re.compile(r"^(\d+)\. \*\*.*?Tested in: (.*?)(?=^\d+\. |^## )", re.DOTALL | re.MULTILINE)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_generated_parts_are_up_to_date() -> None:
    words = [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_explained() -> None:
    page = text_of("docs/reference/settings.md")
    assert [setting.name for setting in fields(Settings) if f"- `{setting.name}`:" not in page] == []


def test_every_kind_of_event_is_explained() -> None:
    explanations = text_of("docs/reference/events.md").partition("<!-- end -->")[2]
    assert [kind.word for kind in Kind if f"`{kind.word}`" not in explanations] == []


def test_every_error_class_is_named_where_people_learn_what_to_catch() -> None:
    page = text_of("docs/guide/errors.md")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__]
    assert [kind.__name__ for kind in kinds if kind is not errors.AgentError and f"`{kind.__name__}`" not in page] == []


def test_every_code_that_the_source_raises_is_in_the_reference() -> None:
    page = text_of("docs/reference/errors.md")
    assert sorted(code for code in set(codes_raised()) if f"`{code}`" not in page) == []


def codes_raised() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] == "testing":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
                yield str(node.value.value)


def test_every_command_is_in_the_readme_and_in_the_reference() -> None:
    for name, form in (("README.md", "| `paceline {}` |"), ("docs/reference/commands.md", "## paceline {}\n")):
        page = text_of(name)
        assert [command for command in COMMANDS if form.format(command) not in page] == [], name


@pytest.mark.parametrize("options", [Options, AgentOptions], ids=lambda options: options.__name__)
def test_every_option_of_a_submission_and_of_an_agent_is_in_the_guide(options: type) -> None:
    guide = "".join(page.read_text("utf-8") for page in PAGES)
    explained = {word for pair in re.findall(r"[`(, ]([a-z_]+)=|`([a-z_]+)`", guide) for word in pair}
    assert sorted(options.__annotations__.keys() - explained) == []


def laws() -> list[tuple[str, list[str]]]:
    found = _LAW.findall(ARCHITECTURE.read_text("utf-8"))
    return [(number, re.findall(r"`([^`]+)`", files)) for number, files in found]


def test_every_law_is_numbered_and_names_tests_that_exist() -> None:
    assert [number for number, _ in laws()] == [str(number) for number in range(1, 12)]
    for number, files in laws():
        assert files, f"law {number} names no test"
        assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_readme_tells_as_many_laws_as_there_are() -> None:
    plain = text_of("README.md").partition("## The laws")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\d+\. ", plain, re.MULTILINE)) == len(laws())


def test_the_folder_map_names_every_room_and_module_and_no_other() -> None:
    shown = ARCHITECTURE.read_text("utf-8").partition("src/paceline/\n")[2].partition("tests/ ")[0]
    words = re.findall(r"^  (\S.*?)(?:  |$)(.*)", shown, re.MULTILINE)
    named = {word for start, rest in words for word in f"{start} {rest}".split() if word.endswith((".py", "/"))}
    named -= {word for word in named if "/" in word and not word.endswith("/")}
    there = {f"{path.name}/" for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    there |= {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert there <= named
    assert {word for word in named if word.endswith("/") and word not in ("rooms/", "migrations/")} <= there


def test_files_that_the_architecture_names_exist() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", ARCHITECTURE.read_text("utf-8")))
    places = [SOURCE, SOURCE / "core", ROOT]
    assert sorted(name for name in named if not any((place / name).exists() for place in places)) == []


def test_every_decision_is_in_the_list_of_decisions() -> None:
    listed = text_of("docs/adr/README.md")
    pages = sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))
    assert [page for page in pages if f"({page})" not in listed] == []
    assert [page[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, heading in _LINK.findall(page.read_text("utf-8")):
        goal = page.parent / target if target else page
        assert goal.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", goal.read_text("utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, heading
