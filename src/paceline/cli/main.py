"""The frame: which command lives where, and what is the same for all of them. A command is imported when it is used."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from paceline.cli.arguments import Command
    from paceline.errors import PacelineError


class Entry(NamedTuple):
    """One command: the function of that name in a module, what it is for, and the heading it stands under."""

    module: str
    summary: str
    group: str


START, WORK, LOOK, CARE = "Start here", "Work", "Look", "Care"
COMMANDS = {
    "demo": Entry("demo", "see it work in a few seconds; needs no key and no network", START),
    "init": Entry("setup", "make paceline.toml and a first agent in a folder", START),
    "run": Entry("run", "run one job here and print its result", START),
    "up": Entry("up", "run a node: it takes jobs from the store until it is stopped", START),
    "submit": Entry("jobs", "put jobs into the queue", WORK),
    "wait": Entry("jobs", "wait for jobs to end", WORK),
    "cancel": Entry("jobs", "end jobs and everything they started", WORK),
    "retry": Entry("jobs", "try dead jobs again", WORK),
    "dead": Entry("jobs", "list jobs that failed or timed out", WORK),
    "ps": Entry("look", "list jobs", LOOK),
    "show": Entry("look", "everything about one job", LOOK),
    "explain": Entry("look", "why a job is not running", LOOK),
    "nodes": Entry("nodes", "list nodes, what they run and whether they agree", LOOK),
    "logs": Entry("log", "what a job has written", LOOK),
    "events": Entry("log", "what has happened, in order", LOOK),
    "doctor": Entry("doctor", "check this host, the store and the settings", CARE),
    "db migrate": Entry("db", "bring the store to this version's schema", CARE),
    "db backup": Entry("db", "copy the store while it is in use", CARE),
    "db check": Entry("db", "look for damage in the store", CARE),
    "db copy": Entry("db", "move a store, from a file to Postgres or back", CARE),
}
GROUPS = {name.partition(" ")[0] for name in COMMANDS if " " in name}
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and answers the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _outcome(words)
    loops = sys.modules.get("paceline.cli.loops")
    return code if loops is None else int(loops.leave(code))


def _outcome(words: list[str]) -> int:
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _leave_the_pipe()
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _report(error, words)


def _run(words: list[str]) -> int:
    from paceline.cli.arguments import leading, parameters_of, parse
    from paceline.cli.shell import everywhere

    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    common = parameters_of(everywhere)
    first, rest = leading(words, common, 1)
    if first and first[0] in GROUPS:
        second, rest = leading(rest, common, 1)
        first += second
    name = " ".join(first)
    asks = {"-h", "--help"} & set(rest[: rest.index("--")] if "--" in rest else rest)
    if not first or name in GROUPS:
        return _without_command(name, asks or not parse(rest, common, "paceline")["version"])
    module = import_module(f"paceline.cli.{_entry(name).module}")
    command: Command = getattr(module, name.split()[-1])
    own = parameters_of(command)
    if asks:
        from paceline.cli.help import page

        sys.stdout.write(page(name, command, own))
        return 0
    values = parse(rest, [*own, *common], f"paceline {name}")
    shell = everywhere(None, **{one.name: values.pop(one.name) for one in common})
    return command(shell, **values)


def _entry(name: str) -> Entry:
    if name in COMMANDS:
        return COMMANDS[name]
    from paceline.core.names import closest, shown
    from paceline.errors import UsageError

    likely = closest(name, COMMANDS)
    raise UsageError(
        code="unknown_command", what=f"there is no command {shown(name)}", allowed=", ".join(COMMANDS),
        todo=f"did you mean paceline {likely[0]}?" if likely else "paceline --help",
    )  # fmt: skip


def _without_command(group: str, asks: object) -> int:
    """Help for all commands or for a group of them, or the version."""
    if asks:
        from paceline.cli.help import overview

        chosen = {name: entry for name, entry in COMMANDS.items() if name.startswith(group)}
        sys.stdout.write(overview(chosen))
        return 0
    from importlib.metadata import version

    sys.stdout.write(f"paceline {version('paceline')}\n")
    return 0


def _report(error: Exception, words: list[str]) -> int:
    """One clear error on standard error; the traceback only for those who ask with PACELINE_DEBUG=1."""
    from paceline.cli.render import Screen
    from paceline.core.problem import Problem
    from paceline.errors import as_error

    if os.environ.get("PACELINE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    known = as_error(error) if isinstance(error, Problem) else _unforeseen(error)
    as_json = any(one in ("-ojson", "-o=json", "--output=json") for one in words) or any(
        pair in (["-o", "json"], ["--output", "json"]) for pair in map(list, pairwise(words))
    )
    Screen(as_json=as_json, color="--no-color" not in words).problem(known)
    return known.exit_code


def _unforeseen(error: Exception) -> "PacelineError":
    """What the system refused, or a mistake of ours."""
    from paceline.core.names import shown
    from paceline.errors import PacelineError

    if isinstance(error, OSError):
        return PacelineError(
            code="system_error", what=error.strerror or "the system refused this", where=str(error.filename or ""),
            found=type(error).__name__, todo="paceline doctor looks for causes",
        )  # fmt: skip
    return PacelineError(
        code="bug", what="this should not have happened", found=f"{type(error).__name__}: {shown(str(error))}",
        todo="PACELINE_DEBUG=1 shows where; please report it",
    )  # fmt: skip


def _leave_the_pipe() -> None:
    """Whoever read has gone; what is still buffered must not raise again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
