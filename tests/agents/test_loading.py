"""Loading what somebody named on the command line: it is found and imported, or one clear error says why not."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paceline.agents import bind, registry
from paceline.agents.loading import is_importing, load_app, load_file, load_file_function, refuse_while_importing
from paceline.core.problem import Problem
from paceline.errors import NotFound, UsageError

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a file of the user's and answers its path; whatever is imported meanwhile is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)

    def write(text: str, name: str = "tools.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refused(target: str) -> Problem:
    with pytest.raises(Problem) as caught:
        load_file_function(target)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_plain_function_in_a_file_becomes_an_agent(write: Write) -> None:
    path = write("def double(n: int) -> int:\n    return 2 * n\n")
    found = load_file_function(f"{path}:double")
    assert (found.name, found.definition.origin) == ("double", path)
    assert bind(found).check_input(21) == "21"
    assert registry.get("double", path) is found


def test_a_decorated_function_keeps_its_options_and_is_found_by_either_name(write: Write) -> None:
    path = write("from paceline.agents import agent\n@agent(name='my-double', retries=2)\ndef double(n): ...\n")
    found = load_file_function(f"{path}:double")
    assert (found.name, found.definition.retries) == ("my-double", 2)
    assert load_file_function(f"{path}:my-double") is found


def test_a_file_runs_once_and_its_main_block_never(write: Write) -> None:
    path = write("runs = []\nruns.append(__name__)\nif __name__ == '__main__': raise SystemExit('ended')\n")
    module = load_file(path)
    assert load_file(path) is module
    assert module.runs == [module.__name__]


def test_two_files_of_one_name_are_two_modules(write: Write) -> None:
    one = write("def double(n): return 2 * n\n", "one/tools.py")
    two = write("def double(n): return n + n\n", "two/tools.py")
    assert load_file_function(f"{one}:double").definition.origin == one
    assert load_file_function(f"{two}:double").definition.origin == two
    with pytest.raises(UsageError, match="ambiguous_agent"):
        registry.named("double")


def test_a_file_may_import_what_lies_beside_it(write: Write) -> None:
    write("FACTOR = 3\n", "paceline_test_neighbour.py")
    path = write("from paceline_test_neighbour import FACTOR\ndef triple(n): return FACTOR * n\n")
    assert load_file_function(f"{path}:triple")(2) == 6


def test_dataclasses_and_annotations_of_a_file_work(write: Write) -> None:
    path = write(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Task:\n    title: str\ndef title(task: Task) -> str: return task.title\n"
    )
    handler = bind(load_file_function(f"{path}:title"))
    assert handler.unchecked == frozenset()
    assert handler.call(None, handler.prepare({"title": "x"})) == "x"


@pytest.mark.parametrize("target", ["", ":", "tools.py", "tools.py:", ":double"])
def test_a_target_needs_a_file_and_a_function(target: str) -> None:
    problem = refused(target)
    assert problem.code == "bad_target"
    assert "path/file.py:function" in problem.allowed


def test_a_missing_file_offers_the_likely_one(write: Write) -> None:
    path = write("")
    problem = refused(path.replace("tools", "tool") + ":double")
    assert isinstance(problem, NotFound)
    assert (problem.code, problem.todo) == ("no_such_file", "did you mean tools.py?")
    assert refused("nowhere/at/all.py:double").code == "no_such_file"
    assert refused("a\0b.py:double").code == "no_such_file"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "folder" in refused(f"{tmp_path}:double").what


def test_a_missing_function_offers_the_likely_one(write: Write) -> None:
    path = write("def double(n): return 2 * n\ndef triple(n): return 3 * n\n")
    problem = refused(f"{path}:duoble")
    assert isinstance(problem, NotFound)
    assert (problem.code, problem.allowed) == ("no_such_function", "double, triple")
    assert problem.todo == "did you mean double?"


@pytest.mark.parametrize("name", ["NUMBER", "Thing"])
def test_what_is_no_function_is_refused(write: Write, name: str) -> None:
    path = write("NUMBER = 3\nclass Thing: ...\n")
    assert refused(f"{path}:{name}").code == "not_a_function"


def test_a_syntax_error_names_file_and_line(write: Write) -> None:
    path = write("x = 1\ndef double(n:\n")
    problem = refused(f"{path}:double")
    assert (problem.code, problem.where) == ("syntax_error", f"{path}:2")
    assert "def double(n:" in problem.found


def test_a_syntax_error_in_an_imported_file_names_that_file(write: Write) -> None:
    other = write("def :\n", "paceline_test_broken.py")
    path = write("import paceline_test_broken\n")
    assert refused(f"{path}:double").where == f"{other}:1"


def test_a_file_that_is_no_text_is_refused(write: Write, tmp_path: Path) -> None:
    write("")
    for data in (b"\xff\xfe", b"x = '\0'", "é = 1".encode("latin-1")):
        (tmp_path / "tools.py").write_bytes(data)
        assert refused(f"{tmp_path}/tools.py:double").code == "syntax_error"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("raise ValueError('no\\nway')", "ValueError: no"),
        ("import json\njson.loads('{')", "JSONDecodeError: Expecting property name"),
        ("import paceline_test_nowhere", "ModuleNotFoundError: No module named 'paceline_test_nowhere'"),
        ("class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "E: <unprintable E>"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("from . import sibling", "ImportError: attempted relative import"),
    ],
)
def test_an_exception_on_import_names_the_users_line(write: Write, code: str, found: str) -> None:
    path = write(f"\n{code}\n")
    problem = refused(f"{path}:double")
    assert problem.code == "import_failed"
    assert problem.where.startswith(f"{path}:")
    assert problem.where != f"{path}:1"
    assert problem.found.startswith(found)


def test_a_file_that_failed_is_tried_anew(write: Write) -> None:
    path = write("raise ValueError\n")
    assert refused(f"{path}:double").code == "import_failed"
    write("def double(n): return 2 * n  # mended\n")
    assert load_file_function(f"{path}:double")(2) == 4


def test_a_script_that_ends_the_program_is_told_about_the_guard(write: Write) -> None:
    problem = refused(write("import sys\nsys.exit(3)\n") + ":double")
    assert problem.code == "import_failed"
    assert '__name__ == "__main__"' in problem.todo


def test_ctrl_c_during_an_import_stays_ctrl_c(write: Write) -> None:
    path = write("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_file(path)
    assert is_importing() is None


def test_what_starts_a_node_can_see_that_it_is_only_imported(write: Write) -> None:
    path = write("from paceline.agents.loading import is_importing, refuse_while_importing\nseen = is_importing()\n")
    assert load_file(path).seen == path
    assert is_importing() is None
    refuse_while_importing()
    problem = refused(write("from paceline.agents.loading import refuse_while_importing as r\nr()\n", "node.py") + ":x")
    assert problem.code == "missing_main_guard"
    assert problem.where.endswith("node.py")
    assert is_importing() is None


def test_a_bad_option_in_a_users_file_keeps_its_own_error(write: Write) -> None:
    path = write("from paceline.agents import agent\n@agent(max_concurrency=0)\ndef double(n): ...\n")
    assert refused(f"{path}:double").code == "bad_setting"


def test_an_app_is_a_module_of_the_folder_or_a_file(write: Write) -> None:
    path = write("from paceline.agents import agent\n@agent\ndef double(n): ...\n", "paceline_test_app/work.py")
    assert load_app("paceline_test_app.work").__name__ == "paceline_test_app.work"
    assert registry.get("double", "paceline_test_app.work")
    assert load_app(path).__file__ == path
    assert registry.get("double", path)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "bad_module"),
        ("a..b", "bad_module"),
        ("os:system", "bad_module"),
        ("no-module", "bad_module"),
        ("../x.py", "no_such_file"),
        ("paceline_test_missing", "no_such_module"),
        ("paceline_test_pack.missing", "no_such_module"),
        ("paceline_test_pack.bad", "import_failed"),
        ("paceline_test_pack.worse", "syntax_error"),
    ],
)
def test_an_app_that_cannot_be_loaded_says_why(write: Write, name: str, code: str) -> None:
    write("", "paceline_test_pack/__init__.py")
    bad = write("\nimport paceline_test_nowhere\n", "paceline_test_pack/bad.py")
    write("def\n", "paceline_test_pack/worse.py")
    with pytest.raises(Problem) as caught:
        load_app(name)
    assert caught.value.code == code
    if code == "import_failed":
        assert caught.value.where == f"{bad}:2"
