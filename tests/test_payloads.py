"""JSON at the door: what passes comes back as it went in, and everything else is refused with its place."""

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from paceline.core.problem import Problem
from paceline.errors import UsageError
from paceline.payloads import canonical, complaint, decode, decode_text_from_person, encode, shape_of

NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)


@dataclass
class Note:
    text: str
    when: datetime = NOON
    score: float = 0.0
    anything: object = None
    tags: set[str] = field(default_factory=set)


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    number: int
    due: date | None = None
    price: float = Field(default=0.0, alias="unitPrice")


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


def refused(value: object, **options: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        encode(value, **options)
    return caught.value


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcé", max_size=3), inner),
    max_leaves=20,
)


# --- values to text --------------------------------------------------------------------------------------------------


@given(json_values)
def test_every_json_value_comes_back_as_it_went_in(value: object) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (21, "21"),
        (-(2**63), "-9223372036854775808"),
        (1.5, "1.5"),
        ("é \\u0000", '"é \\\\u0000"'),
        ((1, (2, 3)), "[1,[2,3]]"),
        ({"a": {}}, '{"a":{}}'),
        ({Word.YES: [Level.LOW, Word.YES]}, '{"yes":[1,"yes"]}'),
    ],
)
def test_plain_values_become_compact_json(value: object, text: str) -> None:
    assert encode(value) == text


def test_typed_models_may_stand_anywhere_in_a_value() -> None:
    value = {"notes": [Note("hi", tags={"a"})], "at": (Point(1, 2), Order(number=7, unitPrice=2.5))}
    assert decode(encode(value)) == {
        "notes": [{"text": "hi", "when": "2030-01-02T12:00:00Z", "score": 0.0, "anything": None, "tags": ["a"]}],
        "at": [{"x": 1, "y": 2}, {"number": 7, "due": None, "unitPrice": 2.5}],
    }


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"items": [0, 1, 2, {"when": NOON}]}, "$.items[3].when", "datetime"),
        ([{"b c": {1}}], "$[0]['b c']", "set"),
        ({"data": b"x"}, "$.data", "bytes"),
        ([math.nan], "$[0]", "nan"),
        ({"é": -math.inf}, "$['é']", "-inf"),
        ({"notes": [Note("a"), Note("b", score=math.inf)]}, "$.notes[1].score", "inf"),
        ([Order(number=1, unitPrice=math.nan)], "$[0].unitPrice", "nan"),
        ([Note("a", anything=2**70)], "$[0].anything", "an integer of 71 bits"),
        ([2**63], "$[0]", "an integer of 64 bits"),
        ([10**5000], "$[0]", "an integer of 16610 bits"),
        ({"k": "a\0b"}, "$.k", "U+0000"),
        ({"a\0b": 1}, "$['a\\x00b']", "U+0000"),
        ({"k": ["\ud800"]}, "$.k[0]", "U+D800 at character 0"),
        ({"k": {1: 2}}, "$.k['1']", "int"),
        ({"k": {None: 2}}, "$.k.None", "NoneType"),
        ([Colour.RED], "$[0]", "Colour"),
        ([Decimal(1)], "$[0]", "Decimal"),
        ([UUID(int=1)], "$[0]", "UUID"),
        ([Hostile()], "$[0]", "Hostile"),
        ([Note], "$[0]", "type"),
        ([open], "$[0]", "builtin_function_or_method"),
        ([iter(())], "$[0]", "tuple_iterator"),
        ([Note("a", anything=Hostile())], "$[0]", "Note (it holds a Hostile)"),
        ({"\x1b[31m": object()}, "$['\\x1b[31m']", "object"),
    ],
)
def test_what_is_not_json_is_refused_with_its_path_and_type(value: object, path: str, found: str) -> None:
    problem = refused(value, where="agent writer")
    assert (problem.code, problem.where, problem.found) == ("input_not_json", f"agent writer, {path}", found)
    assert problem.allowed


def test_a_hint_says_what_to_do_instead() -> None:
    assert refused({1, 2}).todo == "use a list"
    assert refused(NOON).todo == "use .isoformat()"


def test_a_wrong_input_is_the_callers_mistake_and_a_wrong_result_is_the_jobs() -> None:
    assert isinstance(refused(b"x"), UsageError)
    problem = refused(b"x", kind="result")
    assert problem.code == "result_not_json"
    assert not isinstance(problem, UsageError)


def test_two_hundred_levels_are_enough_for_anybody() -> None:
    assert encode(nested(200)).count("[") == 200
    assert "nested too deeply" in refused(nested(201)).what
    assert "nested too deeply" in refused(nested(5_000)).what
    assert "nested too deeply" in refused([Note("a", anything=nested(201))]).what


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[object] = []
    ring.append({"again": ring})
    note = Note("a")
    note.anything = [note]
    assert "contains itself" in refused(ring).what
    assert "contains itself" in refused(note).what


