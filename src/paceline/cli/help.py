"""What `--help` prints, made from the table of commands and from their signatures."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.cli.arguments import Argument, Command, Parameter, parameters_of
from paceline.cli.shell import everywhere

if TYPE_CHECKING:
    from paceline.cli.main import Entry

PURPOSE = "Paceline runs many AI agents in parallel without losing work and without running over any limit."
EXIT_CODES = "0 done, 1 failed, 2 usage, 3 not found, 4 refused, 124 timed out, 130 interrupted"


def overview(commands: Mapping[str, "Entry"]) -> str:
    """All commands, one line each."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, entry in commands.items():
        groups.setdefault(entry.group, []).append((name, entry.summary))
    blocks = [_block(group, lines, 10) for group, lines in groups.items()]
    usage = "paceline COMMAND [options]       paceline COMMAND --help says more, with examples"
    return "\n".join([PURPOSE, "", f"  {usage}", "", *blocks, _everywhere(), f"Exit codes: {EXIT_CODES}", ""])


def page(name: str, command: Command, parameters: Sequence[Parameter]) -> str:
    """One command: what it does, what it takes, examples."""
    places = [one for one in parameters if isinstance(one.mark, Argument)]
    options = [one for one in parameters if one not in places]
    usage = " ".join(["paceline", name, *map(_place, places), *(["[options]"] if options else [])])
    blocks = [f"  {usage}", "", inspect.cleandoc(command.__doc__ or ""), ""]
    if places:
        blocks.append(_block("Arguments", [(one.placeholder, _described(one)) for one in places]))
    if options:
        blocks.append(_block("Options", [(_spelled(one), _described(one)) for one in options]))
    return "\n".join([*blocks, _everywhere()])


def _everywhere() -> str:
    return _block("With every command", [(_spelled(one), one.mark.help) for one in parameters_of(everywhere)])


def _block(title: str, lines: Iterable[tuple[str, str]], least: int = 0) -> str:
    lines = list(lines)
    widest = max([least, *(len(left) for left, _ in lines if len(left) <= 34)])
    return "\n".join([title, *(f"  {left.ljust(widest)}  {right}".rstrip() for left, right in lines), ""])


def _place(parameter: Parameter) -> str:
    text = parameter.placeholder.removesuffix("...") + ("..." if parameter.many else "")
    return text if parameter.required else f"[{text}]"


def _spelled(parameter: Parameter) -> str:
    assert not isinstance(parameter.mark, Argument)
    short = f"{parameter.mark.short}, " if parameter.mark.short else ""
    return f"{short}{parameter.shown}" + ("" if parameter.flag else f" {parameter.placeholder}")


def _described(parameter: Parameter) -> str:
    says = not parameter.flag and isinstance(parameter.default, str | int)
    return parameter.mark.help + (f" (default: {parameter.default})" if says else "")
