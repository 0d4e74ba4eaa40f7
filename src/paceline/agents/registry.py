"""The agents this process can run, found by name and origin and never imported by a name from data."""

from typing import TYPE_CHECKING, Any, TypeVar

from paceline.core.names import closest, shown
from paceline.errors import NotFound, UsageError

if TYPE_CHECKING:
    from paceline.agents.definition import Agent

A = TypeVar("A", bound="Agent[..., Any]")


class Registry:
    """Agents by (name, origin)."""

    def __init__(self) -> None:
        self._agents: dict[tuple[str, str], Agent[..., Any]] = {}

    def add(self, agent: A) -> A:
        """Makes an agent known. The same code again (after a reload) replaces it; other code is refused."""
        key = (agent.definition.name, agent.definition.origin)
        known = self._agents.get(key)
        if known is not None and not known.place.holds_the_same(agent.place):
            raise UsageError(
                code="duplicate_agent",
                what=f"two functions of {agent.definition.origin} want to be the agent {agent.name}",
                where=str(agent.place),
                found=f"the first one at {known.place}",
                allowed="one agent of a name in a module or script",
                todo='give one of them another name: @agent(name="…")',
            )
        self._agents[key] = agent
        return agent

    def find(self, name: str, origin: str) -> "Agent[..., Any] | None":
        """The agent, or None when this process does not have it."""
        return self._agents.get((name, origin))

    def get(self, name: str, origin: str) -> "Agent[..., Any]":
        """The agent of this name and origin."""
        found = self.find(name, origin)
        if found is None:
            raise self._unknown(name, f" from {origin}")
        return found

    def named(self, name: str) -> "Agent[..., Any]":
        """The only agent of this name, wherever it comes from."""
        found = [agent for agent in self._agents.values() if agent.name == name]
        if not found:
            raise self._unknown(name, "")
        if len(found) > 1:
            raise UsageError(
                code="ambiguous_agent",
                what=f"several agents are called {name}",
                found=" and ".join(sorted(agent.definition.origin for agent in found)),
                todo="pass the function itself, or name its origin too",
            )
        return found[0]

    def all(self) -> "tuple[Agent[..., Any], ...]":
        """Every agent, by name and origin."""
        return tuple(self._agents[key] for key in sorted(self._agents))

    def _unknown(self, name: str, detail: str) -> NotFound:
        likely = closest(name, {known for known, _ in self._agents})
        return NotFound(
            code="unknown_agent",
            what=f"this process has no agent {shown(name)}{detail}",
            allowed=", ".join(agent.name for agent in self.all()[:20]) or "none is registered",
            todo=f"did you mean {likely[0]}?" if likely else "decorate it with @agent and import its module",
        )


registry = Registry()
"""What `@agent` fills."""