def test_a_small_object_that_unfolds_into_a_huge_text_is_refused_at_once() -> None:
    bomb: object = 1
    for _ in range(150):
        bomb = [bomb, bomb]
    assert refused(bomb, limit=10_000).code == "input_too_large"
    assert refused([Colour.RED, bomb], limit=10_000).code == "input_not_json"


def test_size_counts_in_bytes_and_the_limit_is_named() -> None:
    assert encode("é" * 4, limit=10) == '"éééé"'
    problem = refused("é" * 5, limit=10, kind="result")
    assert (problem.code, problem.found, problem.allowed) == ("result_too_large", "12 bytes", "10 bytes of JSON")
    assert refused("x" * 10_000_000).code == "input_too_large"


# --- text to values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "nope", "[1", "1 2", '{"a":NaN}', "[" * 100_000, b"\xff", '"\\ud800"'])
def test_damaged_text_in_the_store_is_one_clear_error(text: str | bytes) -> None:
    with pytest.raises(Problem) as caught:
        decode(text, where="job j1")
    assert (caught.value.code, caught.value.where) == ("bad_json", "job j1")


@given(st.dictionaries(st.text("abc", max_size=2), st.integers(0, 9) | st.dictionaries(st.text("ab"), st.none())))
def test_equal_objects_have_one_canonical_text_whatever_the_order_of_their_keys(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(encode(value)) == canonical(encode(turned))


def test_canonical_text_keeps_what_differs() -> None:
    assert canonical(' {"b": 1, "a": [2.0, "x"]} ') == '{"a":[2.0,"x"],"b":1}'
    assert len({canonical(text) for text in ("1", "1.0", '"1"', "true", "null", "[1]")}) == 6


@given(json_values)
def test_what_a_program_wrote_a_person_may_type(value: object) -> None:
    assert decode_text_from_person(encode(value)) == value


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ('{"a": 1,\n "a": 2}', "line 2, column 2", "a key appears twice"),
        ('{"a b": 1, "a\\u0020b": 2}', "line 1, column 12", "a key appears twice"),
        ('[{"x": {"k": 1, "k": 1}}]', "line 1, column 17", "a key appears twice"),
        ("[1,\n\n  NaN]", "line 3, column 3", "NaN"),
        ("-Infinity", "line 1, column 1", "-Infinity"),
        ("[1e999]", "line 1, column 2", "a number is too large"),
        ("[" + "9" * 5000 + "]", "line 1, column 2", "64 bits"),
        ("9223372036854775808", "line 1, column 1", "64 bits"),
        ("1 2", "line 1, column 3", "Extra data"),
        ('{"a": 1} {"b": 2}', "line 1, column 10", "Extra data"),
        ("[1,\n 2,]", "line 2, column 4", "Expecting value"),
        ("", "line 1, column 1", "Expecting value"),
        ("{'a': 1}", "line 1, column 2", "double quotes"),
        ('"abc', "line 1, column 1", "Unterminated"),
        ('"' + '\\"' * 50_000, "line 1, column 1", "Unterminated"),
        ("tru", "line 1, column 1", "Expecting value"),
        ("[" * 201 + "]" * 201, "line 1, column 201", "nested too deeply"),
        ("[" * 100_000, "line 1, column 201", "nested too deeply"),
        ('["\\ud800"]', "line 1, column 2", "surrogate"),
        ('{"a": "\\u0000"}', "line 1, column 7", "NUL"),
        ('{"a\\u0000": 1}', "line 1, column 2", "NUL"),
        ("[1, \udcff]", "line 1, column 5", "Expecting value"),
    ],
)
def test_a_slip_in_typed_json_is_refused_with_line_and_column(text: str, place: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        decode_text_from_person(text, where="INPUT")
    assert (caught.value.code, caught.value.where) == ("bad_json", f"INPUT, {place}")
    assert says in caught.value.what
    assert "\n" not in str(caught.value)


def test_the_same_key_in_two_objects_is_no_duplicate() -> None:
    assert decode_text_from_person('[{"a": "a"}, {"a": {"a": ["a", "a"]}}]') == [{"a": "a"}, {"a": {"a": ["a", "a"]}}]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode_text_from_person(b'\xef\xbb\xbf{"a": 1}\r\n') == {"a": 1}


def test_other_encodings_are_refused_with_the_first_bad_byte() -> None:
    with pytest.raises(UsageError) as caught:
        decode_text_from_person('"é"'.encode("latin-1"), where="input.json")
    assert (caught.value.code, caught.value.found) == ("bad_encoding", "byte 0xe9 at offset 1")


def test_typed_text_has_the_same_size_limit() -> None:
    with pytest.raises(UsageError) as caught:
        decode_text_from_person(b"[" * 101, limit=100)
    assert caught.value.code == "input_too_large"


# --- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "plain", "typed"),
    [
        (int, 21, 21),
        (float, 3, 3.0),
        (bool, True, True),
        (None, None, None),
        (int | None, None, None),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (date, "2030-01-02", date(2030, 1, 2)),
        (Note, {"text": "a", "anything": [1]}, Note("a", anything=[1])),
        (list[Point], [{"x": 1}], [Point(1)]),
        (Order, {"number": 1, "due": "2030-01-02"}, Order(number=1, due=date(2030, 1, 2))),
        (dict[str, Order | None], {"a": None}, {"a": None}),
    ],
)
def test_plain_values_become_what_the_annotation_asks_for(annotation: Any, plain: object, typed: object) -> None:
    converted = shape_of(annotation).convert(plain)
    assert converted == typed
    assert type(converted) is type(typed)


