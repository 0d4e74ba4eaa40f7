"""WHAT TO RUN: agents, how they are defined and found, and how JSON meets their functions."""

from paceline.agents.definition import Agent, AgentDefinition, agent, as_agent
from paceline.agents.function import BoundHandler, bind
from paceline.agents.registry import Registry, registry

__all__ = ["Agent", "AgentDefinition", "BoundHandler", "Registry", "agent", "as_agent", "bind", "registry"]
