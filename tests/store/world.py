"""A small world around a store: an agent, a node, and jobs that come into any state by lawful steps."""

from collections.abc import Callable, Sequence
from typing import TypedDict, TypeVar, Unpack

from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Claimed, JobRow, Move, Wants
from paceline.core.scheduling import QueueClass
from paceline.core.submission import Terms, Wish
from paceline.events import Event, Kind
from paceline.node.completer import Completer, Finished
from paceline.store.maintenance import Finding, broken_laws
from paceline.store.protocol import Tx, Unit
from paceline.store.sql import Store
from paceline.testing.clock import ManualClock
from paceline.units.control import cancel, replay
from paceline.units.failing import ErrorBody, write_error
from paceline.units.settle import Ends, end_open, settle
from paceline.units.submit import publish, stage, submit

T = TypeVar("T")


class Said(TypedDict, total=False):
    """What a test may say of a job, beside its input and what it waits for."""

    tenant: str
    queue_class: QueueClass
    priority: int
    retries: int
    timeout: int
    delay: int
    deadline: int | None
    key: str | None
    session: str | None
    parent: int | None
    home: int


TERM = 60 * SECOND


def newest_job(tx: Tx) -> int:
    """The highest id of a job; 0: there is none."""
    return max(tx.listing.find("newest", 1), default=0)


def newest_events(tx: Tx, most: int) -> list[Event]:
    """The end of the log, oldest first."""
    return tx.history.before(tx.events.last() + 1, 0, None, most)[::-1]


def room_for_all(tx: Tx, asked: int) -> None:
    """No bound on what waits."""