@pytest.mark.parametrize("annotation", [Any, object])
def test_without_an_annotation_the_very_object_passes(annotation: Any) -> None:
    value = {"a": [1]}
    assert shape_of(annotation).convert(value) is value


@pytest.mark.parametrize(
    ("annotation", "plain", "path", "found", "allowed"),
    [
        (int, "21", "", "str", "int"),
        (int, True, "", "bool", "int"),
        (int, 2.0, "", "float", "int"),
        (float, False, "", "bool", "float"),
        (bool, 1, "", "int", "bool"),
        (str, None, "", "null", "str"),
        (list[int], [1, "2"], ", $[1]", "str", "int"),
        (Note, {"text": "a", "score": "high"}, ", $.score", "str", "float"),
        (list[Point], [{"x": 1}, {"x": []}], ", $[1].x", "array", "int"),
    ],
)
def test_a_misfit_names_path_found_and_expected(
    annotation: Any, plain: object, path: str, found: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as caught:
        shape_of(annotation).convert(plain, where="agent writer")
    problem = caught.value
    assert (problem.code, problem.where) == ("input_invalid", f"agent writer{path}")
    assert (problem.found, problem.allowed) == (found, allowed)


@pytest.mark.parametrize(
    ("annotation", "plain", "says"),
    [
        (Point, {}, "missing required field `x`"),
        (Literal["a"], "z", "Invalid enum value 'z'"),
        (datetime, "tomorrow", "RFC3339"),
        (list[Order], [{"number": "1"}], "valid integer (at $.number)"),
        (Order, {"number": 1, "colour": "red"}, "Extra inputs are not permitted (at $.colour)"),
        (Hostile, 1, "Hostile cannot be made from JSON"),
    ],
)
def test_a_misfit_of_another_kind_says_what_is_wrong(annotation: Any, plain: object, says: str) -> None:
    with pytest.raises(UsageError, match="input_invalid") as caught:
        shape_of(annotation).convert(plain)
    assert says in caught.value.what


def test_an_annotation_that_json_cannot_tell_apart_is_refused_before_any_value() -> None:
    with pytest.raises(UsageError) as caught:
        shape_of(Point | Note | Order, where="agent writer")
    assert (caught.value.code, caught.value.where) == ("bad_annotation", "agent writer")


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (date, date(2030, 1, 2), '"2030-01-02"'),
        (list[date], [date(2030, 1, 2)], '["2030-01-02"]'),
        (frozenset[int], frozenset({1}), "[1]"),
        (bytes, b"abc", '"YWJj"'),
        (Colour, Colour.RED, '"red"'),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (list[Order], [Order(number=1)], '[{"number":1,"due":null,"unitPrice":0.0}]'),
    ],
)
def test_a_value_is_taken_when_its_annotation_restores_exactly_it(annotation: Any, value: object, text: str) -> None:
    shape = shape_of(annotation)
    assert shape.encode(value) == text
    assert shape.convert(decode(text)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "code"),
    [
        (dict[str, object], {"when": NOON}, "result_not_json"),
        (list[object], [{1}], "result_not_json"),
        (set[float], {math.nan}, "result_not_json"),
        (int, "21", "result_invalid"),
        (int, True, "result_invalid"),
        (None, 0, "result_invalid"),
        (Note, Note("a", when="soon"), "result_invalid"),  # type: ignore[arg-type]
        (Point, {"y": 1}, "result_invalid"),
    ],
)
def test_a_value_that_its_annotation_would_not_restore_is_refused(annotation: Any, value: object, code: str) -> None:
    with pytest.raises(Problem) as caught:
        shape_of(annotation).encode(value, kind="result")
    assert caught.value.code == code


def test_an_error_whose_text_raises_still_has_a_complaint() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert complaint(Mute()) == f"<unprintable {Mute.__qualname__}>"
    assert complaint(ValueError()) == "ValueError"
    assert complaint(ValueError("a\x1b[31m\nb")) == "a\\x1b[31m"
