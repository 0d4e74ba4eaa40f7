"""Agents, tenants and lanes as small numbers, and the heads of the lanes."""

from collections.abc import Sequence

from paceline.core.lanes import LaneFacts
from paceline.core.model import AgentRow
from paceline.core.scheduling import QueueClass
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements


class LaneRoom:
    """Numbers are given once and never change, so they are remembered until a rollback makes memory doubtful."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql
        self._tenants: dict[str, int] = {}
        self._lanes: dict[tuple[int, int, int, int, int], int] = {}

    def forget(self) -> None:
        """Something was rolled back: numbers given in it may not exist."""
        self._tenants.clear()
        self._lanes.clear()

    def register(self, name: str, origin: str, definition: str, max_concurrency: int | None) -> int:
        """The number of an agent, by name and origin; it stays, and the newest definition counts."""
        found = self._driver.rows(self._sql["lanes.agent"], {"name": name, "origin": origin})
        if found and found[0][1:] == (definition, max_concurrency):
            return int(found[0][0])
        arguments = {"name": name, "origin": origin, "definition": definition, "max_concurrency": max_concurrency}
        return int(self._driver.rows(self._sql["lanes.add_agent"], arguments)[0][0])

    def agents(self) -> list[AgentRow]:
        """Every agent the store knows."""
        return [AgentRow._make(row) for row in self._driver.rows(self._sql["lanes.agents"])]

    def agents_named(self, name: str) -> list[AgentRow]:
        """Agents of that name, one per origin."""
        return [AgentRow._make(row) for row in self._driver.rows(self._sql["lanes.agents_named"], {"name": name})]

    def tenant(self, name: str) -> int:
        """The number of a tenant, which is new when nobody has named it before."""
        number = self._tenants.get(name)
        if number is None:
            found = self._driver.rows(self._sql["lanes.tenant"], {"name": name})
            found = found or self._driver.rows(self._sql["lanes.add_tenant"], {"name": name})
            number = self._tenants[name] = int(found[0][0])
        return number

    def lane(self, queue_class: int, priority: int, tenant: int, agent: int, home: int = 0) -> int:
        """The number of a lane, which is new when nobody has used it before; `home`: see `Terms`."""
        key = (queue_class, priority, tenant, agent, home)
        number = self._lanes.get(key)
        if number is None:
            arguments = {"class": queue_class, "priority": priority, "tenant": tenant, "agent": agent, "home": home}
            found = self._driver.rows(self._sql["lanes.lane"], arguments)
            found = found or self._driver.rows(self._sql["lanes.add_lane"], arguments)
            number = self._lanes[key] = int(found[0][0])
        return number

    def facts(self, lanes: Sequence[int]) -> dict[int, LaneFacts]:
        """What the given lanes stand for; unknown ones are left out."""
        rows = self._driver.rows(self._sql["lanes.lanes"], {"ids": as_list(lanes)})
        return {row[0]: LaneFacts(row[0], QueueClass(row[1]), *row[2:]) for row in rows}

    def with_ready_jobs(self) -> list[int]:
        """Every lane that has a ready job, by number."""
        return [row[0] for row in self._driver.rows(self._sql["lanes.ready_lanes"])]

    def ready(self, jobs: Sequence[int]) -> list[Row]:
        """(lane, ready_at, job) of those of the given jobs that are ready."""
        return self._driver.rows(self._sql["lanes.ready"], {"ids": as_list(jobs)}) if jobs else []

    def heads(self, behind: Sequence[tuple[int, int, int]], most: int) -> list[Row]:
        """(lane, ready_at, job) of up to `most` ready jobs per lane behind the given (lane, ready_at, job)."""
        if len(behind) == 1:
            lane, ready_at, job = behind[0]
            arguments = {"lane": lane, "ready_at": ready_at, "job": job, "most": most}
            return [(lane, *row) for row in self._driver.rows(self._sql["lanes.head"], arguments)]
        return self._driver.rows(self._sql["lanes.heads"], {"rows": as_list(behind), "most": most})
