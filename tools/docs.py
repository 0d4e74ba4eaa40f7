"""Writes the generated parts of the documentation; with --check it only says which are out of date.

A generated part stands between `<!-- generated: NAME (python tools/docs.py) -->` and `<!-- end -->`.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from paceline import config, errors
from paceline.cli.arguments import Argument, Parameter, parameters_of
from paceline.cli.main import COMMANDS
from paceline.cli.shell import everywhere
from paceline.core.durations import format_duration
from paceline.core.explanation import Why
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import diagram
from paceline.core.problem import Problem
from paceline.core.retrying import COUNTED, UNCOUNTED
from paceline.events import Kind

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "paceline"
PAGES = ("README.md", "ARCHITECTURE.md", "docs/reference/*.md", "docs/guide/*.md")
PART = re.compile(r"(<!-- generated: ([a-z-]+) [^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
NOT_FOR_PEOPLE = ("testing",)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def lifecycle() -> str:
    """The law of a job's life as a picture."""
    return f"```mermaid\n{diagram()}\n```"


def settings() -> str:
    """Every setting with its range, its default and its environment variable."""
    rows = []
    for setting in fields(config.Settings):
        name = setting.name
        variable = "–" if name == "limits" else f"`PACELINE_{name.upper()}`"
        rows.append((f"`{name}`", _range_of(name), _default_of(name), variable))
    return table(("setting", "what is allowed", "default", "environment"), rows)


def _range_of(name: str) -> str:
    if name in config._RANGES:
        return "{:,} to {:,}".format(*config._RANGES[name])
    if name in config._DURATIONS:
        return " to ".join(format_duration(edge) for edge in config._DURATIONS[name])
    if name in config._SWITCHES:
        return "true or false; in the environment " + ", ".join(f"`{word}`" for word in config._ON + config._OFF)
    if name in config._WORDS:
        return ", ".join(f"`{word}`" for word in config._WORDS[name])
    return "a table: pool = units, 1 to 1,000,000" if name == "limits" else "a `sqlite:///` or `postgresql://` URL"


def _default_of(name: str) -> str:
    value = getattr(config.Settings(), name)
    if name in config._DURATIONS:
        return format_duration(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"`{value}`" if value else "none"


def events() -> str:
    """Every kind of event with how loud it is."""
    return table(("kind", "severity"), ((f"`{kind.word}`", kind.severity.name.lower()) for kind in Kind))


def failure_classes() -> str:
    """The classes of failure and what each costs."""
    cost = {
        **dict.fromkeys(COUNTED, "tried again, costs one retry"),
        **dict.fromkeys(UNCOUNTED, "tried again, costs nothing"),
    }
    return table(("class", "then"), ((f"`{one.value}`", cost.get(one, "never tried again")) for one in FailureClass))


def reasons() -> str:
    """The reason codes of explanations."""
    return ", ".join(f"`{why.value}`" for why in Why)


def error_classes() -> str:
    """Every error class with its exit code and its own sentence."""
    rows = []
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and kind.__module__ == errors.__name__:
            leaves = str(kind.exit_code) if issubclass(kind, errors.PacelineError) else "–"
            rows.append((f"`{name}`", leaves, inspect.cleandoc(kind.__doc__ or "").rstrip(".")))
    return table(("class", "exit code", "when"), rows)


def error_codes() -> str:
    """Every code that the source can raise, with its class and what it says."""
    found: dict[str, tuple[set[str], list[str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] not in NOT_FOR_PEOPLE:
            for code, kind, what in codes_in(ast.parse(path.read_text("utf-8"))):
                kinds, words = found.setdefault(code, (set(), []))
                kinds.add(kind)
                words += [what] if what and what not in words else []
    rows = [
        (f"`{code}`", ", ".join(f"`{kind}`" for kind in sorted(kinds)), "; ".join(words))
        for code, (kinds, words) in sorted(found.items())
    ]
    return table(("code", "class", "what it says"), rows)


def codes_in(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(code, class, what) of each error that a file makes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        said = {word.arg: word.value for word in node.keywords}
        if node.func.id == "Meaning" and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value), "StoreError", _words(node.args[1])
        elif isinstance(said.get("code"), ast.Constant):
            code = str(ast.literal_eval(said["code"]))
            yield code, _class_of(code, node.func.id), _words(said.get("what"))


def _class_of(code: str, name: str) -> str:
    """A problem that core raises reaches the caller as the class its code stands for."""
    kind = getattr(errors, name, Problem)
    return type(errors.as_error(Problem(code=code, what=""))).__name__ if kind is Problem else name


def _words(node: ast.expr | None) -> str:
    """The sentence in the source, with … for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.IfExp):
        return f"{_words(node.body)}; {_words(node.orelse)}"
    return ""


def overview() -> str:
    """The commands, one line each."""
    return table(("command", "what it does"), ((f"`paceline {name}`", one.summary) for name, one in COMMANDS.items()))


def commands() -> str:
    """Every command with what it takes."""
    return "\n\n".join(_page(name) for name in COMMANDS)


def _page(name: str) -> str:
    command: Callable[..., int] = getattr(import_module(f"paceline.cli.{COMMANDS[name].module}"), name.split()[-1])
    takes = parameters_of(command)
    places = [one for one in takes if isinstance(one.mark, Argument)]
    usage = " ".join([f"paceline {name}", *map(_place, places)])
    text = inspect.cleandoc(command.__doc__ or "")
    about, _, examples = text.partition("Examples:")
    parts = [f"## paceline {name}", f"`{usage}`", about.strip()]
    if takes:
        parts.append(table(("takes", "what it is"), ((f"`{_spelled(one)}`", one.mark.help) for one in takes)))
    if examples.strip():
        parts.append("```\n" + inspect.cleandoc(examples) + "\n```")
    return "\n\n".join(parts)


def common_options() -> str:
    """The options that each command takes."""
    return table(("option", "what it is"), ((f"`{_spelled(one)}`", one.mark.help) for one in parameters_of(everywhere)))


def _place(one: Parameter) -> str:
    text = one.placeholder + ("..." if one.many else "")
    return text if one.required else f"[{text}]"


def _spelled(one: Parameter) -> str:
    if isinstance(one.mark, Argument):
        return one.placeholder
    short = f"{one.mark.short}, " if one.mark.short else ""
    return f"{short}{one.shown}" + ("" if one.flag else f" {one.placeholder}")


PARTS: dict[str, Callable[[], str]] = {
    "lifecycle": lifecycle,
    "settings": settings,
    "events": events,
    "failure-classes": failure_classes,
    "reasons": reasons,
    "error-classes": error_classes,
    "error-codes": error_codes,
    "overview": overview,
    "commands": commands,
    "common-options": common_options,
}


def renewed(text: str) -> str:
    """A page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n\n{found[4]}", text)


def main(words: Sequence[str]) -> int:
    """Writes what is out of date, or names it."""
    stale = []
    for page in (page for pattern in PAGES for page in sorted(ROOT.glob(pattern))):
        text = page.read_text("utf-8")
        if (new := renewed(text)) != text:
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in words:
                page.write_text(new, "utf-8")
    for name in stale:
        print(f"{name}: {'out of date, run python tools/docs.py' if '--check' in words else 'written'}")
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
