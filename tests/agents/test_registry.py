"""Finding agents: by name and origin, with two of a name told apart and nothing imported."""

import sys
from types import FunctionType

import pytest

from paceline.agents import Agent, AgentDefinition, Registry
from paceline.agents.origin import Place
from paceline.core.problem import Problem
from paceline.errors import NotFound, UsageError


def made(name: str, origin: str = "app", place: str = "app.py", line: int = 1) -> Agent[[], None]:
    def function() -> None: ...

    return Agent(function, AgentDefinition(name=name, origin=origin), Place(place, line, name))


@pytest.fixture
def known() -> Registry:
    registry = Registry()
    for name, origin in (("writer", "app"), ("reader", "app"), ("double", "/one.py"), ("double", "/two.py")):
        registry.add(made(name, origin))
    return registry


def test_an_agent_is_found_by_name_and_origin(known: Registry) -> None:
    assert known.get("double", "/two.py").definition.origin == "/two.py"
    assert known.named("writer") is known.get("writer", "app")
    assert known.find("writer", "elsewhere") is None


def test_all_agents_come_in_the_same_order(known: Registry) -> None:
    assert [each.name for each in known.all()] == ["double", "double", "reader", "writer"]


def test_two_of_a_name_are_ambiguous_and_both_origins_named(known: Registry) -> None:
    with pytest.raises(UsageError) as caught:
        known.named("double")
    assert caught.value.code == "ambiguous_agent"
    assert caught.value.found == "/one.py and /two.py"


def test_an_unknown_name_offers_the_likely_one(known: Registry) -> None:
    with pytest.raises(NotFound) as caught:
        known.named("writr")
    assert (caught.value.code, caught.value.todo) == ("unknown_agent", "did you mean writer?")
    with pytest.raises(NotFound, match="from elsewhere"):
        known.get("writer", "elsewhere")
    with pytest.raises(NotFound, match="none is registered"):
        Registry().named("writer")


@pytest.mark.parametrize("name", ["os:system", "builtins.eval", "this", "antigravity", "x\x1b[31m", "\0"])
def test_a_name_from_data_is_looked_up_and_never_imported(known: Registry, name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(NotFound) as caught:
        known.named(name)
    assert set(sys.modules) == before
    assert "\x1b" not in str(caught.value)


def test_the_same_code_again_replaces_the_agent(known: Registry) -> None:
    edited = made("writer", line=7)
    known.add(edited)
    assert known.named("writer") is edited


def test_other_code_under_the_same_name_is_refused_and_both_places_named(known: Registry) -> None:
    first = known.named("writer")
    with pytest.raises(Problem) as caught:
        known.add(made("writer", place="copy.py", line=9))
    assert caught.value.code == "duplicate_agent"
    assert (caught.value.where, caught.value.found) == ("copy.py:9", "the first one at app.py:1")
    assert known.named("writer") is first
    assert isinstance(first.function, FunctionType)
