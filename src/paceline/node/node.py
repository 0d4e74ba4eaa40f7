"""One node: its loops, what it runs, and how it starts and stops."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence

from paceline.agents.function import BoundHandler
from paceline.errors import PacelineError, StoreError
from paceline.node.completer import Completer
from paceline.node.dispatcher import Dispatcher
from paceline.node.drive import Driver
from paceline.node.heartbeat import Heartbeat, NodeFacts
from paceline.node.janitor import Janitor, Tidied
from paceline.node.lookout import Lookout
from paceline.node.pools import Served
from paceline.node.pump import Pump, Round
from paceline.node.reaper import Reaper
from paceline.node.reports import Reporter
from paceline.node.runner import Runner
from paceline.node.warden import Warden, Watched
from paceline.store.protocol import Store
from paceline.units.reap import end_node, give_back_jobs
from paceline.workers.identity import State as ProcessState
from paceline.workers.identity import state_seen_here
from paceline.workers.inline import InlineWorkers

log = logging.getLogger("paceline.node")

FAREWELL, FAREWELL_IN_TROUBLE = 30.0, 2.0
"""Seconds that a node takes to write down that it leaves; others find out by its lease if it cannot."""


class Node:
    """Claims and runs jobs of the agents it has code for; `told` hears of all that ended here, and of results.

    `left` is called when there is work that this node leaves for others.
    """

    def __init__(
        self,
        store: Store,
        facts: NodeFacts,
        store_id: str,
        told: Callable[[Sequence[int], Mapping[int, str]], None],
        *,
        drain: float = 30.0,
        left: Callable[[], None] = lambda: None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._facts = facts
        self._told = told
        self._drain = drain
        self._left = left
        self._workers = InlineWorkers(facts.slots)
        self.dispatcher = Dispatcher(work_sharing=facts.work_sharing)
        self._reporter = Reporter(lambda: self.pump.reports, self._said)
        self._runner = Runner(self._workers, store_id, self._reporter, self._ended)
        self.heartbeat = Heartbeat(facts, lambda: list(self.dispatcher.served), self._lost)
        self.pump = Pump(lambda: self.heartbeat.node, self.dispatcher, Completer(chance), facts.slots, self._take_in)
        self.warden = Warden(lambda: self.heartbeat.node, self._runner.holds, self._watched)
        self.reaper = Reaper(
            lambda: self.heartbeat.node, _state_of_text, store.clock.monotonic, facts.dead_after, self.poke
        )
        self.janitor = Janitor(self._tidied)
        self._drivers = {
            loop.name: Driver(loop, store)
            for loop in (self.heartbeat, self.pump, self.warden, self.reaper, self.janitor, Lookout())
        }
        self._started = False

    @property
    def id(self) -> int:
        """The number of this node's present life; 0 before it began."""
        return self.heartbeat.node

    @property
    def running(self) -> int:
        """How many jobs run here."""
        return len(self.pump.running)

    @property
    def trouble(self) -> PacelineError | None:
        """Why one of the loops cannot work just now; the loops themselves go on trying."""
        return next((driver.trouble for driver in self._drivers.values() if driver.trouble), None)

    def stop_claiming(self) -> None:
        """What runs goes on; nothing new is begun."""
        self.pump.accepting = False

    def serve(self, agent: int, name: str, handler: BoundHandler, *, limited: bool, needs: Mapping[str, int]) -> None:
        """This node has code for an agent from now on."""
        self._runner.serve(agent, name, handler)
        self.dispatcher.serve(agent, Served(limited, needs))
        if self._started:
            self._drivers["heartbeat"].poke()
            self._drivers["pump"].poke()

    async def start(self) -> None:
        """Begins a life in the store, then all loops; starting twice is fine."""
        if self._started:
            return
        self._started = True
        self._reporter.start()
        unit = self.heartbeat.unit(self._store.clock.now())
        self.heartbeat.done(await self._store.transact(unit), self._store.clock.now())
        for driver in self._drivers.values():
            driver.start()

    async def stop(self, drain: float | None = None) -> None:
        """Claims no more, lets running jobs finish for a while, gives back the rest and leaves; twice is fine."""
        if not self._started:
            return
        self.pump.accepting = False
        await self._workers.drain(self._drain if drain is None else drain)
        self._runner.give_back()
        await self._workers.drain(1.0)
        self._started = False
        try:
            async with asyncio.timeout(FAREWELL_IN_TROUBLE if self.trouble else FAREWELL):
                for name in ("lookout", "janitor", "reaper", "warden", "heartbeat", "pump"):
                    await self._drivers[name].stop()
                await self._leave()
        except StoreError as error:
            log.warning("the store cannot be told that this node leaves; its lease says so later: %s", error)
        except TimeoutError:
            log.warning("this node leaves without having told the store, which took too long; its lease says so later")
        self._workers.stop()

    async def _leave(self) -> None:
        """What ended last is written, the node's life is ended, and anything it still holds returns to the queue."""
        while self.pump.busy() or self.pump.reports:
            now = self._store.clock.now()
            self.pump.done(await self._store.transact(self.pump.unit(now)), now)
        node = self.heartbeat.node
        await self._store.transact(lambda tx: end_node(tx, node, "stopped"))
        while await self._store.transact(lambda tx: give_back_jobs(tx, node, "node_stopped")):
            pass

    def poke(self) -> None:
        """There may be work."""
        self._drivers["pump"].poke()

    def poke_now(self) -> None:
        """There will be work: a claim stands in line behind the submission and shares its commit."""
        self._drivers["pump"].poke_now()

    def look_after(self) -> None:
        """Others have ended or left something: look at it now."""
        self.warden.call()
        self.janitor.call()
        self._drivers["warden"].poke()
        self._drivers["janitor"].poke()

    def _take_in(self, round: Round) -> None:
        """What the pump has committed: tell who waits, run what was claimed."""
        if round.ended:
            self._told([job for job, _ in round.ended], round.bodies)
        if round.starts:
            self.warden.watch([start.job for start in round.starts], self._store.clock.now())
            self._drivers["warden"].plan()
            for start in round.starts:
                self._runner.begin(start)
        if round.offers:
            self._left()
        if round.postponed:
            self.janitor.call()
            self._drivers["janitor"].poke()
        if self.pump.busy() or round.more:
            self._drivers["pump"].poke()

    def _ended(self, end: object) -> None:
        self.pump.ended(end)  # type: ignore[arg-type]
        if self.pump.all_ended():
            self._drivers["pump"].poke_now()
        else:
            self._drivers["pump"].poke()

    def _said(self) -> None:
        """Agents said something: it is written soon, together with what others say meanwhile."""
        self._drivers["pump"].plan()

    def _watched(self, watched: Watched) -> None:
        if watched.ended:
            self._told([job for job, _ in watched.ended], {})
            self._drivers["pump"].poke()  # what waited for their end, whatever it was, is ready
        for job, epoch in watched.stop:
            self._runner.stop(job, epoch)

    def _tidied(self, tidied: Tidied) -> None:
        if tidied.ended:
            self._told([job for job, _ in tidied.ended], {})
        if tidied.readied or tidied.more:
            self._drivers["pump"].poke()

    def _lost(self) -> None:
        """Somebody ended this node's life while it was frozen: what runs here was given to others."""
        log.warning("this node had fallen silent: others took over its jobs, and it begins a new life")
        self._runner.abandon()
        self.dispatcher.forget()


def _state_of_text(identity: str) -> ProcessState:
    """A simulation answers in the place of this."""
    return state_seen_here(identity)
