"""`simulate(seed)`: one whole system under faults, step by step, then in peace until everything has ended.

Whatever is two transactions in the product is two steps here, and so is the moment at which a process hears of a
commit: between any two steps it may crash, freeze, or be told that the store has failed.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random
from typing import NamedTuple

from paceline.testing.clock import ManualClock
from paceline.testing.laws import Violation
from paceline.testing.process import Process
from paceline.testing.world import SECOND, Knobs, SimulatedStore, World, heard, sized

STEPS = 260
MOST_QUIET_STEPS = 15_000
COMES_LATE = 0.02
"""What a process had sent before it froze is carried out when the database comes to it, or once the process wakes."""


class Report(NamedTuple):
    """What one seed has seen."""

    seed: int
    steps: int
    jobs: int
    hits: Counter[str]
    trace: str
    """The digest of everything that happened: the same seed has the same."""


class LawBroken(AssertionError):
    """A law of the system did not hold; says which, and how to see it again."""

    def __init__(self, seed: int, step: int, law: str, what: str) -> None:
        super().__init__(f"seed {seed}, step {step}: {law}: {what}\nagain: python -m paceline.testing {seed} --trace")
        self.seed, self.step, self.law = seed, step, law


class Simulation:
    """Decides by chance who goes on."""

    def __init__(self, seed: int, store: SimulatedStore, tell: Callable[[str], None] | None) -> None:
        self._random = Random(seed)
        self.knobs = Knobs.drawn(self._random)
        self._digest = hashlib.blake2b(digest_size=12)
        self._tell = tell
        self._store = store
        self.step = 0

    def run(self, seed: int, steps: int) -> Report:
        """The rough phase, then the quiet one."""
        self.world = World(self._random, self.knobs, self._store)
        try:
            with sized(self.knobs), heard(self.world):
                while self.step < steps:
                    self._one()
                self._calm_down()
                self._come_to_rest(self.step + MOST_QUIET_STEPS)
                self.world.laws.heavy()
        except Violation as broken:
            raise LawBroken(seed, self.step, broken.law, str(broken).partition(": ")[2]) from broken
        world = self.world
        return Report(seed, self.step, len(world.laws.jobs), world.hits, self._digest.hexdigest())

    def _come_to_rest(self, most: int) -> None:
        """Without faults everything that was accepted ends, and nothing is held."""
        while not (self._idle() and self.world.laws.at_rest()):
            if self.step >= most:
                raise Violation("liveness", f"not at rest: {self.world.laws.open_jobs()}")
            self._one()

    def _one(self) -> None:
        self.step += 1
        world = self.world
        text = self._happen() if world.rough else None
        if text is None:
            acts = self._acts()
            text = self._act(*self._random.choice(acts)) if acts else self._wait()
        self._digest.update(text.encode())
        if self._tell is not None:
            self._tell(f"{self.step:5} {world.clock.monotonic() / SECOND:10.3f}  {text}")

    def _happen(self) -> str | None:
        """Time passes, a client begins something, or something goes wrong."""
        knobs, dice = self.knobs, self._random.random()
        for likely, happens in (
            (0.10, self._pass_time), (knobs.pace, self._begin), (knobs.crash, self._crash), (0.02, self._restart),
            (knobs.freeze, self._freeze), (knobs.sleep, self._sleep), (knobs.crash, self._give_up),
            (knobs.crash / 2, self._stop), (0.05, self._hear),
        ):  # fmt: skip
            if dice < likely:
                return happens()
            dice -= likely
        return None

    def _acts(self) -> list[tuple[Process, bool]]:
        """Every process whose writer (True) or whose loop (False) could go on right now."""
        awake, acts = self.world.clock.monotonic(), []
        for process in self._awake():
            if process.waiting:
                acts.append((process, True))
            due = process.loop.due()
            if due is not None and due <= awake:
                acts.append((process, False))
        return acts + [(process, True) for process in self._frozen() if self._random.random() < COMES_LATE]

    def _act(self, process: Process, writing: bool) -> str:
        if writing:
            return self.world.commit(process)
        most = 1 if self.world.rough and self._random.random() < 0.5 else 1_000
        process.turn(most)
        if process.left:
            self.world.end(self.world.processes.index(process), seen=True)
            if not self.world.rough:
                self._keep_a_node()
        return f"{process.name} turns"

    def _wait(self) -> str:
        """Nobody can do anything: time passes until somebody can."""
        world = self.world
        now, awake = world.clock.now(), world.clock.monotonic()
        frozen = [process.frozen_until - now for process in world.processes if process and process.frozen_until > now]
        waits = frozen + [due - awake for process in self._awake() if (due := process.loop.due()) is not None]
        if not waits and not world.rough:
            raise Violation("liveness", f"nobody will ever do anything again: {world.laws.open_jobs()}")
        if not waits and (text := self._restart()):
            return text
        passed = max(1, min(waits, default=SECOND))
        world.clock.advance(passed)
        return f"{passed} pass, nobody is busy"

    def _pass_time(self) -> str:
        mean = self.knobs.term / (1.5 if self._random.random() < 0.1 else 20)
        passed = int(self._random.expovariate(1 / mean)) + 1
        self.world.clock.advance(passed)
        return f"{passed} pass"

    def _begin(self) -> str | None:
        process = self._somebody()
        if process is None or self.world.workload.begun >= self.knobs.operations or len(process.operations) > 4:
            return None
        process.begin(self.world.workload.next_operation(process))
        return f"{process.name} begins an operation"

    def _crash(self) -> str | None:
        return self.world.crash(self._random.choice(there)) if (there := self._present()) else None

    def _restart(self) -> str | None:
        places = [place for place, process in enumerate(self.world.processes) if process is None]
        if not places:
            return None
        place = self._random.choice(places)
        self.world.start(place)
        return f"a process starts in place {place}"

    def _freeze(self) -> str | None:
        process = self._somebody()
        if process is None:
            return None
        least = self._random.choice((0, 6 * SECOND))  # longer than it takes until others notice
        process.frozen_until = self.world.clock.now() + least + int(self._random.uniform(0.1, 5) * self.knobs.term)
        process.froze = bool(process.waiting)
        return f"{process.name} freezes until {process.frozen_until}"

    def _sleep(self) -> str:
        jump = int(self._random.uniform(0.5, 10) * self.knobs.term)
        self.world.sleep(jump)
        return f"the host sleeps {jump}"

    def _give_up(self) -> str | None:
        """A caller gives up while the product works for it."""
        process = self._somebody()
        if process is None or not process.operations:
            return None
        self._random.choice(process.operations).cancel()
        return f"{process.name} gives up an operation"

    def _stop(self) -> str | None:
        """A node is asked to stop gracefully."""
        process = self._somebody()
        if process is None or process.node is None or process.stopping or not process.life:
            return None
        process.stop()
        self.world.hit("node stopped gracefully")
        return f"{process.name} stops"

    def _hear(self) -> str | None:
        """Some hint arrives somewhere."""
        hints = self.world.hints
        if not hints:
            return None
        process, what = hints.pop(self._random.randrange(len(hints)))
        process.hear(what)
        return f"{process.name} hears {','.join(hint.topic for hint in what)}"

    def _calm_down(self) -> None:
        """No fault from here on; everything alive has code for every agent, and somebody is alive."""
        world = self.world
        world.rough = False
        world.hints.clear()
        for place in range(len(world.processes)):
            process = world.processes[place]
            if process is None or process.node is None:
                continue
            if place and self._random.random() < 0.7:
                world.crash(place)
            elif not process.stopping:
                world.serve(process, every=True)
        self._keep_a_node()

    def _keep_a_node(self) -> None:
        if not any(process and process.node and not process.stopping for process in self.world.processes):
            if self.world.processes[0] is not None:
                self.world.crash(0)
            self.world.start(0)

    def _idle(self) -> bool:
        """Nobody works or waits for anything."""
        there = [process for process in self.world.processes if process is not None]
        return not any(process.waiting or process.running or process.unheard for process in there) and not any(
            not task.done() for process in there for task in process.operations
        )

    def _present(self) -> list[int]:
        return [place for place, process in enumerate(self.world.processes) if process is not None]

    def _awake(self) -> list[Process]:
        now = self.world.clock.now()
        return [process for process in self.world.processes if process is not None and process.frozen_until <= now]

    def _frozen(self) -> list[Process]:
        """Frozen processes with something that waits to be committed."""
        now = self.world.clock.now()
        there = (process for process in self.world.processes if process is not None)
        return [process for process in there if process.frozen_until > now and process.waiting]

    def _somebody(self) -> Process | None:
        return self._random.choice(awake) if (awake := self._awake()) else None


@cache
def _shared_store() -> SimulatedStore:
    """One database for all seeds of a process: emptying it is cheaper than making one."""
    return SimulatedStore(ManualClock())


def simulate(
    seed: int,
    steps: int = STEPS,
    *,
    store: SimulatedStore | None = None,
    tell: Callable[[str], None] | None = None,
) -> Report:
    """Runs one seed; raises `LawBroken` at the first step after which a law does not hold."""
    return Simulation(seed, store or _shared_store(), tell).run(seed, steps)
