"""A whole system in one thread: several processes, one store, one clock, and everything that can go wrong."""

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple

from paceline.bus.protocol import Hint
from paceline.clock import Clock
from paceline.errors import PacelineError, StoreError
from paceline.events import Kind
from paceline.node.pump import Round
from paceline.node.reaper import Reaped
from paceline.store.dialect import SQLITE
from paceline.store.migrate import connect
from paceline.store.protocol import Done, Tx
from paceline.store.sql import Store
from paceline.store.statements import Statements
from paceline.testing.clock import ManualClock
from paceline.testing.laws import Laws, Violation
from paceline.testing.process import Process
from paceline.testing.workload import Workload

SECOND = 1_000_000
Fault = Literal["", "before", "after"]


class AgentKind(NamedTuple):
    """One agent of the simulated system."""

    name: str
    most: int | None
    needs: Mapping[str, int]


AGENTS = (
    AgentKind("free", None, {}),
    AgentKind("single", 1, {}),
    AgentKind("pair", 2, {}),
    AgentKind("locked", None, {"lock:deploy": 1}),
    AgentKind("model", 2, {"gpu": 2}),
    AgentKind("light", None, {"gpu": 1}),
)
POOLS = {"gpu": 3, "lock:deploy": 1}


class Knobs(NamedTuple):
    """What one seed makes different: sizes made small so that rare branches are common, and how often what fails."""

    nodes: int
    clients: int
    term: int
    unit_rows: int
    abandoned_after: int
    max_pending: int
    operations: int
    crash: float
    freeze: float
    sleep: float
    error: float
    unknown: float
    poison: float
    lost_hints: float
    pace: float
    skew: int
    pinned: float

    @classmethod
    def drawn(cls, chance: Random) -> "Knobs":
        """By chance: most worlds have most faults, some have few."""
        calm = chance.choice((0.0, 0.3, 1.0, 1.0, 2.0))
        return cls(
            nodes=chance.choice((1, 2, 3, 3)), clients=chance.choice((0, 1, 1)),
            term=chance.choice((2, 4, 8)) * SECOND, unit_rows=chance.choice((2, 3, 4, 6, 500)),
            abandoned_after=chance.choice((3, 8)) * SECOND, max_pending=chance.choice((8, 100, 100)),
            operations=chance.randrange(8, 25), skew=chance.choice((0, SECOND // 50, SECOND)),
            pinned=chance.choice((0.0, 0.0, 0.4)),
            crash=0.006 * calm, freeze=0.012 * calm, sleep=0.002 * calm,
            error=0.03 * calm, unknown=0.02 * calm, poison=0.03 * calm,
            lost_hints=chance.choice((0.0, 0.2, 1.0)), pace=0.08,
        )  # fmt: skip


class ChangedStatements(Statements):
    """The product's SQL with some of it said otherwise."""

    def __init__(self, changes: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(SQLITE)
        self._changed = {name: self._said_otherwise(name, *change) for name, change in changes.items()}

    def __getitem__(self, name: str) -> str:
        return self._changed.get(name) or super().__getitem__(name)

    def _said_otherwise(self, name: str, old: str, new: str) -> str:
        text = super().__getitem__(name)
        if old not in text:
            raise ValueError(f"{name} does not say {old!r} any more")
        return text.replace(old, new)


class SimulatedStore(Store):
    """The real store in memory; a commit can be made to fail, before or after it has happened."""

    def __init__(self, clock: Clock, changes: Mapping[str, tuple[str, str]] = MappingProxyType({})) -> None:
        sql = ChangedStatements(changes) if changes else Statements(SQLITE)
        self._database = connect(None, SQLITE)
        super().__init__(self._database, sql, clock)
        found = self.rows("select name from sqlite_schema where type = 'table' and name <> 'meta' order by name")
        self._wipe = "begin;" + "".join(f"delete from {name};" for (name,) in found) + "commit"
        self.fault: Fault = ""

    def rows(self, sql: str, bindings: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """A question past all rooms, for those who check."""
        return self._database.rows(sql, bindings)  # type: ignore[arg-type]

    def empty(self, clock: Clock) -> None:
        """As good as new: numbers begin at one again."""
        self.clock = clock
        self.fault = ""
        self._tx.lanes.forget()
        self._database.script(self._wipe)

    def _finish(self) -> None:
        fault, self.fault = self.fault, ""
        if fault == "before":
            raise StoreError(code="simulated", what="the commit failed")
        super()._finish()
        if fault == "after":
            raise StoreError(code="simulated", what="nobody knows whether the commit happened")


class Ghost(Exception):
    """What a unit raises in the middle of others."""


class World:
    """Everything of one seed."""

    def __init__(self, random: Random, knobs: Knobs, store: SimulatedStore) -> None:
        self.random, self.knobs, self.store = random, knobs, store
        self.clock = ManualClock()
        store.empty(self.clock)
        self.agents = AGENTS
        self.rough = True
        self.hits: Counter[str] = Counter()
        self.claims: dict[tuple[int, int], int | None] = {}
        self.hints: list[tuple[Process, tuple[Hint, ...]]] = []
        self.commits = 0
        self.names = 0
        self.slept_at: int | None = None
        self._saw_sleep: set[str] = set()
        self._beats: dict[str, int] = {}
        self.committing = ""
        self._gone: set[str] = set()
        self._slots: dict[int | None, int] = {}
        store.execute(self._furnish)
        self.workload = Workload(self)
        self.laws = Laws(self)
        self.processes: list[Process | None] = [None] * (knobs.nodes + knobs.clients)
        for place in range(len(self.processes)):
            self.start(place)

    def start(self, place: int) -> None:
        """A new process; the first places have nodes."""
        self.names += 1
        slots = self.random.randrange(1, 5) if place < self.knobs.nodes else 0
        wrong_by = self.random.randint(-self.knobs.skew, self.knobs.skew)
        process = self.processes[place] = Process(self, f"p{self.names}", slots, wrong_by)
        if slots:
            self.serve(process, every=not self.rough or self.random.random() < 0.7)
            process.start()

    def serve(self, process: Process, *, every: bool) -> None:
        """The node has code for all agents, or for some."""
        for number, kind in enumerate(self.agents, 1):
            if every or self.random.random() < 0.6:
                process.serve(number, kind.name, kind.most is not None, dict(kind.needs))

    def crash(self, place: int) -> str:
        """A process is gone from one moment to the next; others may see that at once, or never."""
        process = self.processes[place]
        assert process is not None
        if process.unheard:
            self.hit("crash after the commit, before it was heard of")
        if process.waiting:
            self.hit("crash before the commit")
        self.end(place, seen=self.random.random() < 0.5)
        return f"{process.name} crashes"

    def end(self, place: int, *, seen: bool) -> None:
        """The process in this place is no more."""
        process = self.processes[place]
        assert process is not None
        process.crash()
        if seen:
            self._gone.add(process.name)
        self.processes[place] = None

    def process_state(self, name: str) -> Literal["alive", "dead", "unknown"]:
        """What others can see of a process."""
        return "dead" if name in self._gone else "unknown"

    def sleep(self, jump: int) -> None:
        """The host sleeps: store time goes on, awake time stands still."""
        self.slept_at = self.clock.monotonic()
        self._saw_sleep = {process.name for process in self.processes if process is not None and process.swept}
        self.clock.suspend(jump)

    def commit(self, process: Process) -> str:
        """One group commit of what waits in a process."""
        count = len(process.waiting)
        fault: Fault = ""
        if self.rough:
            dice, error = self.random.random(), self.knobs.error
            fault = "before" if dice < error else "after" if dice < error + self.knobs.unknown else ""
            count = self.random.randrange(1, count + 1)
        labels: tuple[str, ...] = ()

        def carry_out(units: list[Callable[[Tx], Any]]) -> list[Done]:
            nonlocal labels
            done = self._carry_out(units, fault)
            labels = tuple(type(one.value).__name__ for one in done)
            return done

        self.committing = process.name
        process.commit(count, carry_out)
        if fault:
            self.hit(f"error {fault} the commit")
        if process.froze:
            process.froze = False
            self.hit("what a frozen process had sent came late")
        self.commits += 1
        self._note(process, labels)
        changed = self.laws.check(labels)
        self.laws.still_running()
        self.laws.lives.leading(self.clock.now())
        if self.commits % 24 == 0:
            self.laws.heavy()
        return f"{process.name} commits {','.join(labels)} {fault} {changed}"

    def was_pardoned(self, name: str) -> bool:
        """The node renewed its lease so lately, counted in time awake, that only the host's sleep made it late."""
        beat = self._beats.get(name)
        if beat is None or self.slept_at is None or beat > self.slept_at or self.committing not in self._saw_sleep:
            return False
        return self.clock.monotonic() - beat < self.knobs.term // 2

    def close(self) -> None:
        """Everything that lives in memory ends."""
        for place, process in enumerate(self.processes):
            if process is not None:
                self.end(place, seen=True)

    def tell(self, hints: tuple[Hint, ...], but: Process | None = None) -> None:
        """Hints to every process, as far as they are not lost."""
        for process in self.processes:
            if process is not None and process is not but and self.random.random() >= self.knobs.lost_hints:
                self.hints.append((process, hints))

    def hit(self, branch: str) -> None:
        """A rare branch was taken."""
        self.hits[branch] += 1

    def trouble(self, error: BaseException) -> None:
        """Errors that the world itself has made are no surprise; any other is a bug."""
        if not isinstance(error, PacelineError) or error.code != "simulated":
            raise Violation("unexpected_error", repr(error)) from error

    def refused(self, error: PacelineError) -> None:
        """The answer was no, for a reason that a caller may meet."""
        if error.code == "simulated":
            return
        if error.code not in ("queue_full", "submission_abandoned", "parent_ended", "not_dead"):
            raise Violation("unexpected_error", str(error)) from error
        self.hit(f"refused: {error.code}")

    def needs(self, agent: int) -> Mapping[str, int]:
        return self.agents[agent - 1].needs

    def limit(self, agent: int) -> int | None:
        return self.agents[agent - 1].most

    def pool(self, name: str) -> int:
        return POOLS[name]

    def slots(self, node: int | None) -> int:
        if node not in self._slots:
            self._slots[node] = self.store.rows("select slots from nodes where id = ?", (node,))[0][0]
        return self._slots[node]

    def _carry_out(self, units: list[Callable[[Tx], Any]], fault: Fault) -> list[Done]:
        poisoned = self.rough and self.random.random() < self.knobs.poison
        place = self.random.randrange(len(units) + 1)
        if poisoned:
            units.insert(place, _raise_half_way)
            self.hit("a unit raised in a group commit")
        self.store.fault = fault
        done = self.store.commit(units)
        self.store.fault = ""
        if poisoned:
            del done[place]
        for one in done:
            if isinstance(one.value, Round) and one.value.stale:
                self.hit("stale completion refused")
            if isinstance(one.value, Reaped):
                self.laws.lives.swept(self.committing, one.value.leads)
        return done

    def _note(self, process: Process, labels: tuple[str, ...]) -> None:
        """Who has renewed a lease, and whom a sweep has pardoned."""
        now, awake = self.clock.now(), self.clock.monotonic()
        if "int" in labels:
            for (name,) in self.store.rows("select name from nodes where beat_at = ? and ended_at is null", (now,)):
                self._beats[name] = awake
        if "Reaped" in labels:
            if self.slept_at is not None and process.name in self._saw_sleep:
                late = "select 1 from nodes where ended_at is null and expires_at <= ? and name <> ?"
                if self.store.rows(late, (now, process.name)):
                    self.hit("amnesty used")
            process.swept = True

    def _furnish(self, tx: Tx) -> None:
        for number, kind in enumerate(self.agents, 1):
            given = tx.lanes.register(kind.name, "simulated", "{}", kind.most)
            assert given == number
        tx.pools.seed(POOLS)


def _raise_half_way(tx: Tx) -> None:
    tenant = tx.lanes.tenant("ghost")
    tx.lanes.lane(0, 0, tenant, 1)
    tx.edges.postpone([1])
    tx.events.announce(tx.now, Kind.SWEEP_REPAIRED, "{}")
    raise Ghost


class Listener(logging.Handler):
    """Hears what the product's loops complain about; what the world has not made itself is a bug."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        said = (*(record.args or ()), *(record.exc_info or ()))
        for error in said:
            if isinstance(error, Exception):
                self._world.trouble(error)


@contextmanager
def heard(world: World) -> Iterator[None]:
    """Whatever the product would log comes to the world."""
    log, listener = logging.getLogger("paceline"), Listener(world)
    kept = log.propagate
    log.propagate = False
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate = kept
        world.close()


@contextmanager
def sized(knobs: Knobs) -> Iterator[None]:
    """The product's sizes as one seed wants them, for as long as it runs."""
    wanted = {
        "UNIT_ROWS": knobs.unit_rows, "ABANDONED_AFTER": knobs.abandoned_after,
    }  # fmt: skip
    kept: list[tuple[ModuleType, str, object]] = []
    for name, module in list(sys.modules.items()):
        if name.startswith("paceline.") and not name.startswith("paceline.testing"):
            kept += [(module, one, vars(module)[one]) for one in wanted if one in vars(module)]
    try:
        for module, one, _ in kept:
            setattr(module, one, wanted[one])
        yield
    finally:
        for module, one, value in kept:
            setattr(module, one, value)
