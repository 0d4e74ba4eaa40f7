"""The house rules: who may import whom, how large things may grow. Each rule is shown to catch a planted violation."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import paceline

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "paceline"
VOCABULARY = "core errors events clock config payloads msgspec"
ROOMS = "store bus workers agents units node client"

# A room imports itself, the standard library and what stands here. What has no row imports nothing of ours.
ALLOWED = {
    "core": "",
    "errors events clock": "core",
    "payloads": "core errors msgspec",
    "config": "core errors",
    "store": f"{VOCABULARY} apsw psycopg",
    "bus": f"{VOCABULARY} psycopg",
    "agents telemetry": VOCABULARY,
    "workers": f"{VOCABULARY} psutil",
    "units": f"{VOCABULARY} store.protocol",
    "client": f"{VOCABULARY} units store.protocol bus.protocol",
    "node": f"{VOCABULARY} {ROOMS} psutil",
    "app opening sync care": f"{VOCABULARY} {ROOMS} app opening sync uvloop",
    "cli": f"{VOCABULARY} app opening care health client agents store.maintenance demo rich uvloop",
    "health": f"{VOCABULARY} {ROOMS} opening apsw",
    "demo": f"{VOCABULARY} agents",
    "web": f"{VOCABULARY} app client",
    "testing": f"{VOCABULARY} {ROOMS} app",
    "__init__": f"{VOCABULARY} agents client app",
    "__main__": "cli",
}
NOT_IN_CORE = ("time", "random", "secrets", "os", "asyncio", "logging", "threading", "subprocess", "socket", "sqlite3")
NEVER_IMPORTED = ("pickle", "marshal", "shelve", "dill", "cloudpickle")
NEVER_CALLED = ("eval", "exec", "yaml.load")
NEVER_CALLED_IN_CORE = (".now", ".utcnow", ".today")  # core may calculate with dates but never asks what time it is
SLEEPS = ("sleep", "time.sleep", "asyncio.sleep")  # but sleep(0) only lets other tasks run
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FILE, INIT, LOOP, FUNCTION, VERBS, PUBLIC = 400, 60, 150, 60, 12, 25
# (file, finding): why it may stay. An entry that is not needed any more fails the test as well.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def within(name: str, names: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in names.split())


def imported(tree: ast.Module) -> Iterator[str]:
    """Every imported name in full, late and type-checking imports too; `from a import b` counts as `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{'relative' if node.level else node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (module + alias.name for alias in node.names)


def calls(tree: ast.Module) -> list[tuple[str, str]]:
    return [(ast.unparse(node.func), ast.unparse(node)) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def import_rules(file: str, tree: ast.Module) -> Iterator[str]:
    room = file.split("/")[0].removesuffix(".py")
    allowed = " ".join([room, *(names for rooms, names in ALLOWED.items() if room in rooms.split())])
    for name in imported(tree):
        top, _, inner = name.partition(".")
        known = within(inner, allowed) if top == "paceline" else top in {*sys.stdlib_module_names, *allowed.split()}
        if not known or top in NEVER_IMPORTED or (room == "core" and top in NOT_IN_CORE):
            yield f"imports {name if top == 'paceline' else top}"


def behaviour_rules(file: str, tree: ast.Module, text: str) -> Iterator[str]:
    in_core = file.startswith("core/")
    for name, _ in calls(tree):
        if name in NEVER_CALLED or (in_core and name.endswith(NEVER_CALLED_IN_CORE)):
            yield f"calls {name}"
    yield from (f"async {node.name}" for node in ast.walk(tree) if in_core and isinstance(node, ast.AsyncFunctionDef))
    yield from (f"says {word}" for word in ("TODO", "FIXME", "XXX") if word in text)


def size_rules(file: str, tree: ast.Module, text: str) -> Iterator[str]:
    room, _, name = file.rpartition("/")
    limit = INIT if name == "__init__.py" else LOOP if room == "node" and name != "node.py" else FILE
    if text.count("\n") > limit:
        yield f"is longer than {limit} lines"
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode) and (node.end_lineno or 0) - node.lineno >= FUNCTION:
            yield f"{node.name} is longer than {FUNCTION} lines"
        if isinstance(node, ast.ClassDef) and file.startswith(("store/protocol", "store/rooms/")):
            if sum(isinstance(one, FunctionNode) and one.name[0] != "_" for one in node.body) > VERBS:
                yield f"{node.name} has more than {VERBS} verbs"


def findings(file: str, text: str) -> list[str]:
    tree = ast.parse(text)
    return [*import_rules(file, tree), *behaviour_rules(file, tree, text), *size_rules(file, tree, text)]


def waits(text: str) -> list[str]:
    return [call for name, call in calls(ast.parse(text)) if name in SLEEPS and not call.endswith("(0)")]


def test_no_file_breaks_a_house_rule_without_a_reason() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    assert {(file, finding) for file, text in files.items() for finding in findings(file, text)} == set(EXCEPTIONS)


def test_only_tests_of_real_processes_wait_for_time_to_pass() -> None:
    quiet = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] != "processes"]
    assert {path.name: found for path in quiet if (found := waits(path.read_text("utf-8")))} == {}


def test_the_public_interface_is_small_and_exists() -> None:
    assert len(paceline.__all__) <= PUBLIC
    assert all(hasattr(paceline, name) for name in paceline.__all__)


PLANTED = {
    ("core/a.py", "imports time"): "import time",
    ("core/a.py", "imports paceline.errors.NotFound"): "from paceline.errors import NotFound",
    ("core/a.py", "calls datetime.now"): "now = datetime.now()",
    ("core/a.py", "async decide"): "async def decide(): ...",
    ("store/a.py", "imports paceline.bus"): "from paceline import bus",
    ("agents/a.py", "imports apsw"): "def late():\n    import apsw",
    ("client.py", "imports paceline.store.sqlite.open"): "from paceline.store.sqlite import open",
    ("cli/a.py", "imports paceline.Paceline"): "from paceline import Paceline",
    ("app.py", "imports paceline.testing"): "import paceline.testing",
    ("web/a.py", "imports relative"): "from ..client import Client",
    ("newcomer.py", "imports paceline.core.model"): "from paceline.core import model",
    ("app.py", "imports pickle"): "import pickle",
    ("app.py", "calls eval"): "eval('1')",
    ("app.py", "says TODO"): "# TODO: later",
    ("app.py", f"is longer than {FILE} lines"): "\n" * (FILE + 1),
    ("bus/__init__.py", f"is longer than {INIT} lines"): "\n" * (INIT + 1),
    ("node/dispatcher.py", f"is longer than {LOOP} lines"): "\n" * (LOOP + 1),
    ("app.py", f"slow is longer than {FUNCTION} lines"): "def slow():\n" + "    ...\n" * FUNCTION,
    ("store/rooms/a.py", f"Jobs has more than {VERBS} verbs"): "class Jobs:\n" + " def a(): ...\n" * (VERBS + 1),
}


@pytest.mark.parametrize("planted", PLANTED, ids=": ".join)
def test_a_planted_violation_is_found(planted: tuple[str, str]) -> None:
    assert findings(planted[0], PLANTED[planted]) == [planted[1]]


def test_what_the_rules_allow_is_left_alone() -> None:
    assert findings("client.py", "from paceline.store.protocol import Store\nimport asyncio, msgspec") == []
    assert findings("core/a.py", "from paceline.core.problem import Problem\nfrom datetime import timedelta") == []
    assert waits("await asyncio.sleep(0)\nawait ctx.sleep(60)\ntime.sleep(1)") == ["time.sleep(1)"]
