"""What the clients of a simulated world ask for, and what the code of its jobs does."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from paceline.agents.context import Context
from paceline.client.client import Target
from paceline.client.graph import Call
from paceline.client.job import Job
from paceline.client.options import Defaults
from paceline.core.model import SECOND
from paceline.core.scheduling import QueueClass
from paceline.errors import (
    NotFound,
    OutOfCapacity,
    PermanentError,
    RateLimited,
    Refused,
    StoreError,
    TransientError,
    WaitTimedOut,
)

if TYPE_CHECKING:
    from paceline.testing.process import Process
    from paceline.testing.world import World

TENANTS = ("acme", "globex", "initech")
CLASSES = tuple(QueueClass)
FAILURES: dict[str, Callable[[], Exception]] = {
    "rate_limit": lambda: RateLimited("slow down"),
    "rate_limit_told": lambda: RateLimited("slow down", retry_after=3.0),
    "capacity": lambda: OutOfCapacity("full"),
    "transient": lambda: TransientError("try again"),
    "timeout": lambda: TimeoutError("took too long"),
    "permanent": lambda: PermanentError("never"),
    "unknown": lambda: ValueError("what?"),
}
ENDS = tuple(FAILURES)
_PARENTS = "select distinct parent from jobs where parent is not null and state < 10 order by 1"


class Fate(NamedTuple):
    """What one epoch of a job is going to do."""

    takes: int
    end: str
    """`return`, or a key of FAILURES."""
    stubborn: int = 0
    """For how long it goes on when it is asked to stop."""
    children: int = 0
    says: bool = False


class Spec(NamedTuple):
    """What was asked for under a serial number, whether or not anybody heard the answer."""

    agent: int
    after: tuple[tuple[int, bool], ...]
    """(serial, whether any end will do)"""
    session: str | None
    group: tuple[int, ...]
    """All serials of the submission it belongs to."""


class Workload:
    """Makes up operations by chance, remembers what each asked for, and carries them out with the real client."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._random = world.random
        self._serials = 0
        self.specs: dict[int, Spec] = {}
        self.begun = 0

    def serial_of(self, body: str) -> int:
        """The submission that an input belongs to; 0 for one that must never be seen."""
        return int(json.loads(body)["serial"])

    async def run_code(self, process: "Process", ctx: Context, serial: int) -> dict[str, int]:
        """The code of every agent: takes a while, may say something or make a child, and ends somehow."""
        key = (int(ctx.job[1:]), ctx.epoch)
        process.running[key] = None
        try:
            fate, asked = self._fate(serial), False
            for _ in range(fate.children):
                await self._random.choice((self._submit, self._submit_many))(process, key[0])
            ends = self._world.clock.monotonic() + fate.takes
            while ends > (now := self._world.clock.monotonic()):
                try:
                    await asyncio.sleep((ends - now) / SECOND)
                except asyncio.CancelledError:
                    if asked or not fate.stubborn:
                        raise
                    asked, ends = True, self._world.clock.monotonic() + fate.stubborn
            if asked and self._random.random() < 0.6:
                raise asyncio.CancelledError
            if fate.says and not asked:
                ctx.log("nearly done")
                ctx.progress(0.5, "half")
            self._world.laws.code_ends(*key)
            if fate.end != "return":
                failure = FAILURES[fate.end]()
                raise failure
            return {"epoch": key[1]}
        finally:
            process.running.pop(key, None)

    def _fate(self, serial: int) -> Fate:
        """What an epoch that starts now is going to do, if nobody interferes."""
        chance = self._random
        hopeless = "timeout" if serial % 2 else "transient"
        if not self._world.rough:
            end = "return" if chance.random() < 0.9 else "permanent"
            return Fate(chance.randrange(chance.choice((1, 1, 8)) * SECOND), end if serial % 5 else hopeless)
        takes = chance.randrange(2 * SECOND) if chance.random() < 0.7 else chance.randrange(25 * SECOND)
        stubborn = chance.randrange(self._world.knobs.term) if chance.random() < 0.3 else 0
        children = chance.randrange(1, 4) if chance.random() < 0.15 else 0
        takes += 5 * SECOND if children and chance.random() < 0.5 else 0
        if serial % 5 == 0:
            end, takes, children = hopeless, takes // 4, 0
        else:
            end = "return" if chance.random() < 0.6 else chance.choice(ENDS)
        return Fate(takes, end, stubborn, children, chance.random() < 0.2)

    def next_operation(self, process: "Process") -> Coroutine[Any, Any, None]:
        """Something that a client does next."""
        self.begun += 1
        dice = self._random.random()
        if dice < 0.40:
            return self._submit(process)
        if dice < 0.55:
            return self._submit_many(process)
        if dice < 0.78:
            return self._submit_graph(process)
        return self._cancel(process) if dice < 0.90 else self._retry(process)

    async def _submit(self, process: "Process", parent: int | None = None) -> None:
        agent, options, after = self._terms(), self._options(), self._after()
        if parent is not None:
            options["parent"] = parent
        if self._random.random() < 0.3:
            options["key"] = f"key-{self._serials + 1}"
        if self._random.random() < 0.35:
            options |= {"tenant": TENANTS[0], "session": f"talk-{self._random.randrange(2)}"}
        serial = self._note(agent, tuple(after), self._session(options))
        edges = [self._edge(self._world.laws.by_serial[before], finished) for before, finished in after]
        for tried in range(3):
            begun = self._world.laws.seen
            try:
                job = await process.client.submit(self._target(agent), {"serial": serial}, after=edges, **options)
            except (Refused, NotFound) as error:
                self._world.refused(error)
                return
            except StoreError as error:
                self._world.trouble(error)
                if "key" not in options:
                    return
                continue
            self._world.laws.acknowledge(serial, job.number)
            if tried and self._world.laws.is_older(job.number, begun):
                self._world.hit("commit unknown, resolved by key")
            if parent is None and self._random.random() < 0.3:
                await self._wait(process, job)
            return

    async def _wait(self, process: "Process", job: Job) -> None:
        """Whoever waits hears of the end, whether or not a hint came."""
        try:
            await process.client.wait([job], timeout=self._random.choice((None, 5, 60)))
        except WaitTimedOut:
            self._world.hit("a caller's patience ended")
            return
        self._world.laws.heard_the_end(job.number)

    async def _submit_many(self, process: "Process", parent: int | None = None) -> None:
        agent, options = self._terms(), self._options()
        if parent is not None:
            options["parent"] = parent
        count = self._random.randrange(1, 9)
        serials = self._reserve(count)
        for serial in serials:
            self.specs[serial] = Spec(agent, (), None, serials)
        try:
            jobs = await process.client.submit_many(self._target(agent), [{"serial": n} for n in serials], **options)
        except (Refused, StoreError) as error:
            self._world.refused(error)
            return
        for serial, job in zip(serials, jobs, strict=True):
            self._world.laws.acknowledge(serial, job.number)

    async def _submit_graph(self, process: "Process") -> None:
        serials = self._reserve(self._random.randrange(2, 12))
        calls: dict[str, tuple[Target, Call]] = {}
        for place, serial in enumerate(serials):
            agent, options = self._terms(), self._options()
            before = sorted(self._random.sample(serials[:place], min(place, self._random.randrange(3))))
            inside = tuple((one, self._random.random() < 0.3) for one in before)
            outside = self._after() if self._random.random() < 0.2 else []
            small = len(serials) <= self._world.knobs.unit_rows
            if small and self._random.random() < 0.3:
                options |= {"tenant": TENANTS[0], "session": f"talk-{self._random.randrange(2)}"}
            if small and self._random.random() < 0.1:
                options["key"] = f"key-{serial}"
            edges = [(f"n{one}", "finished" if any_end else "completed") for one, any_end in inside]
            edges += [self._edge(self._world.laws.by_serial[one], any_end) for one, any_end in outside]
            self.specs[serial] = Spec(agent, (*inside, *outside), self._session(options), serials)
            calls[f"n{serial}"] = (self._target(agent), Call(None, {"serial": serial}, after=edges, **options))
        await self._graph(process, serials, calls)

    async def _graph(self, process: "Process", serials: tuple[int, ...], calls: dict[str, tuple[Target, Call]]) -> None:
        try:
            jobs = await process.client.submit_graph(calls)
        except (Refused, NotFound, StoreError) as error:
            self._world.refused(error)
            return
        for serial in serials:
            self._world.laws.acknowledge(serial, jobs[f"n{serial}"].number)

    async def _cancel(self, process: "Process") -> None:
        job = self._any_job() if self._random.random() < 0.6 else self._parent()
        if job is not None:
            try:
                await process.client.cancel(job)
            except StoreError as error:
                self._world.trouble(error)

    async def _retry(self, process: "Process") -> None:
        dead = [job for job, shadow in self._world.laws.jobs.items() if shadow.state.ended and shadow.state != 10]
        if dead:
            try:
                await process.client.retry(self._random.choice(dead))
            except (Refused, StoreError) as error:
                self._world.refused(error)

    def _any_job(self) -> int | None:
        visible = [job for job, shadow in self._world.laws.jobs.items() if shadow.seq]
        return self._random.choice(visible[-12:]) if visible else None

    def _parent(self) -> int | None:
        """The parent of some open job."""
        found = self._world.store.rows(_PARENTS)
        return int(self._random.choice(found)[0]) if found else None

    def _after(self) -> list[tuple[int, bool]]:
        """A few visible jobs to wait for, by serial."""
        laws = self._world.laws
        if self._random.random() < 0.65:
            return []
        known = [shadow.serial for shadow in laws.jobs.values() if shadow.seq][-10:]
        chosen = sorted(self._random.sample(known, min(len(known), self._random.randrange(1, 4))))
        return [(serial, self._random.random() < 0.4) for serial in chosen]

    def _terms(self) -> int:
        return self._random.randrange(1, 1 + len(self._world.agents))

    def _options(self) -> dict[str, Any]:
        chance = self._random
        options: dict[str, Any] = {
            "tenant": chance.choice(TENANTS), "queue_class": chance.choice(CLASSES),
            "priority": chance.choice((0, 50, 100)), "timeout": chance.choice((3, 10, 30)),
        }  # fmt: skip
        if chance.random() < 0.6:
            options["retries"] = chance.choice((1, 3, 6, 6))
        if chance.random() < 0.2:
            options["delay"] = chance.choice((0.5, 4))
        if chance.random() < 0.15:
            options["deadline"] = chance.choice((1, 6, 20))
        return options

    @staticmethod
    def _session(options: dict[str, Any]) -> str | None:
        return f"{options['tenant']}/{options['session']}" if "session" in options else None

    def _target(self, agent: int) -> Target:
        return Target(agent, self._world.agents[agent - 1].name, Defaults(), json.dumps)

    @staticmethod
    def _edge(job: int, any_end: bool) -> Any:
        return (job, "finished") if any_end else job

    def _reserve(self, count: int) -> tuple[int, ...]:
        first = self._serials + 1
        self._serials += count
        return tuple(range(first, first + count))

    def _note(self, agent: int, after: tuple[tuple[int, bool], ...], session: str | None) -> int:
        (serial,) = self._reserve(1)
        self.specs[serial] = Spec(agent, after, session, (serial,))
        return serial
