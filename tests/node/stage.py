"""The loops of one node over a store, driven one unit at a time."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.model import SECOND
from paceline.events import Event, Kind
from paceline.node.completer import Completer
from paceline.node.dispatcher import Dispatcher, Start
from paceline.node.heartbeat import Heartbeat, NodeFacts
from paceline.node.loop import Loop
from paceline.node.pools import Served
from paceline.node.pump import Pump, Round
from paceline.store.protocol import Tx
from paceline.units.failing import ErrorBody, write_error
from store.world import World

BEAT, TERM = 15 * SECOND, 60 * SECOND


def facts(name: str = "n1", slots: int = 10, work_sharing: bool = True) -> NodeFacts:
    """What a node of these tests says of itself."""
    return NodeFacts(name, f"process of {name}", "1", slots, BEAT, TERM, work_sharing)


class Undone(Exception):
    """Rolls a unit back."""


class Bench:
    """A heartbeat and a pump that share a life, and whatever they told."""

    def __init__(self, world: World, slots: int = 10, name: str = "n1", work_sharing: bool = True) -> None:
        self.world, self.clock = world, world.clock
        world.do(lambda tx: tx.nodes.end(world.node, tx.now, "stopped"))
        self.dispatcher = Dispatcher(work_sharing=work_sharing)
        self.lives_lost = 0
        self.rounds: list[Round] = []
        self.completer = Completer(lambda: 0.5)
        self.heartbeat = Heartbeat(facts(name, slots, work_sharing), lambda: list(self.dispatcher.served), self._lost)
        self.pump = Pump(lambda: self.heartbeat.node, self.dispatcher, self.completer, slots, self.rounds.append)
        self.serve(world.agent)
        self.turn(self.heartbeat)

    def serve(self, agent: int, *, limited: bool = False, needs: Mapping[str, int] | None = None) -> None:
        """This node has code for an agent."""
        self.dispatcher.serve(agent, Served(limited, needs or {}))

    def turn(self, loop: Loop) -> Any:
        """One unit of a loop, committed and heard of."""
        unit = loop.unit(self.clock.now())
        assert unit is not None
        result = self.world.do(unit)
        loop.done(result, self.clock.now())
        return result

    def lose(self, loop: Loop) -> None:
        """One unit of a loop that was carried out and rolled back."""
        unit = loop.unit(self.clock.now())
        assert unit is not None

        def undone(tx: Tx) -> None:
            unit(tx)
            raise Undone

        with suppress(Undone):
            self.world.do(undone)
        loop.failed(self.clock.now())

    def lose_the_answer(self, loop: Loop) -> Any:
        """One unit of a loop that was committed, and nobody came to know."""
        unit = loop.unit(self.clock.now())
        assert unit is not None
        result = self.world.do(unit)
        loop.failed(self.clock.now())
        return result

    def pumped(self) -> Round:
        """One round of the pump."""
        self.turn(self.pump)
        return self.rounds[-1]

    def started(self) -> list[int]:
        """The jobs that one round of the pump begins."""
        return [start.job.id for start in self.pumped().starts]

    def running(self) -> list[int]:
        """The jobs that this node believes to run, in the order of their start."""
        return [job for job, _ in self.pump.running]

    def start_of(self, job: int) -> Start:
        """What the node holds of a job that it runs."""
        return next(start for (number, _), start in self.pump.running.items() if number == job)

    def returns(self, job: int, body: str = "2") -> None:
        """The code of a job is over, with a result."""
        self.pump.ended(Ended(self.start_of(job).job, Ending.RETURNED, body))

    def raises(
        self, job: int, failure: FailureClass = FailureClass.TRANSIENT, retry_after: float | None = None
    ) -> None:
        """The code of a job is over, with an exception."""
        body = write_error(ErrorBody("ValueError", "no", failure.value))
        self.pump.ended(Ended(self.start_of(job).job, Ending.RAISED, body, failure, retry_after, task=7))

    def stops(self, job: int, ending: Ending = Ending.STOPPED, reason: str = "") -> None:
        """The code of a job is over because somebody said so."""
        self.pump.ended(Ended(self.start_of(job).job, ending, reason=reason))

    def announced(self, kind: Kind) -> list[str]:
        """The data of all events of a kind, oldest first."""
        events: list[Event] = self.world.do(lambda tx: tx.events.after(0, 10_000))
        return [event.data or "" for event in events if event.kind is kind]

    def _lost(self) -> None:
        self.lives_lost += 1
        self.dispatcher.forget()
