"""The frame: options anywhere, help for everything, one form of error, and exit codes that scripts can rely on."""

import ast
import io
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import pytest

from cli.conftest import Enter
from paceline.cli import main as frame
from paceline.cli.arguments import Argument, Option, leading, parameters_of, parse
from paceline.cli.render import Cell, Screen, cut, dumps, width_of
from paceline.core.problem import Problem
from paceline.errors import UsageError

HOSTILE = "a\x1b[31mb\u202ec\x07\nd"


def fetch(
    shell: object,
    name: Annotated[str, Argument("what", "NAME")],
    others: Annotated[list[str] | None, Argument("more of it", "OTHER")] = None,
    most: Annotated[int, Option("how many", "-n")] = 10,
    ratio: Annotated[float | None, Option("how much")] = None,
    all: Annotated[bool, Option("everything")] = False,
    tag: Annotated[list[str] | None, Option("may be repeated")] = None,
    kind: Annotated[Literal["red", "blue"] | None, Option("which")] = None,
) -> int:
    """Fetches."""
    return 0


def parsed(*words: str) -> dict[str, object]:
    return parse(words, parameters_of(fetch), "paceline fetch")


def refused(*words: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parsed(*words)
    return caught.value


@pytest.mark.parametrize("name", frame.COMMANDS)
def test_every_command_in_the_table_exists_and_has_help_with_an_example(name: str, enter: Enter) -> None:
    command = getattr(import_module(f"paceline.cli.{frame.COMMANDS[name].module}"), name.split()[-1])
    page = enter(*name.split(), "--help")
    assert page.code == 0
    assert page.out.count(f"paceline {name}") >= 2, "the usage, and at least one example"
    assert all(one.mark.help for one in parameters_of(command))


def test_help_lists_all_commands_and_the_exit_codes(enter: Enter) -> None:
    for words in ([], ["--help"], ["-h"], ["help"], ["--store", "sqlite:///x.db", "--help"]):
        overview = enter(*words)
        assert overview.code == 0
        assert overview.err == ""
        assert all(name in overview.out for name in frame.COMMANDS)
        assert "124 timed out" in overview.out


def test_help_for_one_command_comes_before_or_after_its_name(enter: Enter) -> None:
    assert (
        enter("help", "run").out == enter("run", "--help").out == enter("--help", "run").out == enter("run", "-h").out
    )


def test_the_version_is_printed_and_nothing_else(enter: Enter) -> None:
    assert enter("--version").out.startswith("paceline 0.")


def test_an_unknown_command_is_a_usage_error_with_a_guess(enter: Enter) -> None:
    typed = enter("statsu")
    assert (typed.code, typed.out) == (2, "")
    assert "there is no command 'statsu'" in typed.err
    assert "did you mean paceline ps?" in enter("pss").err
    assert "did you mean paceline db check?" in enter("db", "chekc").err


def test_options_stand_before_or_after_the_command(enter: Enter) -> None:
    before = enter("--store", "nonsense", "db", "check")
    assert before == enter("db", "--store", "nonsense", "check") == enter("db", "check", "--store=nonsense")
    assert before.code == 2
    assert "does not name a store" in before.err


def test_an_error_is_json_on_standard_error_when_json_was_asked_for(enter: Enter) -> None:
    for words in (["-o", "json"], ["-ojson"], ["--output=json"]):
        typed = enter("run", "nowhere.py:f", *words)
        assert (typed.code, typed.out) == (3, "")
        assert json.loads(typed.err)["error"]["code"] == "no_such_file"


def test_a_group_without_a_command_lists_its_commands(enter: Enter) -> None:
    typed = enter("db")
    assert "db backup" in typed.out
    assert "submit" not in typed.out


def test_a_mistake_of_ours_is_one_error_and_a_traceback_only_on_request(
    enter: Enter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> int:
        raise RuntimeError("oh \x1b[31mno")

    monkeypatch.setattr("paceline.cli.setup.init", fails)
    monkeypatch.setattr("paceline.cli.arguments.parameters_of", lambda _: [])
    monkeypatch.setattr("paceline.cli.main._run", fails)
    typed = enter("init")
    assert typed.code == 1
    assert "this should not have happened" in typed.err
    assert "\x1b" not in typed.err
    monkeypatch.setenv("PACELINE_DEBUG", "1")
    assert frame.main(["init"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_130_and_silent(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("paceline.cli.main._run", interrupted)
    assert enter("ps") == (130, "", "")


def test_what_the_system_refuses_is_an_error_with_the_file(enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: object) -> int:
        raise PermissionError(13, "Permission denied", "/etc/shadow")

    monkeypatch.setattr("paceline.cli.main._run", refuses)
    typed = enter("ps")
    assert typed.code == 1
    assert "Permission denied" in typed.err
    assert "/etc/shadow" in typed.err


def test_a_reader_that_goes_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert frame.main(["--help"]) == 0


def test_options_and_words_mix_and_arrive_with_their_types() -> None:
    values = parsed(
        "-n", "3", "apple", "--tag", "a", "pear", "--ratio=0.5", "--all", "plum", "--tag=b", "--kind", "red"
    )
    assert values == {
        "name": "apple", "others": ["pear", "plum"], "most": 3, "ratio": 0.5, "all": True, "tag": ["a", "b"],
        "kind": "red",
    }  # fmt: skip


def test_what_is_not_said_has_its_default() -> None:
    assert parsed("apple") == {
        "name": "apple", "others": [], "most": 10, "ratio": None, "all": False, "tag": None, "kind": None,
    }  # fmt: skip


@pytest.mark.parametrize("word", ["-5", "-", "-.5", "- a list item", "-5 degrees = cold", ""])
def test_what_looks_like_an_option_but_is_none_is_a_word(word: str) -> None:
    assert parsed(word)["name"] == word


def test_everything_behind_two_dashes_is_a_word() -> None:
    assert parsed("apple", "--", "--all", "-n")["others"] == ["--all", "-n"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "NAME is missing"),
        (["a", "--mots", "3"], "there is no option '--mots'"),
        (["a", "--most", "many"], "--most cannot be this"),
        (["a", "--most"], "--most needs a value"),
        (["a", "--most", "--all"], "--most needs a value"),
        (["a", "--all=yes"], "--all takes no value"),
        (["a", "--kind", "green"], "--kind cannot be this"),
        (["a", "--ratio", "x"], "--ratio cannot be this"),
    ],
)
def test_each_way_to_use_a_command_wrongly_is_named(words: list[str], what: str) -> None:
    problem = refused(*words)
    assert problem.what == what
    assert problem.where == "paceline fetch"


def test_a_misspelt_option_or_choice_gets_a_guess() -> None:
    assert "did you mean --most?" in refused("a", "--mots", "3").todo
    assert "did you mean blue?" in refused("a", "--kind", "bleu").todo


def test_the_command_is_found_behind_options_with_values() -> None:
    first, rest = leading(["-n", "3", "apple", "--all", "pear"], parameters_of(fetch), 1)
    assert (first, rest) == (["apple"], ["-n", "3", "--all", "pear"])


def test_foreign_text_never_acts_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.line(HOSTILE)
    screen.note(HOSTILE)
    screen.lines(HOSTILE)
    screen.cells(Cell(HOSTILE, "red"))
    screen.table(["x"], [[HOSTILE], [Cell(HOSTILE, "bold")]])
    screen.facts([("x", HOSTILE)])
    screen.problem(Problem(code="c", what=HOSTILE, where=HOSTILE, found=HOSTILE, allowed=HOSTILE, todo=HOSTILE))
    Screen(as_json=True).problem(Problem(code="c", what=HOSTILE))
    screen.json({"x": HOSTILE})
    screen.json_line(HOSTILE)
    shown = "".join(capsys.readouterr())
    assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    assert "\\x1b[31m" in shown


def test_json_keeps_letters_readable_and_values_exact() -> None:
    assert dumps({"a": "Überfluß, 日本"}) == '{"a": "Überfluß, 日本"}'
    assert json.loads(dumps(HOSTILE)) == HOSTILE


def test_a_table_is_cut_to_the_terminal_and_never_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [["j1", "word " * 30], ["j2", "短い" * 30]]
    Screen().table(["id", "text"], rows)
    assert "…" not in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    Screen(color=False).table(["id", "text"], rows)
    lines = terminal.getvalue().splitlines()
    assert max(width_of(line) for line in lines) <= 40
    assert lines[1].endswith("…")


def test_wide_letters_take_two_columns() -> None:
    assert width_of("日本") == 4
    assert cut("日本語", 4) == "日…"


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "asked", "colored"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({}, False, False),
    ],
)
def test_colours_only_where_they_are_wanted(
    environment: dict[str, str], asked: bool, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Screen(color=asked).colored(Terminal()) is colored
    assert Screen(color=asked).colored(io.StringIO()) is False


def test_help_imports_no_command_and_nothing_heavy() -> None:
    """What the frame imports before it knows the command, followed through our own modules."""
    source = Path(frame.__file__).parents[1]
    heavy = {"asyncio", "rich", "typer", "argparse", "uvloop", "apsw", "msgspec", "paceline.app", "paceline.store.sql"}
    seen: set[str] = set()
    waiting = ["paceline", "paceline.cli.main", "paceline.cli.help"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        place = source.joinpath(*name.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if name.split(".")[0] == "paceline" and file.exists():
            waiting += _imports_at_once(ast.parse(file.read_text("utf-8")))
    assert not seen & heavy


def _imports_at_once(tree: ast.Module) -> list[str]:
    """Modules that are imported when the module is; what stands in functions or under TYPE_CHECKING is not."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found
