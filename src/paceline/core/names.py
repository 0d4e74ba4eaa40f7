"""What names may hold, and how text from elsewhere is made safe to store, to quote and to show."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Literal, NamedTuple

from paceline.core.problem import Problem

NameKind = Literal["agent", "tenant", "session", "key", "topic"]

LONGEST_AGENT = 64
LONGEST_TEXT = 200
STORED_BYTES = 16 * 1024
"""What is kept of a text whose length nobody promised, such as an exception's message."""

_AGENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_SEPARATOR = re.compile(r"[/\\]")
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that Unicode calls printable and that show nothing."""

# Control characters, marks that reorder or hide text, line separators, lone surrogates, tag characters.
# The joiners U+200C and U+200D stay: several scripts and many emoji are built with them.
_HIDDEN = (
    "\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff"
    "\\U000e0000-\\U000e007f"
)
_UNSAFE = re.compile(f"[\\x00-\\x1f{_HIDDEN}]")
_UNSAFE_IN_LINES = re.compile(f"[\\x00-\\x08\\x0b-\\x1f{_HIDDEN}]")

_CUT = " … (cut)"
_SHOWN = 80
_GUESSES = 3
_KNOWN = 10_000


class _Rule(NamedTuple):
    """What one kind of name may be: the whole rule in words, and each way to break it."""

    allowed: str
    faults: tuple[tuple[str, Callable[[str], bool]], ...]


def _climbs(name: str) -> bool:
    return "." in name and not {".", ".."}.isdisjoint(_SEPARATOR.split(name))


def _unseen(name: str) -> bool:
    return not name.isprintable() or (not name.isascii() and not _BLANKS.isdisjoint(name))


_TEXT_FAULTS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("is empty", lambda name: not name),
    ("is too long", lambda name: len(name) > LONGEST_TEXT),
    ("holds a character that cannot be seen", _unseen),
    ("begins or ends with a space", lambda name: name != name.strip()),
)
_PATH_FAULT = ("climbs like a path", _climbs)

_ANY_TEXT = _Rule(f"1 to {LONGEST_TEXT} visible characters", _TEXT_FAULTS)
_TEXT = _Rule(f"1 to {LONGEST_TEXT} visible characters, no '.' or '..' between slashes", (*_TEXT_FAULTS, _PATH_FAULT))

RULES: dict[NameKind, _Rule] = {
    "agent": _Rule(
        f"1 to {LONGEST_AGENT} of A-Z a-z 0-9 _ . - beginning with a letter, digit or underscore; no '..', "
        "no '.' at the end, no device name such as con or nul",
        (
            ("is empty", lambda name: not name),
            ("is too long", lambda name: len(name) > LONGEST_AGENT),
            ("holds a character that is not allowed", lambda name: _AGENT.fullmatch(name) is None),
            ("holds '..'", lambda name: ".." in name),
            ("ends with a dot", lambda name: name.endswith(".")),
            ("is the name of a device on Windows", lambda name: _DEVICE.fullmatch(name) is not None),
        ),
    ),
    "tenant": _TEXT,
    "session": _TEXT,
    "topic": _TEXT,
    "key": _ANY_TEXT,  # a key is only ever compared, and often is a path
}


def check_name(kind: NameKind, value: object) -> str:
    """`value` when it may name a thing of this kind; a Problem that says the rule when it may not."""
    rule = RULES[kind]
    if not isinstance(value, str):
        raise _bad_name(kind, "is not text", value)
    for what, broken in rule.faults:
        if broken(value):
            raise _bad_name(kind, what, value)
    return value


def _bad_name(kind: NameKind, what: str, value: object) -> Problem:
    return Problem(
        code="bad_name",
        what=f"the {kind} name {what}",
        where=kind,
        found=shown(value),
        allowed=RULES[kind].allowed,
        todo="choose another name",
    )


def closest(word: str, known: Iterable[str]) -> list[str]:
    """Up to three of `known` that somebody who wrote `word` may have meant, the likeliest first."""
    spelled = {name.casefold(): name for name in reversed(list(islice(known, _KNOWN)))}
    return [spelled[name] for name in get_close_matches(word[:LONGEST_TEXT].casefold(), spelled, n=_GUESSES)]


def shown(value: object) -> str:
    """`value` as a message may quote it: short, without any character that acts, and never raising."""
    try:
        text = repr(value[: _SHOWN + 1] if isinstance(value, str | bytes) else value)
    except Exception:
        text = f"<unprintable {type(value).__name__}>"
    text = escape_for_terminal(text)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def escape_for_terminal(text: str, *, keep_lines: bool = False) -> str:
    """`text` with everything that could act on a terminal made visible; `keep_lines` leaves newlines and tabs."""
    if text.isprintable():
        return text
    return (_UNSAFE_IN_LINES if keep_lines else _UNSAFE).sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def storable(text: str, limit: int = STORED_BYTES) -> str:
    """`text` as every database and wire can hold it: no NUL, no lone surrogate, at most `limit` bytes in UTF-8."""
    kept = text[:limit].replace("\0", "\ufffd")
    try:
        data = kept.encode()
    except UnicodeEncodeError:
        data = kept.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    if len(text) <= limit and len(data) <= limit:
        return data.decode()
    return data[: limit - len(_CUT.encode())].decode(errors="ignore") + _CUT