class World:
    """One store with what most tests need."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.completer = Completer(lambda: 0.5)
        self.agent = self.do(lambda tx: tx.lanes.register("worker", "tests", "d1", None))
        self.node = self.renew_node()
        self.do(lambda tx: tx.nodes.serve(self.node, [self.agent]))

    def renew_node(self) -> int:
        """Another life of the node."""
        self.node = self.do(lambda tx: tx.nodes.add("n1", "p1", "1", 10, tx.now, tx.now + TERM))
        return self.node

    def do(self, unit: Unit[T]) -> T:
        """One unit of work."""
        return self.store.execute(unit)

    def wish(
        self,
        body: str = "1",
        after: Sequence[int] = (),
        finished: Sequence[int] = (),
        inner: Sequence[int] = (),
        **terms: Unpack[Said],
    ) -> Wish:
        """A job to be: `after` must complete, `finished` must end, `inner` are places in the same submission."""
        edges = (*((job, Wants.COMPLETED) for job in after), *((job, Wants.FINISHED) for job in finished))
        return Wish(Terms(self.agent, **terms), body, edges, tuple((place, Wants.COMPLETED) for place in inner))

    def submit(self, *wishes: Wish) -> list[int]:
        """Several jobs in one unit."""
        return self.do(lambda tx: submit(tx, wishes, room_for_all))

    def job(
        self, body: str = "1", after: Sequence[int] = (), finished: Sequence[int] = (), **terms: Unpack[Said]
    ) -> int:
        """One job."""
        return self.submit(self.wish(body, after, finished, **terms))[0]

    def jobs(self, count: int) -> list[int]:
        """Some ready jobs."""
        return self.submit(*(self.wish() for _ in range(count)))

    def stage(self, *wishes: Wish) -> tuple[int, list[int]]:
        """(batch, jobs) of a submission that nobody can see yet."""
        batch = self.do(lambda tx: tx.submissions.open_batch(tx.now))
        return batch, self.do(lambda tx: stage(tx, batch, wishes))

    def accept(self, batch: int) -> None:
        """Makes a whole submission visible."""
        assert self.do(lambda tx: tx.submissions.publish_batch(batch, tx.now))
        self.accept_rest(batch)

    def accept_rest(self, batch: int) -> None:
        """Goes on with an accepted submission."""
        while self.do(lambda tx: publish(tx, batch)):
            pass

    def claim(self, *jobs: int, node: int | None = None) -> list[Claimed]:
        """Those of the jobs that were still ready, now running."""
        return self.do(lambda tx: tx.jobs.claim(list(jobs), node or self.node, tx.now))

    def running(self, **terms: Unpack[Said]) -> Claimed:
        """A job whose code runs."""
        return self.claim(self.job(**terms))[0]

    def finish(self, *ends: Ended) -> Finished:
        """What a node says of epochs that are over."""
        return self.do(lambda tx: self.completer.finish(tx, list(ends), leased=True))

    def complete(self, job: Claimed, body: str = "2") -> Ends:
        """The code returned."""
        return self.finish(Ended(job, Ending.RETURNED, body)).ended

    def fail(self, job: Claimed, failure: FailureClass = FailureClass.PERMANENT) -> Ends:
        """The code raised."""
        return self.finish(raised(job, failure)).ended

    def cancel(self, job: int) -> Ends:
        """Somebody cancels it."""
        return self.do(lambda tx: cancel(tx, job, "cancelled"))

    def time_out(self, job: int) -> Ends:
        """Its time is up."""

        def end(tx: Tx) -> Ends:
            ended = end_open(tx, [job], State.TIMED_OUT, "deadline")
            return ended + settle(tx, ended)

        return self.do(end)

    def replay(self, job: int) -> list[int]:
        """Somebody tries it again."""
        return self.do(lambda tx: replay(tx, job, None))

    def stop(self, job: Claimed) -> list[int]:
        """The code of a job that others ended has stopped; answers what was stale."""
        return self.finish(Ended(job, Ending.STOPPED)).stale

    def in_state(self, state: State) -> int:
        """A job in that state, with no code running that should not."""
        return _MAKERS[state](self)

    def row(self, job: int) -> JobRow:
        """The job's row."""
        return self.do(lambda tx: tx.jobs.rows([job]))[0]

    def state(self, job: int) -> State:
        """Where the job is."""
        return self.row(job).state

    def words(self, job: int) -> list[str]:
        """What happened to a job, in order."""
        return [event.kind.word.removeprefix("job.") for event in self.do(lambda tx: tx.events.of_job(job))]

    def broken(self) -> list[Finding]:
        """Laws between the tables that do not hold."""
        now = self.clock.now()
        found = self.do(lambda tx: broken_laws(self.store._connection, self.store._sql, now))
        return [law for law in found if law.broken]


def raised(job: Claimed, failure: FailureClass) -> Ended:
    """An epoch whose code raised."""
    return Ended(job, Ending.RAISED, write_error(ErrorBody("ValueError", "no", failure.value)), failure, task=job.id)


def _created(world: World) -> int:
    return world.stage(world.wish())[1][0]


def _blocked(world: World) -> int:
    return world.job(after=[world.job()])


def _running(world: World) -> int:
    return world.running().id


def _waiting(world: World) -> int:
    job = world.running()
    move = Move(job.id, State.RUNNING, job.epoch, State.WAITING)
    assert world.do(lambda tx: tx.jobs.move([move], Kind.JOB_LOG, tx.now))
    return job.id


def _completed(world: World) -> int:
    job = world.running()
    world.complete(job)
    return job.id


def _failed(world: World) -> int:
    job = world.running()
    world.fail(job)
    return job.id


def _cancelled(world: World) -> int:
    job = world.job()
    world.cancel(job)
    return job


def _timed_out(world: World) -> int:
    job = world.job()
    world.time_out(job)
    return job


_MAKERS: dict[State, Callable[[World], int]] = {
    State.CREATED: _created,
    State.BLOCKED: _blocked,
    State.QUEUED: lambda world: world.job(),
    State.RUNNING: _running,
    State.WAITING: _waiting,
    State.COMPLETED: _completed,
    State.FAILED: _failed,
    State.CANCELLED: _cancelled,
    State.TIMED_OUT: _timed_out,
}
