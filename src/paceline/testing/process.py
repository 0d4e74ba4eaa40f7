"""One simulated process: the product's own client and node on a loop that is turned by hand.

Nothing of the product is replaced but what carries units to the database and hints to others.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import paceline.node.node as node_module
from paceline.agents.function import BoundHandler
from paceline.bus.protocol import Callback, Hint, Reach
from paceline.client.client import Client
from paceline.errors import StoreError
from paceline.node.heartbeat import NodeFacts
from paceline.node.node import Node
from paceline.payloads import shape_of
from paceline.store.protocol import Done, Store, Tx
from paceline.testing.clock import SkewedClock
from paceline.testing.turning import TurningLoop

if TYPE_CHECKING:
    from paceline.testing.world import World

T = TypeVar("T")
_ANYTHING = shape_of(object)


class Waiting(NamedTuple):
    """A unit of work in the writer's queue, and whom to tell."""

    unit: Callable[[Tx], Any]
    tell: Callable[[Done], None]


class QueuedStore:
    """The store as client and node of one process see it: the world decides when the queue is carried out."""

    def __init__(self, process: "Process") -> None:
        self.clock = process.clock
        self._process = process

    near = True

    def execute(self, unit: Callable[[Tx], T]) -> T:
        return self._process.world.store.execute(unit)

    def hand_over(self, unit: Callable[[Tx], Any], tell: Callable[[Done], None]) -> None:
        self._process.waiting.append(Waiting(unit, tell))

    def enqueue(self, unit: Callable[[Tx], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._process.loop.create_future()
        self.hand_over(unit, partial(_resolve, future))
        return future

    async def transact(self, unit: Callable[[Tx], T]) -> T:
        return await self.enqueue(unit)

    def look(self, question: Callable[[Tx], T]) -> T:
        return self._process.world.store.look(question)

    async def read(self, question: Callable[[Tx], T]) -> T:
        return self.look(question)


class Bell:
    """The notifier of one process; the world decides what is lost and what is late."""

    reach: Reach = "host"
    reason = ""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._callbacks: list[Callback] = []

    def start(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        """There is nothing to stop."""

    async def settled(self) -> None:
        """There is nothing to wait for."""

    def tell(self, hints: Sequence[Hint]) -> None:
        self._process.world.tell(tuple(hints))

    def tell_others(self, hints: Sequence[Hint]) -> None:
        self._process.world.tell(tuple(hints), but=self._process)

    def listen(self, callback: Callback) -> Callable[[], None]:
        self._callbacks.append(callback)
        return partial(self._callbacks.remove, callback)

    def ring(self, hints: tuple[Hint, ...]) -> None:
        for callback in self._callbacks:
            self._process.loop.call_soon(callback, hints)


class Process:
    """A client and, unless it only submits, a node; all of their memory is lost together."""

    def __init__(self, world: "World", name: str, slots: int, wrong_by: int = 0) -> None:
        self.world = world
        self.name = name
        self.clock = SkewedClock(world.clock, wrong_by)
        self.loop = TurningLoop(world.clock)
        self.frozen_until = 0
        self.froze = False
        self.waiting: deque[Waiting] = deque()
        self.unheard = 0
        self.operations: list[asyncio.Task[Any]] = []
        self.running: dict[tuple[int, int], None] = {}
        self.life = 0
        self.swept = False
        self.stopping = False
        self.left = False
        self.node: Node | None = None
        self._bell = Bell(self)
        store = cast(Store, QueuedStore(self))
        self.client = Client(
            store, self._bell, max_pending=world.knobs.max_pending, poke=self._poke, home=lambda: self.life
        )
        if slots:
            self.node = self._node(store, slots)
            self._bell.listen(self._on_hints)

    def begin(self, operation: Coroutine[Any, Any, None]) -> None:
        """A caller wants something of the client."""
        self.operations = [task for task in self.operations if not task.done()]
        self.operations.append(self.loop.create_task(operation))

    def start(self) -> None:
        """The node begins its life; a process that cannot do so ends."""
        assert self.node is not None
        self.loop.create_task(self._unless_the_store_fails(self.node.start, leaving=False))

    def stop(self) -> None:
        """The node is asked to stop gracefully."""
        assert self.node is not None
        self.stopping = True
        self.loop.create_task(self._unless_the_store_fails(self.node.stop, leaving=True))

    def hear(self, hints: tuple[Hint, ...]) -> None:
        """Hints have come."""
        self._bell.ring(hints)

    def commit(self, count: int, units: Callable[[list[Callable[[Tx], Any]]], list[Done]]) -> None:
        """The writer carries out what waits; those who wait hear of it in a later turn."""
        batch = [self.waiting.popleft() for _ in range(count)]
        done = units([one.unit for one in batch])
        self.unheard += 1
        self.loop.call_soon(self._tell_all, [(one.tell, what) for one, what in zip(batch, done, strict=True)])

    def turn(self, most: int) -> None:
        """The loop goes on."""
        self.loop.turn(most)
        if self.node is not None and self.node.id != self.life:
            if self.life:
                self.world.hit("frozen node fenced")
            self.life = self.node.id

    def crash(self) -> None:
        """Everything in memory is gone; what was committed stays."""
        self.loop.die()
        self.waiting.clear()
        self.running.clear()

    def serve(self, agent: int, name: str, limited: bool, needs: dict[str, int]) -> None:
        """The node has code for an agent."""
        assert self.node is not None
        run = partial(self.world.workload.run_code, self)
        handler = BoundHandler(run, True, True, name, _serial_of, str, _ANYTHING, frozenset())
        self.loop.call_soon(partial(self.node.serve, agent, name, handler, limited=limited, needs=needs))

    async def _unless_the_store_fails(self, what: Callable[[], Coroutine[Any, Any, None]], leaving: bool) -> None:
        try:
            await what()
            self.left = leaving
        except StoreError as error:
            self.world.trouble(error)
            self.left = True

    def _tell_all(self, answers: list[tuple[Callable[[Done], None], Done]]) -> None:
        self.unheard -= 1
        for tell, done in answers:
            tell(done)

    def _node(self, store: Store, slots: int) -> Node:
        """The product's own node; only what it would ask the operating system is asked of the world."""
        world, term = self.world, self.world.knobs.term
        shares = world.random.random() >= world.knobs.pinned
        facts = NodeFacts(self.name, self.name, "simulated", slots, term // 4, term, shares)
        asked = node_module._state_of_text
        vars(node_module)["_state_of_text"] = world.process_state
        try:
            return Node(
                store,
                facts,
                "simulated",
                self.client.tell_ended,
                drain=1.0,
                left=self._leaves,
                chance=world.random.random,
            )
        finally:
            vars(node_module)["_state_of_text"] = asked

    def _leaves(self) -> None:
        self.world.hit("work was left for other nodes")
        self.client.tell_of_work()

    def _poke(self) -> None:
        if self.node is not None:
            self.node.poke_now()

    def _on_hints(self, hints: tuple[Hint, ...]) -> None:
        """As the composition root of the product does it."""
        if self.node is None:
            return
        for hint in hints:
            if hint.topic == "ready":
                self.node.poke()
            elif hint.topic == "cancel":
                self.node.look_after()


def _serial_of(value: Any) -> Any:
    return (value["serial"],), {}


def _resolve(future: "asyncio.Future[Any]", done: Done) -> None:
    if future.done():
        return
    if done.error is None:
        future.set_result(done.value)
    else:
        future.set_exception(done.error)
