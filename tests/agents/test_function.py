"""Where JSON meets a function: which parameters take what, and how a misfit is told."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from paceline.agents import BoundHandler, agent, as_agent, bind
from paceline.agents.context import Context
from paceline.core.problem import Problem
from paceline.payloads import decode

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Task:
    title: str
    steps: int = 1


class Answer(BaseModel):
    text: str


def bound(function: Callable[..., object]) -> BoundHandler:
    return bind(as_agent(function))


def run(handler: BoundHandler, given: object) -> Any:
    """What the function makes of an input that went through the store."""
    return handler.call("the context", handler.prepare(decode(handler.check_input(given))))


def refused(function: Callable[..., object], given: object) -> Problem:
    with pytest.raises(Problem) as caught:
        bound(function).check_input(given)
    return caught.value


def test_one_parameter_takes_the_whole_input() -> None:
    def whole(value: dict[str, int]) -> object:
        return value

    assert run(bound(whole), {"a": 1}) == {"a": 1}


def test_ctx_is_passed_when_the_first_parameter_asks_for_it_by_name_or_by_type() -> None:
    def by_name(ctx: Any, n: int) -> object:
        return ctx, n

    def by_type(me: Context, n: int) -> object:
        return me, n

    def by_unresolved_type(me: "Context2.Context", n: int) -> object:  # type: ignore[name-defined]  # noqa: F821
        return me, n

    for function in (by_name, by_type, by_unresolved_type):
        assert run(bound(function), 21) == ("the context", 21)


def test_several_parameters_take_an_object_by_name_and_defaults_apply() -> None:
    def several(ctx: Any, a: int, b: Task, c: float = 0.5, *, d: str = "d") -> object:
        return a, b, c, d

    assert run(bound(several), {"a": 1, "b": {"title": "t"}}) == (1, Task("t"), 0.5, "d")
    assert run(bound(several), {"d": "x", "c": 2, "b": Task("t"), "a": 1}) == (1, Task("t"), 2.0, "x")


def test_positional_only_keyword_only_and_other_names_all_work() -> None:
    def odd(a: int, b: int = 2, /, *, c: int, **rest: int) -> object:
        return a, b, c, rest

    assert run(bound(odd), {"a": 1, "c": 3, "z": 4}) == (1, 2, 3, {"z": 4})
    assert run(bound(odd), {"c": 3, "b": 0, "a": 1}) == (1, 0, 3, {})
    assert refused(odd, {"a": 1, "c": 3, "z": "4"}).where == "agent odd, parameter 'z'"


def test_a_single_keyword_only_parameter_takes_the_whole_input_too() -> None:
    def single(ctx: Any, *, n: int) -> object:
        return n

    assert run(bound(single), 21) == 21


def test_a_function_without_parameters_takes_nothing() -> None:
    def nothing() -> str:
        return "done"

    assert run(bound(nothing), None) == "done"
    assert refused(nothing, 1).found == "1"


def test_no_input_means_the_defaults() -> None:
    def one(n: int = 7) -> object:
        return n

    def two(a: int = 1, b: int = 2) -> object:
        return a, b

    assert run(bound(one), None) == 7
    assert run(bound(two), None) == (1, 2)


def test_models_are_taken_and_given_as_the_annotation_says() -> None:
    def work(task: Task) -> Answer:
        return Answer(text=task.title * task.steps)

    handler = bound(work)
    assert handler.check_input(Task("a", 3)) == handler.check_input({"title": "a", "steps": 3})
    assert handler.encode_result(run(handler, Task("a", 3))) == '{"text":"aaa"}'


def test_several_parameters_may_be_given_as_one_model() -> None:
    def work(title: str, steps: int) -> object:
        return title, steps

    assert run(bound(work), Task("a", 3)) == ("a", 3)
    assert refused(work, Answer(text="a")).what == "the input lacks steps, title"


def test_a_date_passes_where_the_parameter_says_date() -> None:
    def report(day: date, note: object) -> object:
        return day

    assert run(bound(report), {"day": date(2030, 1, 2), "note": None}) == date(2030, 1, 2)
    problem = refused(report, {"day": date(2030, 1, 2), "note": date(2030, 1, 2)})
    assert (problem.code, problem.where) == ("input_not_json", "agent report, parameter note")


@pytest.mark.parametrize(
    ("given", "where", "says"),
    [
        ({"a": "1", "b": 2}, "agent add, parameter a", "found: str, allowed: int"),
        ({"a": 1}, "agent add", "the input lacks b"),
        ({}, "agent add", "the input lacks a, b"),
        (None, "agent add", "the input lacks a, b"),
        ({"a": 1, "b": 2, "scal": 3}, "agent add", "did you mean scale?"),
        ({"a": 1, "b": 2, "zzz": 3}, "agent add", "leave it out"),
        ({"a": 1, "b": 2, 3: 3}, "agent add", "found: 3"),
        ([1, 2], "agent add", "takes an object by name"),
        (3, "agent add", "scale (has a default)"),
    ],
)
def test_a_misfit_of_names_or_types_says_which(given: object, where: str, says: str) -> None:
    def add(a: int, b: int, scale: int = 1) -> int:
        return (a + b) * scale

    problem = refused(add, given)
    assert (problem.code, problem.where) == ("input_invalid", where)
    assert says in str(problem)


def test_naming_the_only_parameter_is_recognised_as_the_slip_it_is() -> None:
    def double(n: int) -> int:
        return 2 * n

    assert refused(double, {"n": 21}).todo == "pass what n shall be, without an object around it"
    assert refused(double, {"m": 21}).todo == ""


def test_what_is_accepted_at_the_door_is_accepted_by_the_node() -> None:
    def strict(a: list[int], b: float) -> object:
        return a, b

    handler = bound(strict)
    text = handler.check_input({"a": (1, 2), "b": 3})
    assert text == '{"a":[1,2],"b":3}'
    assert handler.prepare(decode(text)) == (([1, 2], 3.0), {})


def test_many_small_parameters_cannot_add_up_to_a_huge_input() -> None:
    def two(a: str, b: str) -> None: ...

    assert refused(two, {"a": "x" * 6_000_000, "b": "x" * 6_000_000}).code == "input_too_large"


@pytest.mark.parametrize(
    ("result", "code", "found"),
    [("42", "result_invalid", "str"), (True, "result_invalid", "bool"), ({1}, "result_not_json", "set")],
)
def test_a_result_that_does_not_match_its_annotation_is_the_jobs_error(result: object, code: str, found: str) -> None:
    def answer() -> int:
        return 42

    with pytest.raises(Problem) as caught:
        bound(answer).encode_result(result)
    assert (caught.value.code, caught.value.where, caught.value.found) == (code, "agent answer", found)


def test_without_a_return_annotation_any_json_is_a_result() -> None:
    def free():  # type: ignore[no-untyped-def]
        return None

    assert bound(free).encode_result({"a": [1, None]}) == '{"a":[1,null]}'
    with pytest.raises(Problem, match=r"result_not_json.*generator"):
        bound(free).encode_result(n for n in range(3))


def test_a_coroutine_returned_by_mistake_says_what_to_do() -> None:
    async def inner() -> None: ...

    forgotten = inner()
    with pytest.raises(Problem, match="write the function as async def"):
        bind(agent(name="forgot")(lambda: None)).encode_result(forgotten)
    forgotten.close()


def test_asynchronous_functions_are_told_apart() -> None:
    async def later(n: int) -> int:
        return n

    class Later:
        async def __call__(self, n: int) -> int:
            return n

    def now(n: int) -> int:
        return n

    partial = agent(name="partial")(functools.partial(later))
    thing = agent(name="thing")(Later())
    assert bound(later).is_async
    assert bind(partial).is_async
    assert bind(thing).is_async
    assert not bound(now).is_async
    assert asyncio.run(run(bound(later), 3)) == 3
    assert asyncio.run(run(bind(thing), 3)) == 3


def test_a_signature_is_read_once() -> None:
    def once(n: int) -> int:
        return n

    made = as_agent(once)
    assert bind(made) is bind(made)


def test_types_that_only_a_checker_knows_leave_their_parameter_unchecked() -> None:
    def total(rows: "Sequence[int]", scale: "int") -> "Sequence[int]":
        return rows

    handler = bound(total)
    assert handler.unchecked == {"rows", "return"}
    assert run(handler, {"rows": [1], "scale": 2}) == [1]
    assert refused(total, {"rows": [1], "scale": "2"}).where == "agent total, parameter scale"


def test_a_return_annotation_that_cannot_be_checked_is_not_checked() -> None:
    def either() -> Task | Answer:
        return Task("a")

    handler = bound(either)
    assert handler.unchecked == {"return"}
    assert handler.encode_result(Task("a")) == '{"title":"a","steps":1}'


def test_a_local_class_may_be_an_annotation() -> None:
    @dataclass
    class Local:
        n: int

    def use(local: Local) -> int:
        return local.n

    assert run(bound(use), {"n": 3}) == 3


class Holder:
    def method(self, n: int) -> int:
        return n


def many(*numbers: int) -> None: ...
def late(n: int, ctx: Any) -> None: ...
def named_ctx(*, ctx: Any, n: int) -> None: ...
def either(value: Task | Answer) -> None: ...
def counts(n: int) -> Any:
    yield n


@pytest.mark.parametrize(
    ("function", "code", "says"),
    [
        (many, "bad_signature", "*numbers"),
        (late, "bad_signature", "ctx must be the first"),
        (named_ctx, "bad_signature", "ctx must be the first"),
        (counts, "bad_signature", "it yields"),
        (Holder.method, "bad_signature", "it is a method"),
        (either, "bad_annotation", "Task | "),
        (getattr, "bad_signature", "cannot be read"),
    ],
)
def test_a_function_that_json_cannot_call_is_refused(function: Callable[..., object], code: str, says: str) -> None:
    with pytest.raises(Problem) as caught:
        bound(function)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_a_bound_method_is_as_good_as_a_function() -> None:
    assert run(bind(agent(name="method")(Holder().method)), 3) == 3
