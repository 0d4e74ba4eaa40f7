"""What an agent is: sensible defaults, refusals that name setting, value and range, and an identity of its own."""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from paceline.agents import Agent, AgentDefinition, agent, as_agent, registry
from paceline.core.durations import HOUR, MINUTE
from paceline.core.problem import Problem
from paceline.core.scheduling import QueueClass


def greet(name: str) -> str:
    """Says hello."""
    return f"hello {name}"


@agent
def twice(n: int) -> int:
    return 2 * n


def refused(make: Callable[[], object]) -> Problem:
    with pytest.raises(Problem) as caught:
        make()
    return caught.value


def test_a_decorated_function_is_still_called_like_the_function() -> None:
    @agent(isolation="inline")
    async def triple(ctx: object, n: int) -> int:
        return 3 * n

    assert twice(3) == 6
    assert asyncio.run(triple(None, 3)) == 9
    assert (triple.__name__, triple.name) == ("triple", "triple")
    assert list(inspect.signature(triple).parameters) == ["ctx", "n"]


def test_without_options_an_agent_is_inline_and_runs_one_job_at_a_time() -> None:
    assert twice.definition == AgentDefinition(
        name="twice", origin=__name__, kind="function", isolation="inline", max_concurrency=1, ceiling=64,
        retries=0, timeout=HOUR, max_crashes=3, needs={}, priority=None, queue_class=None, tenant=None,
    )  # fmt: skip


def test_options_are_given_as_people_write_them_and_kept_as_whole_numbers() -> None:
    @agent(
        name="deploy.it", max_concurrency=None, retries=2, timeout="1m", max_crashes=0, needs={"lock:deploy": 1},
        priority="high", queue_class="interactive", tenant="acme",
    )  # fmt: skip
    def deploy() -> None: ...

    found = deploy.definition
    assert (found.name, found.max_concurrency, found.retries, found.timeout) == ("deploy.it", None, 2, MINUTE)
    assert (found.max_crashes, found.needs) == (0, {"lock:deploy": 1})
    assert (found.priority, found.queue_class, found.tenant) == (25, QueueClass.INTERACTIVE, "acme")


@pytest.mark.parametrize("value", [0, -1, 65, True, 2.0, float("nan"), "3", 10**9])
def test_max_concurrency_out_of_range_names_setting_value_and_range(value: Any) -> None:
    problem = refused(lambda: agent(max_concurrency=value)(greet))
    assert problem.code == "bad_setting"
    assert problem.where == "agent greet"
    assert "max_concurrency" in problem.what
    assert problem.found == repr(value)
    assert "1 to 64, or None" in problem.allowed


def test_a_ceiling_allows_more_at_once() -> None:
    @agent(max_concurrency=500, ceiling=500)
    def wide() -> None: ...

    assert wide.definition.max_concurrency == 500
    assert "1 to 500" in refused(lambda: agent(max_concurrency=501, ceiling=500)(greet)).allowed


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ({"retries": -1}, "bad_setting", "retries"),
        ({"retries": True}, "bad_setting", "retries"),
        ({"max_crashes": 1.5}, "bad_setting", "max_crashes"),
        ({"ceiling": 0}, "bad_setting", "ceiling"),
        ({"timeout": 0}, "bad_duration", "timeout"),
        ({"timeout": "-5s"}, "bad_duration", "timeout"),
        ({"timeout": None}, "bad_duration", "timeout"),
        ({"needs": ["llm"]}, "bad_setting", "needs"),
        ({"needs": {"a b": 1}}, "bad_setting", "'a b'"),
        ({"needs": {3: 1}}, "bad_setting", "needs"),
        ({"needs": {"llm": 0}}, "bad_setting", "needs[llm]"),
        ({"needs": {"llm": True}}, "bad_setting", "needs[llm]"),
        ({"priority": 101}, "bad_priority", "101"),
        ({"queue_class": "fast"}, "bad_queue_class", "fast"),
        ({"tenant": ""}, "bad_name", "tenant"),
        ({"name": ""}, "bad_name", "agent"),
        ({"name": "../etc"}, "bad_name", "../etc"),
        ({"name": "x" * 300}, "bad_name", "too long"),
        ({"name": None}, "bad_name", "not text"),
        ({"isolation": "proces"}, "bad_setting", "isolation"),
        ({"isolation": "process"}, "isolation_unavailable", 'isolation="inline"'),
        ({"isolation": "shared"}, "isolation_unavailable", 'isolation="inline"'),
        ({"max_concurency": 2}, "unknown_option", "did you mean max_concurrency?"),
    ],
)
def test_a_bad_option_is_refused_and_nothing_is_registered(options: dict[str, Any], code: str, says: str) -> None:
    def fresh() -> None: ...

    problem = refused(lambda: agent(**options)(fresh))
    assert problem.code == code
    assert says in str(problem)
    assert all(known.function is not fresh for known in registry.all())


