"""Names that are allowed, guesses for those that are not known, and text made safe to store and to show."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.names import (
    NameKind,
    check_name,
    closest,
    escape_for_terminal,
    shown,
    storable,
)
from paceline.core.problem import Problem

GOOD: list[tuple[NameKind, str]] = [
    ("agent", "double"),
    ("agent", "Code_Reviewer2"),
    ("agent", "_private"),
    ("agent", "a.b-c"),
    ("agent", "7zip"),
    ("agent", "console"),
    ("agent", "a" * 64),
    ("tenant", "acme"),
    ("tenant", "Müller & Söhne"),
    ("session", "telegram:123/45"),
    ("topic", "news.*"),
    ("topic", "v1.2/a..b"),
    ("key", "../notes/today.md"),
    ("key", "日本語"),
    ("key", "x" * 200),
]

BAD: list[tuple[NameKind, object, str]] = [
    ("agent", "", "is empty"),
    ("agent", "a" * 65, "is too long"),
    ("agent", "../etc/passwd", "holds a character that is not allowed"),
    ("agent", "a/b", "holds a character that is not allowed"),
    ("agent", "a b", "holds a character that is not allowed"),
    ("agent", "größe", "holds a character that is not allowed"),
    ("agent", "double\n", "holds a character that is not allowed"),
    ("agent", ".hidden", "holds a character that is not allowed"),
    ("agent", "-rf", "holds a character that is not allowed"),
    ("agent", "a\0b", "holds a character that is not allowed"),
    ("agent", "a..b", "holds '..'"),
    ("agent", "a.", "ends with a dot"),
    ("agent", "CON", "is the name of a device on Windows"),
    ("agent", "nul.txt", "is the name of a device on Windows"),
    ("agent", "Lpt1", "is the name of a device on Windows"),
    ("agent", None, "is not text"),
    ("agent", b"double", "is not text"),
    ("tenant", "", "is empty"),
    ("tenant", "x" * 201, "is too long"),
    ("tenant", "a\x00b", "holds a character that cannot be seen"),
    ("tenant", "a\x1b[31mb", "holds a character that cannot be seen"),
    ("tenant", "a\u202eb", "holds a character that cannot be seen"),
    ("tenant", "a\u200bb", "holds a character that cannot be seen"),
    ("tenant", "a\ufeff", "holds a character that cannot be seen"),
    ("tenant", "a\ud800", "holds a character that cannot be seen"),
    ("tenant", "a\u3164", "holds a character that cannot be seen"),
    ("tenant", "a\nb", "holds a character that cannot be seen"),
    ("tenant", " acme", "begins or ends with a space"),
    ("tenant", " ", "begins or ends with a space"),
    ("tenant", "../other", "climbs like a path"),
    ("session", "a\\..\\b", "climbs like a path"),
    ("topic", "..", "climbs like a path"),
    ("key", 7, "is not text"),
    ("key", "order\t7", "holds a character that cannot be seen"),
]


@pytest.mark.parametrize("kind,name", GOOD)
def test_a_sensible_name_is_taken_as_it_is(kind: NameKind, name: str) -> None:
    assert check_name(kind, name) == name


@pytest.mark.parametrize("kind,name,reason", BAD, ids=count())
def test_a_harmful_name_is_refused_with_the_reason(kind: NameKind, name: object, reason: str) -> None:
    with pytest.raises(Problem) as caught:
        check_name(kind, name)
    problem = caught.value
    assert (problem.code, problem.where, problem.what) == ("bad_name", kind, f"the {kind} name {reason}")
    assert str(problem).isprintable()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["tenant", "session", "key", "topic"]), st.text(max_size=210))
def test_whatever_passes_can_be_stored_and_shown_as_it_is(kind: NameKind, text: str) -> None:
    try:
        name = check_name(kind, text)
    except Problem:
        return
    assert storable(name) == escape_for_terminal(name) == name == name.strip()
    assert 1 <= len(name) <= 200


@pytest.mark.parametrize(
    "word,guesses",
    [("wirter", ["writer"]), ("WRITER", ["writer"]), ("code-review", ["Code-Reviewer"]), ("zebra", []), ("", [])],
)
def test_a_misspelt_name_gets_the_likeliest_known_ones(word: str, guesses: list[str]) -> None:
    assert closest(word, ["writer", "Code-Reviewer", "double"]) == guesses


def test_at_most_three_guesses_are_made() -> None:
    assert closest("worker", [f"worker{n}" for n in range(9)]) == ["worker8", "worker7", "worker6"]


@pytest.mark.parametrize(
    "text,safe",
    [
        ("plain, größer, 日本語, 👩\u200d🚀", "plain, größer, 日本語, 👩\u200d🚀"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb\nc\td", "a\\rb\\nc\\td"),
        ("nul\0", "nul\\x00"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\u2066iso\u2069", "\\u2066iso\\u2069"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
    ids=count(),
)
def test_what_could_act_on_a_terminal_becomes_visible(text: str, safe: str) -> None:
    assert escape_for_terminal(text) == safe


def test_lines_and_tabs_are_kept_where_lines_are_wanted() -> None:
    assert escape_for_terminal("a\n\tb\r\x1b\n", keep_lines=True) == "a\n\tb\\r\\x1b\n"


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Lu"]), max_size=50))
def test_escaped_text_can_always_be_printed_and_holds_no_control_character(text: str) -> None:
    safe = escape_for_terminal(text)
    assert safe.encode().decode() == safe
    assert all(character >= " " and not "\x7f" <= character <= "\x9f" for character in safe)
    assert escape_for_terminal(safe) == safe


class Hostile:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value,text",
    [
        ("it's", '"it\'s"'),
        ("\x1b\u202e", "'\\x1b\\u202e'"),
        (5, "5"),
        (10**5000, "<unprintable int>"),
        (Hostile(), "<unprintable Hostile>"),
    ],
    ids=count(),
)
def test_any_value_can_be_quoted_in_a_message(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_quotation_is_short() -> None:
    assert len(shown("x" * 10_000_000)) == 81


@pytest.mark.parametrize(
    "text,stored",
    [("plain", "plain"), ("a\0b", "a\ufffdb"), ("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "😀"), ("\udc80", "\ufffd")],
    ids=count(),
)
def test_stored_text_has_no_nul_and_no_lone_surrogate(text: str, stored: str) -> None:
    assert storable(text) == stored


@pytest.mark.parametrize("text", ["x" * 101, "é" * 51, "😀" * 1_000, "\0" * 40, "\ud800" * 101], ids=count())
def test_stored_text_is_cut_with_a_mark_and_never_inside_a_character(text: str) -> None:
    stored = storable(text, limit=100)
    assert 85 <= len(stored.encode()) <= 100
    assert stored.endswith(" … (cut)")
