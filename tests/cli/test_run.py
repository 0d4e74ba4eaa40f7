"""`paceline run`: what a person gives a job, what comes back, and which exit code says how it went."""

import io
import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Enter

AGENTS = """
from paceline import Context, PermanentError, TransientError, agent

@agent(max_concurrency=None)
async def run_double(n: int) -> int:
    return 2 * n

@agent(max_concurrency=None)
async def run_shout(text: str) -> str:
    print("from the agent")
    return text.upper()

@agent(max_concurrency=None)
async def run_echo(value):
    return value

@agent(max_concurrency=None)
async def run_hostile() -> str:
    return "red \\x1b[31m\\nline"

@agent(max_concurrency=None)
async def run_fail(n: int) -> int:
    raise PermanentError("not with \\x1b[31m this")

@agent(max_concurrency=None, retries=2)
async def run_flaky(ctx: Context) -> int:
    ctx.log("trying")
    ctx.progress(0.5, "half")
    if ctx.attempt == 1:
        raise TransientError("not yet", retry_after=0.01)
    return ctx.attempt

async def plain(n: int = 7) -> int:
    return n
"""


@pytest.fixture
def run(enter: Enter, folder: Path) -> Enter:
    """Types `paceline run agents.py:FUNCTION ...` in a folder that has them."""
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
    return lambda function, *words: enter("run", f"agents.py:{function}", *words)


def test_the_result_stands_alone_on_standard_output(run: Enter) -> None:
    assert run("run_double", "21") == (0, "42\n", "")


def test_text_is_printed_as_text_and_as_json_on_request(run: Enter) -> None:
    typed = run("run_shout", "hello there")
    assert (typed.code, typed.out) == (0, "HELLO THERE\n")
    assert typed.err == "from the agent\n"
    assert run("run_shout", "hello", "-o", "json").out == '"HELLO"\n'


def test_other_results_are_json(run: Enter) -> None:
    assert json.loads(run("run_echo", '{"a": [1, null]}').out) == {"a": [1, None]}
    assert run("run_echo").out == "null\n"


def test_input_is_json_where_that_fits_and_text_where_only_that_fits(run: Enter) -> None:
    assert run("run_echo", "42").out == "42\n"
    assert run("run_shout", "42").out == "42\n"
    assert run("run_shout", '"quoted"').out == "QUOTED\n"
    assert run("run_echo", "[not json").out == "[not json\n"


def test_input_comes_from_a_file_or_from_standard_input(
    run: Enter, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "in.json").write_text("[1, 2]")
    (folder / "in.txt").write_text("some words\n")
    assert json.loads(run("run_echo", "@in.json").out) == [1, 2]
    assert run("run_echo", "@in.txt").out == "some words\n"
    assert run("run_echo", "@@someone").out == "@someone\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"5\n")))
    assert run("run_double", "-").out == "10\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["run_double", "x"], 2, "does not fit"),
        (["run_double", '{"n": 1,}'], 2, "line 1, column 9"),
        (["run_double", "@nowhere.json"], 3, "does not exist"),
        (["run_double", "@."], 2, "cannot be read"),
        (["run_doubel", "1"], 3, "did you mean run_double?"),
        (["run_double", "1", "--priority", "urgent"], 2, "not a priority"),
        (["run_double", "1", "--timeout", "5"], 2, "has no unit"),
        (["run_double", "1", "--retries", "many"], 2, "a whole number"),
        (["run_double", "1", "--after", "j99"], 3, "j99"),
        (["run_double", "1", "2"], 2, "more words"),
        (["run_double", "1", "--store", "sqlite:////no/such/folder/x.db"], 2, "folder of the store does not exist"),
    ],
)
def test_what_cannot_be_run_is_said_and_nothing_is_printed(run: Enter, words: list[str], code: int, says: str) -> None:
    typed = run(*words)
    assert (typed.code, typed.out) == (code, "")
    assert says in typed.err


def test_a_broken_json_file_is_refused_with_its_place(run: Enter, folder: Path) -> None:
    (folder / "in.json").write_text('[1,\n 2,\n "x" 3]')
    typed = run("run_echo", "@in.json")
    assert typed.code == 2
    assert "in.json, line 3" in typed.err


def test_a_failed_job_is_one_error_with_the_line_that_failed(run: Enter) -> None:
    typed = run("run_fail", "1")
    assert (typed.code, typed.out) == (1, "")
    assert "PermanentError" in typed.err
    assert 'agents.py", line' in typed.err
    assert "paceline show j1" in typed.err
    assert "\x1b" not in typed.err
    assert json.loads(run("run_fail", "1", "-ojson").err)["error"]["code"] == "job_failed"


def test_log_lines_and_retries_are_told_beside_the_result(run: Enter) -> None:
    typed = run("run_flaky")
    assert (typed.code, typed.out) == (0, "2\n")
    assert typed.err.count("j1  trying") == 2
    assert "tried again" in typed.err


def test_a_result_cannot_act_on_the_terminal(run: Enter) -> None:
    assert run("run_hostile").out == "red \\x1b[31m\nline\n"
    assert json.loads(run("run_hostile", "-o", "json").out) == "red \x1b[31m\nline"


def test_a_plain_function_needs_no_decorator(run: Enter) -> None:
    assert run("plain").out == "7\n"


def test_an_agent_of_an_app_is_run_by_its_name(enter: Enter, folder: Path) -> None:
    (folder / "more.py").write_text(AGENTS.replace("run_double", "run_double_of_an_app"), encoding="utf-8")
    assert enter("--app", "more.py", "run", "run_double_of_an_app", "4").out == "8\n"
    assert enter("run", "run_double_of_an_app", "4", "--app", "./more.py").out == "8\n"
    assert "did you mean" in enter("--app", "more.py", "run", "run_double_of_an_ap", "4").err


def test_a_target_without_code_says_how_to_name_it(run: Enter, enter: Enter) -> None:
    assert "--app MODULE" in enter("run", "run_double", "4").err
    typed = enter("run", "agents.py")
    assert typed.code == 2
    assert "agents.py:run_double" in typed.err


def test_the_same_key_is_the_same_job_and_another_input_a_conflict(run: Enter) -> None:
    assert run("run_double", "4", "--key", "k").out == "8\n"
    assert run("run_double", "4", "--key", "k").out == "8\n"
    typed = run("run_double", "5", "--key", "k")
    assert (typed.code, typed.out) == (4, "")


def test_a_job_may_wait_for_another(run: Enter) -> None:
    run("run_double", "1")
    run("run_fail", "1")
    assert run("run_double", "2", "--after", "j1").code == 0
    assert run("run_double", "2", "--after", "j2:finished").code == 0
    typed = run("run_double", "2", "--after", "j2")
    assert typed.code == 1
    assert "j2" in typed.err
