"""Every program, snippet and command of README and guide does what the page says."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from docs.pages import EXAMPLE_DATABASE, PAGES, ROOT, Block, blocks_of
from postgres_server import fresh_database

IMPORTS = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))
FOREVER = "paceline up"
NOT_HERE = ("pip", "make")


def surroundings(folder: Path) -> dict[str, str]:
    """An environment of its own, in which `paceline` is this one."""
    command = folder / "bin" / "paceline"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m paceline "$@"\n')
    command.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PACELINE_")}
    path = f"{command.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "PYTHONPATH": IMPORTS, "NO_COLOR": "1"}


def run(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """The standard output of a program that ends well, without a warning."""
    done = subprocess.run(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


Real = Callable[[str], str]


@pytest.fixture
def real() -> Iterator[Real]:
    """Puts a real database where a page speaks of one."""
    with ExitStack() as stack:

        @cache
        def url() -> str:
            return stack.enter_context(fresh_database())

        def replace(text: str) -> str:
            if EXAMPLE_DATABASE not in text:
                return text
            more = "&" if "?" in url() else "?"
            return text.replace(f"{EXAMPLE_DATABASE}?", url() + more).replace(EXAMPLE_DATABASE, url())

        yield replace


def where(page: Path) -> str:
    return str(page.relative_to(ROOT))


PROGRAMS = [(page, block) for page in PAGES for block in blocks_of(page) if block.kind == "program"]
WITH_SNIPPETS = [page for page in PAGES if any(block.kind == "snippet" for block in blocks_of(page))]
WITH_COMMANDS = [page for page in PAGES if any(block.kind == "commands" for block in blocks_of(page))]


def write_files(page: Path, folder: Path) -> None:
    """The files that a page tells its reader to write."""
    for block in blocks_of(page):
        if block.kind == "file":
            (folder / block.name).write_text(block.text, "utf-8")


@pytest.mark.parametrize(("page", "block"), PROGRAMS, ids=[f"{where(page)}:{block.line}" for page, block in PROGRAMS])
def test_a_program_runs_as_it_stands_on_the_page(page: Path, block: Block, tmp_path: Path, real: Real) -> None:
    write_files(page, tmp_path)
    (tmp_path / "program.py").write_text(real(block.text), "utf-8")
    run([sys.executable, "-W", "error", "program.py"], tmp_path, surroundings(tmp_path))


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=where)
def test_the_snippets_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    words = [sys.executable, "-W", "error", str(Path(__file__).with_name("play.py")), str(page)]
    run(words, tmp_path, surroundings(tmp_path))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=where)
def test_the_commands_of_a_page_work_one_after_the_other(page: Path, tmp_path: Path, real: Real) -> None:
    write_files(page, tmp_path)
    environment = surroundings(tmp_path)
    lines = [line for block in blocks_of(page) if block.kind == "commands" for line in block.text.splitlines()]
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for line in filter(None, lines):
            words = shlex.split(real(line))
            if words[0] in NOT_HERE:
                continue
            if line.startswith(FOREVER):
                nodes.append(subprocess.Popen(words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL))
            else:
                run(words, tmp_path, environment)
    finally:
        for node in nodes:
            node.terminate()
        ends = [node.wait(timeout=30) for node in nodes]
    assert set(ends) <= {0}


def test_the_readme_holds_one_program_and_names_exactly_the_two_make_commands_that_do_everything() -> None:
    text = PAGES[0].read_text("utf-8")
    assert [block.kind for block in blocks_of(PAGES[0])].count("program") == 1
    assert {word for word in ("make demo", "make test", "make lint", "make fmt") if word in text} == {
        "make demo",
        "make test",
    }


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_ends_well_in_a_few_seconds_and_says_something(example: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    assert run([sys.executable, "-W", "error", str(example)], tmp_path, surroundings(tmp_path)).strip()
    assert time.monotonic() - began < 15