@pytest.mark.parametrize("thing", [3, "double", None, Agent, [greet]])
def test_only_functions_become_agents(thing: Any) -> None:
    assert refused(lambda: as_agent(thing)).code == "not_a_function"


def test_an_agent_cannot_be_decorated_again() -> None:
    assert refused(lambda: agent(retries=1)(twice)).code == "not_a_function"


def test_what_has_no_name_needs_one() -> None:
    for nameless in (lambda n: n, functools.partial(greet, "you")):
        problem = refused(functools.partial(as_agent, nameless))
        assert problem.code == "agent_without_name"
        assert __file__ in problem.where
    assert agent(name="mirror")(lambda n: n).name == "mirror"


def test_a_plain_function_becomes_one_agent_however_often_it_is_submitted() -> None:
    first = as_agent(greet)
    assert as_agent(greet) is first
    assert as_agent(first) is first
    assert registry.get("greet", __name__) is first
    assert first("you") == "hello you"
    assert first.__doc__ == "Says hello."


def test_functions_made_in_different_places_have_different_origins() -> None:
    def helper() -> None: ...

    def maker() -> Agent[[], None]:
        def helper() -> None: ...

        return as_agent(helper)

    test = "test_functions_made_in_different_places_have_different_origins"
    assert as_agent(helper).definition.origin == f"{__name__}:{test}"
    assert maker().definition.origin == f"{__name__}:{test}.maker"


def test_two_scripts_never_share_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(n: int) -> int:
        return 2 * n

    double.__module__, double.__qualname__ = "__main__", "double"
    origins = []
    for script in ("/jobs/one.py", "/jobs/two.py"):
        main = ModuleType("__main__")
        main.__file__ = script
        monkeypatch.setitem(sys.modules, "__main__", main)
        origins.append(as_agent(double).definition.origin)
    assert origins == ["/jobs/one.py", "/jobs/two.py"]


def test_a_module_run_with_dash_m_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(n: int) -> int:
        return 2 * n

    double.__module__, double.__qualname__ = "__main__", "double"
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("jobs.work", None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert as_agent(double).definition.origin == "jobs.work"


def test_callable_objects_and_builtins_say_where_they_come_from() -> None:
    class Greeter:
        def __call__(self, name: str) -> str:
            return name

    named = agent(name="greeter")(Greeter())
    assert named.definition.origin.startswith(__name__)
    assert named.place.file == __file__
    assert as_agent(len).definition.origin == "builtins"


def test_a_definition_survives_the_store() -> None:
    for definition in (twice.definition, replace(twice.definition, needs={"b": 2, "a": 1}, max_concurrency=None)):
        again = AgentDefinition.from_json(definition.as_json())
        assert again == definition
        assert again.fingerprint == definition.fingerprint
        assert hash(again) == hash(definition)


def test_every_change_of_a_definition_changes_its_fingerprint_and_the_order_of_needs_does_not() -> None:
    one = replace(twice.definition, needs={"a": 1, "b": 2})
    assert one.fingerprint == replace(one, needs={"b": 2, "a": 1}).fingerprint
    changes: list[dict[str, Any]] = [
        {"name": "other"}, {"origin": "other"}, {"max_concurrency": 2}, {"max_concurrency": None}, {"ceiling": 65},
        {"retries": 1}, {"timeout": 1}, {"max_crashes": 1}, {"needs": {"a": 1}}, {"priority": 1}, {"queue_class": 1},
        {"tenant": "acme"},
    ]  # fmt: skip
    prints = {replace(one, **change).fingerprint for change in changes}
    assert len(prints | {one.fingerprint}) == len(changes) + 1


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    fixed = AgentDefinition(name="double", origin="app")
    assert fixed.fingerprint == "8be47ba65181a84ebde9e286f85807cf"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad_definition"),
        ("[]", "bad_definition"),
        ('{"name": "x"}', "bad_definition"),
        ('{"name": "x", "origin": "y", "retries": "1"}', "bad_definition"),
        ('{"name": "x", "origin": "y", "retries": -1}', "bad_setting"),
        ('{"name": "x", "origin": "y", "isolation": "none"}', "bad_definition"),
        ('{"name": "a/b", "origin": "y"}', "bad_name"),
    ],
)
def test_a_damaged_definition_is_one_clear_error(text: str, code: str) -> None:
    assert refused(lambda: AgentDefinition.from_json(text)).code == code
