"""The composition root: one object that is a client of a store and, unless asked otherwise, a node."""

import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, Unpack

from paceline.agents.definition import Agent, as_agent
from paceline.agents.function import bind
from paceline.agents.loading import refuse_while_importing
from paceline.agents.registry import registry
from paceline.bus.protocol import Hint, Notifier
from paceline.client.client import Client, Target, speaking
from paceline.client.graph import Call, agent_of
from paceline.client.job import Job
from paceline.client.options import Defaults, Options
from paceline.config import Settings, current
from paceline.core.capacity import refuse_needs
from paceline.core.explanation import Explanation
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.core.scheduling import QueueClass
from paceline.events import Event, Severity
from paceline.node.heartbeat import NodeFacts
from paceline.node.node import Node
from paceline.opening import Opened, open_store
from paceline.store.protocol import Store, Tx
from paceline.sync import SyncPaceline
from paceline.workers import identity

Submittable = Agent[..., Any] | Callable[..., Any] | str


class Paceline:
    """`async with Paceline("sqlite:///work.db") as pl:` opens the store and runs a node in this process.

    With `node=False` it only submits, waits and looks. `agents` limits what the node runs; by default it runs every
    agent that this process has declared.
    """

    def __init__(
        self,
        store: str | None = None,
        *,
        node: bool = True,
        agents: Iterable[Submittable] | None = None,
        **settings: object,
    ) -> None:
        refuse_while_importing()
        self.settings: Settings = current(store=store, **settings)
        self._wants_node = node
        self._agents = agents
        self._opened: Opened | None = None
        self._client: Client | None = None
        self._node: Node | None = None
        self._notifier: Notifier | None = None
        self._targets: dict[Agent[..., Any], Target] = {}

    @staticmethod
    def sync(store: str | None = None, **settings: Any) -> SyncPaceline:
        """The same for scripts without asyncio: `with Paceline.sync(...) as pl:`."""
        return SyncPaceline(lambda: Paceline(store, **settings))

    @property
    def client(self) -> Client:
        """The door to the store; open while the `async with` block lasts."""
        if self._client is None:
            raise RuntimeError("use `async with Paceline(...) as pl:`")
        return self._client

    @property
    def node(self) -> Node | None:
        """The node in this process, if there is one."""
        return self._node

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(drain=None if error is None else 0.0)

    async def start(self) -> None:
        """Opens the store and starts the node; starting twice is fine, and a start that fails leaves nothing open."""
        if self._opened is not None:
            return
        with speaking():
            self._opened = open_store(self.settings)
            try:
                await self._start(self._opened)
            except BaseException:
                await self.stop(drain=0.0)
                raise

    async def _start(self, opened: Opened) -> None:
        opened.store.start()
        self._notifier = opened.notifier()
        self._notifier.start()
        self._client = Client(
            opened.store, self._notifier, max_pending=self.settings.max_pending, poke=self._poke, attend=self._attend,
            visits=opened.visits,
            home=lambda: self._node.id if self._node is not None else 0,
        )  # fmt: skip
        if self._wants_node:
            self._node = Node(
                opened.store,
                self._facts(),
                opened.id,
                self._client.tell_ended,
                drain=self.settings.drain / 1e6,
                left=self._client.tell_of_work,
            )
            self._notifier.listen(self._on_hints)
            for agent in self._declared():
                await self._target(agent)
            await self._node.start()

    async def stop(self, drain: float | None = None) -> None:
        """Stops the node gracefully and closes the store; stopping twice is fine."""
        if self._opened is None:
            return
        if self._node is not None:
            await self._node.stop(drain)
        if self._client is not None:
            self._client.close()
        if self._notifier is not None:
            self._notifier.stop()
        self._opened.store.close()
        self._opened = self._client = self._node = self._notifier = None
        self._targets.clear()

    async def submit(
        self,
        agent: Submittable,
        input: object = None,
        *,
        after: Iterable[object] = (),
        connection: object = None,
        **options: Unpack[Options],
    ) -> Job:
        """One job; when this returns it is durable.

        With a `connection` of psycopg to the store's own database it is written in the transaction open there, and
        exists if, and only if, that commits.
        """
        target = await self._resolve(agent)
        return await self.client.submit(target, input, after=after, connection=connection, **options)

    async def submit_many(
        self,
        agent: Submittable,
        inputs: Iterable[object],
        *,
        after: Iterable[object] = (),
        connection: object = None,
        **options: Unpack[Options],
    ) -> list[Job]:
        """One job per input, all of them or none; the options hold for each, and `connection` as for `submit`."""
        target = await self._resolve(agent)
        return await self.client.submit_many(target, inputs, after=after, connection=connection, **options)

    async def submit_graph(self, calls: Mapping[str, Call]) -> dict[str, Job]:
        """Jobs that depend on each other by name: `{"a": call(f, 1), "b": call(f, 2, after=["a"])}`."""
        with speaking():
            agents = {name: agent_of(name, one) for name, one in calls.items()}
            targets = {name: (await self._resolve(agents[name]), one) for name, one in calls.items()}  # type: ignore[arg-type]
        return await self.client.submit_graph(targets)

    async def results(
        self, jobs: Sequence[Job], timeout: float | None = None, return_exceptions: bool = False
    ) -> list[Any]:
        """All results, in the order of the jobs."""
        return await self.client.results(jobs, timeout, return_exceptions)

    async def explain(self, job: object) -> Explanation:
        """Why a job is where it is: `print(await pl.explain(job))`."""
        return await self.client.explain(job)

    async def jobs(
        self, *, state: State | str | None = None, agent: str | None = None, tenant: str | None = None, limit: int = 50
    ) -> list[JobLine]:
        """Jobs that fit, the newest first; those of one open state in the order in which they come to run."""
        return await self.client.jobs(state=state, agent=agent, tenant=tenant, limit=limit)

    async def dead(self, *, agent: str | None = None, tenant: str | None = None, limit: int = 50) -> list[JobLine]:
        """Jobs that failed or timed out, the newest first."""
        return await self.client.dead(agent=agent, tenant=tenant, limit=limit)

    def events(
        self,
        *,
        after: int = 0,
        job: object = None,
        kinds: Iterable[str] = (),
        severity: Severity | str | None = None,
        follow: bool = False,
    ) -> AsyncIterator[Event]:
        """The log behind the event id `after`, oldest first; with `follow` it goes on for ever."""
        return self.client.events(after=after, job=job, kinds=kinds, severity=severity, follow=follow)

    async def cancel(self, job: object) -> bool:
        """Ends a job and its tree; False when it had ended before."""
        return await self.client.cancel(job)

    async def retry(self, job: object) -> Job:
        """Tries a dead job again."""
        return await self.client.retry(job)

    def job(self, id: object) -> Job:
        """A handle on a job by its id."""
        return self.client.job(id)

    async def _resolve(self, agent: Submittable) -> Target:
        if isinstance(agent, str):
            here = [one for one in registry.all() if one.name == agent]
            return await (self._target(here[0]) if len(here) == 1 else self.client.target(agent))
        known = self._targets.get(agent) if isinstance(agent, Agent) else None
        if known is not None:
            return known
        with speaking():
            return await self._target(as_agent(agent))

    async def _target(self, agent: Agent[..., Any]) -> Target:
        """The agent's number in this store; the node here has code for it from now on."""
        known = self._targets.get(agent)
        if known is not None:
            return known
        handler, definition = bind(agent), agent.definition
        number = await self.client.store.transact(lambda tx: _register(tx, agent))
        target = self._targets[agent] = Target(number, agent.name, _defaults(agent), handler.check_input)
        if self._node is not None:
            limited = definition.max_concurrency is not None
            self._node.serve(number, agent.name, handler, limited=limited, needs=definition.needs)
        return target

    def _declared(self) -> list[Agent[..., Any]]:
        chosen = registry.all() if self._agents is None else self._agents
        return [registry.named(one) if isinstance(one, str) else as_agent(one) for one in chosen]

    def _facts(self) -> NodeFacts:
        settings = self.settings
        return NodeFacts(
            name=f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:4]}",
            identity=str(identity.current()),
            version=version("paceline"),
            slots=settings.slots,
            beat_every=settings.heartbeat,
            dead_after=settings.dead_after,
            work_sharing=settings.work_sharing,
        )

    def _poke(self) -> None:
        if self._node is not None:
            self._node.poke_now()

    def _attend(self) -> None:
        if self._node is not None:
            self._node.look_after()

    def _on_hints(self, hints: tuple[Hint, ...]) -> None:
        if self._node is None:
            return
        for hint in hints:
            if hint.topic == "ready":
                self._node.poke()
            elif hint.topic == "cancel":
                self._node.look_after()


def registered(store: Store, agent: Agent[..., Any]) -> Target:
    """The agent as a store knows it from now on, for programs without an event loop."""
    number = store.execute(lambda tx: _register(tx, agent))
    return Target(number, agent.name, _defaults(agent), bind(agent).check_input)


def _register(tx: Tx, agent: Agent[..., Any]) -> int:
    definition = agent.definition
    refuse_needs(agent.name, definition.needs, tx.pools.limits())
    return tx.lanes.register(definition.name, definition.origin, definition.as_json(), definition.max_concurrency)


def _defaults(agent: Agent[..., Any]) -> Defaults:
    said, usual = agent.definition, Defaults()
    return Defaults(
        priority=usual.priority if said.priority is None else said.priority,
        queue_class=usual.queue_class if said.queue_class is None else QueueClass(said.queue_class),
        tenant=said.tenant or usual.tenant,
        retries=said.retries,
        timeout=said.timeout,
    )
