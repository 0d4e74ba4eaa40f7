"""What a command takes, read from its function's signature: words become values, or one clear error."""

import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from paceline.core.names import closest, shown
from paceline.errors import UsageError

Command = Callable[..., int]
"""`def ps(shell: Shell, state: Annotated[str | None, Option(...)] = None) -> int`; answers the exit code."""


class Argument(NamedTuple):
    """A word by its place: `Annotated[str, Argument("the job")]`; a list takes all that are left."""

    help: str
    metavar: str = ""


class Option(NamedTuple):
    """A word by its name: `Annotated[int, Option("how many", "-n")]`; the long name is the parameter's own.

    A bool is a flag, a list may be given several times, a Literal names what is allowed.
    """

    help: str
    short: str = ""
    metavar: str = ""


class Parameter(NamedTuple):
    """One parameter of a command."""

    name: str
    mark: Argument | Option
    kind: type
    choices: tuple[str, ...]
    many: bool
    default: object
    required: bool

    @property
    def shown(self) -> str:
        """How messages and help name it."""
        return f"--{self.name.replace('_', '-')}" if isinstance(self.mark, Option) else self.placeholder

    @property
    def placeholder(self) -> str:
        """Stands for the value in help."""
        return self.mark.metavar or ("|".join(self.choices) or self.name.upper().replace("_", "-"))

    @property
    def flag(self) -> bool:
        """Takes no value."""
        return self.kind is bool


def parameters_of(command: Callable[..., object]) -> list[Parameter]:
    """The parameters of a command behind the first, which is the shell."""
    code = command.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    positional = code.co_varnames[: code.co_argcount]
    defaults = command.__defaults__ or ()
    known: dict[str, object] = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    known.update(command.__kwdefaults__ or {})
    return [_parameter(name, command.__annotations__[name], known) for name in names]


def parse(words: Sequence[str], parameters: Sequence[Parameter], where: str) -> dict[str, Any]:
    """The values for all parameters; options and plain words may come in any order."""
    options = {name: one for one in parameters for name in _spellings(one)}
    places = [one for one in parameters if isinstance(one.mark, Argument)]
    values: dict[str, Any] = {}
    plain: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            plain += rest
            break
        if not is_option(word):
            plain.append(word)
            continue
        name, attached = _split(word, options)
        parameter = options.get(name)
        if parameter is None:
            raise _unknown_option(name, options, where)
        _store(values, parameter, _value(parameter, attached, rest, options, where))
    _place(values, places, plain, where)
    for parameter in parameters:
        if parameter.name not in values:
            values[parameter.name] = (
                list(parameter.default) if isinstance(parameter.default, list) else parameter.default
            )
    return values


def leading(words: Sequence[str], parameters: Sequence[Parameter], count: int) -> tuple[list[str], list[str]]:
    """The first plain words, at most `count` of them, and everything else: options may stand before a command."""
    options = {name: one for one in parameters for name in _spellings(one)}
    first: list[str] = []
    others: list[str] = []
    rest = list(words)
    while rest and len(first) < count and rest[0] != "--":
        word = rest.pop(0)
        if not is_option(word):
            first.append(word)
            continue
        others.append(word)
        parameter = options.get(word)
        if parameter is not None and not parameter.flag and rest:
            others.append(rest.pop(0))
    return first, [*others, *rest]


def is_option(word: str) -> bool:
    """`-` alone and negative numbers are plain words, and so is what has a blank in front of any `=`."""
    return len(word) > 1 and word[0] == "-" and word[1] not in "0123456789." and " " not in word.partition("=")[0]


def _parameter(name: str, annotation: Any, defaults: dict[str, object]) -> Parameter:
    mark = annotation.__metadata__[0]
    kind, choices, many = _kind(annotation.__origin__)
    default = defaults.get(name, [] if many else None)
    return Parameter(name, mark, kind, choices, many, default, name not in defaults)


def _kind(annotation: Any) -> tuple[type, tuple[str, ...], bool]:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _kind(next(one for one in get_args(annotation) if one is not type(None)))
    if origin is list:
        kind, choices, _ = _kind(get_args(annotation)[0])
        return kind, choices, True
    if origin is Literal:
        return str, get_args(annotation), False
    return annotation, (), False


def _spellings(parameter: Parameter) -> list[str]:
    if isinstance(parameter.mark, Argument):
        return []
    return [parameter.shown, parameter.mark.short] if parameter.mark.short else [parameter.shown]


def _split(word: str, options: dict[str, Parameter]) -> tuple[str, str | None]:
    """`--name=value` and `-nVALUE` carry their value with them."""
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        return name, value if sign else None
    if word in options or word[:2] not in options or options[word[:2]].flag:
        return word, None
    return word[:2], word[2:].removeprefix("=")


def _value(
    parameter: Parameter, attached: str | None, rest: list[str], options: dict[str, Parameter], where: str
) -> object:
    if parameter.flag:
        if attached is not None:
            raise UsageError(
                code="bad_usage", what=f"{parameter.shown} takes no value", where=where, found=shown(attached)
            )
        return True
    if attached is None:
        if not rest or rest[0].partition("=")[0] in options:
            raise UsageError(
                code="bad_usage", what=f"{parameter.shown} needs a value", where=where, allowed=parameter.placeholder
            )
        attached = rest.pop(0)
    return _converted(parameter, attached, where)


def _converted(parameter: Parameter, text: str, where: str) -> object:
    if parameter.choices and text not in parameter.choices:
        likely = closest(text, parameter.choices)
        raise UsageError(
            code="bad_usage", what=f"{parameter.shown} cannot be this", where=where, found=shown(text),
            allowed=", ".join(parameter.choices), todo=f"did you mean {likely[0]}?" if likely else "",
        )  # fmt: skip
    try:
        return parameter.kind(text)
    except ValueError:
        allowed = {"int": "a whole number", "float": "a number"}.get(parameter.kind.__name__, parameter.placeholder)
        raise UsageError(
            code="bad_usage", what=f"{parameter.shown} cannot be this", where=where, found=shown(text), allowed=allowed
        ) from None


def _store(values: dict[str, Any], parameter: Parameter, value: object) -> None:
    if parameter.many:
        values.setdefault(parameter.name, []).append(value)
    else:
        values[parameter.name] = value


def _place(values: dict[str, Any], places: list[Parameter], plain: list[str], where: str) -> None:
    for parameter in places:
        if parameter.many:
            values[parameter.name] = [_converted(parameter, word, where) for word in plain]
            plain = []
        elif plain:
            values[parameter.name] = _converted(parameter, plain.pop(0), where)
        if parameter.required and not values.get(parameter.name) and values.get(parameter.name) != "":
            raise UsageError(
                code="bad_usage", what=f"{parameter.placeholder} is missing", where=where,
                allowed=parameter.mark.help, todo=f"{where} --help",
            )  # fmt: skip
    if plain:
        raise UsageError(
            code="bad_usage", what="there are more words than this command takes", where=where,
            found=" ".join(shown(word) for word in plain), todo=f"quote what belongs together, or see {where} --help",
        )  # fmt: skip


def _unknown_option(name: str, options: dict[str, Parameter], where: str) -> UsageError:
    likely = closest(name, options)
    return UsageError(
        code="bad_usage", what=f"there is no option {shown(name)}", where=where,
        allowed=", ".join(sorted(one for one in options if one.startswith("--"))),
        todo=f"did you mean {likely[0]}?" if likely else f"{where} --help",
    )  # fmt: skip
