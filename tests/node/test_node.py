import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from node.stage import facts
from paceline import agent
from paceline.agents.function import bind
from paceline.clock import DatabaseClock, measure_offset
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, Wants
from paceline.core.submission import Terms, Wish
from paceline.node.node import Node
from paceline.store.sql import Store
from paceline.units.control import cancel
from paceline.units.reap import end_node, give_back_jobs
from paceline.units.submit import submit
from store.stores import Database


class House:
    """A node over a store, with one agent whose code waits for its gate."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.told: list[int] = []
        self.bodies: dict[int, str] = {}
        self.heard = asyncio.Event()
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        self.runs: list[int] = []
        self.node = Node(store, facts(), "store", self._hear, drain=5.0)
        self.agent = store.execute(lambda tx: tx.lanes.register("worker", "tests", "d", None))
        made = agent(name="worker", max_concurrency=None)(self._work)
        self.node.serve(self.agent, "worker", bind(made), limited=False, needs={})

    async def _work(self, n: int) -> int:
        self.runs.append(n)
        self.began.set()
        await self.gate.wait()
        return n

    def _hear(self, ended: Sequence[int], bodies: Mapping[int, str]) -> None:
        self.told += ended
        self.bodies |= bodies
        self.heard.set()

    def submit(
        self, n: int = 1, after: tuple[tuple[int, Wants], ...] = (), delay: int = 0, deadline: int | None = None
    ) -> int:
        wish = Wish(Terms(self.agent, delay=delay, deadline=deadline), str(n), after)
        job = self.store.execute(lambda tx: submit(tx, [wish], lambda tx, asked: None))[0]
        self.node.poke()
        return job

    def state(self, job: int) -> State:
        return self.store.execute(lambda tx: tx.jobs.rows([job]))[0].state

    async def until_told(self, *jobs: int) -> None:
        while not set(jobs) <= set(self.told):
            self.heard.clear()
            await self.heard.wait()


Act = Callable[[House], Coroutine[Any, Any, None]]
Play = Callable[[Act], None]


async def until(condition: Callable[[], bool]) -> None:
    """Gives everybody else a turn until it is so."""
    while not condition():  # noqa: ASYNC110 - nobody tells when this happens
        await asyncio.sleep(0)


@pytest.fixture
def play(database: Database, tmp_path: Path) -> Play:
    """One act in a house whose node is started before and stopped after."""

    async def within(act: Act) -> None:
        store = database.open(tmp_path, DatabaseClock(measure_offset()))
        store.start()
        house = House(store)
        async with asyncio.timeout(20):
            await house.node.start()
            await house.node.start()
            await act(house)
            await house.node.stop(0.0)
            await house.node.stop(0.0)
        store.close()

    return lambda act: asyncio.run(within(act))


def test_a_job_runs_and_whoever_waits_is_told(play: Play) -> None:
    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        assert (house.node.running, house.node.id) == (1, 1)
        house.gate.set()
        await house.until_told(job)
        assert (house.state(job), house.node.trouble) == (State.COMPLETED, None)
        assert house.bodies == {job: "1"}

    play(act)


def test_a_node_that_stops_lets_running_jobs_finish(play: Play) -> None:
    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        stopping = asyncio.create_task(house.node.stop())
        await asyncio.sleep(0)
        later = house.submit(2)
        house.gate.set()
        await stopping
        assert (house.state(job), house.state(later)) == (State.COMPLETED, State.QUEUED)
        assert house.told == [job]

    play(act)


def test_what_does_not_finish_in_time_returns_to_the_queue_and_the_life_is_ended(play: Play) -> None:
    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        await house.node.stop(0.0)
        row = house.store.execute(lambda tx: tx.jobs.rows([job]))[0]
        assert (row.state, row.node, row.attempt) == (State.QUEUED, None, 0)
        nodes = house.store.execute(lambda tx: tx.nodes.newest(1))
        assert nodes[0].ending == "stopped"

    play(act)


def test_a_node_that_stops_claiming_goes_on_with_what_runs(play: Play) -> None:
    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        house.node.stop_claiming()
        later = house.submit(2)
        house.gate.set()
        await house.until_told(job)
        assert house.state(later) is State.QUEUED

    play(act)


def test_a_node_whose_life_was_ended_stops_its_code_and_begins_another_life(play: Play) -> None:
    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        house.began.clear()

        def take_away(tx: Any) -> None:
            end_node(tx, house.node.id, "lease_expired")
            give_back_jobs(tx, house.node.id, "node_died")

        house.store.execute(take_away)
        house.node._drivers["heartbeat"].poke()
        await house.began.wait()
        assert (house.node.id, house.runs, house.node.running) == (2, [1, 1], 1)
        house.gate.set()
        await house.until_told(job)
        row = house.store.execute(lambda tx: tx.jobs.rows([job]))[0]
        assert (row.state, row.epoch, house.told) == (State.COMPLETED, 2, [job])

    play(act)


def test_a_cancel_is_attended_to_at_once(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.node.warden.LOOK_EVERY", 60 * SECOND)

    async def act(house: House) -> None:
        job = house.submit()
        await house.began.wait()
        house.store.execute(lambda tx: cancel(tx, job, "cancelled"))
        house.node.look_after()
        await until(lambda: house.node.running == 0)
        assert house.store.execute(lambda tx: tx.jobs.rows([job]))[0].node is None

    play(act)


def test_what_waited_for_the_end_of_a_job_whose_deadline_passed_starts_at_once(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.node.pump.LOOK_EVERY", 60 * SECOND)

    async def act(house: House) -> None:
        house.gate.set()
        job = house.submit(1, delay=60 * SECOND, deadline=house.store.clock.now() + SECOND // 20)
        behind = house.submit(2, after=((job, Wants.FINISHED),))
        house.node.look_after()
        await house.until_told(job, behind)
        assert (house.state(job), house.state(behind)) == (State.TIMED_OUT, State.COMPLETED)

    play(act)


def test_dependents_beyond_one_unit_start_without_waiting_for_the_next_look(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.node.pump.LOOK_EVERY", 60 * SECOND)

    async def act(house: House) -> None:
        house.gate.set()
        house.node.stop_claiming()
        root = house.submit(0)
        wishes = [Wish(Terms(house.agent), "1", ((root, Wants.COMPLETED),))] * 400
        behind = [
            job for _ in range(4) for job in house.store.execute(lambda tx: submit(tx, wishes, lambda tx, asked: None))
        ]
        house.node.pump.accepting = True
        house.node.poke()
        await house.until_told(root, *behind)
        assert len(house.runs) == 1 + len(behind)

    play(act)


def test_an_agent_that_comes_later_is_served_at_once(play: Play) -> None:
    async def act(house: House) -> None:
        house.gate.set()
        late = house.store.execute(lambda tx: tx.lanes.register("late", "tests", "d", None))
        wish = Wish(Terms(late), "5")
        job = house.store.execute(lambda tx: submit(tx, [wish], lambda tx, asked: None))[0]
        house.node.serve(
            late, "late", bind(agent(name="late", max_concurrency=None)(house._work)), limited=False, needs={}
        )
        await house.until_told(job)

    play(act)


def test_the_trouble_of_a_loop_is_the_trouble_of_the_node(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    async def act(house: House) -> None:
        def unit(now: int) -> Any:
            return {}.__getitem__

        house.node.pump.unit = unit  # type: ignore[method-assign]
        house.node.poke()
        await until(lambda: house.node.trouble is not None)
        assert house.node.trouble is not None
        assert (house.node.trouble.code, "KeyError" in caplog.text) == ("bug", True)
        del house.node.pump.unit
        house.gate.set()
        await house.until_told(house.submit())

    play(act)


def living(store: Store) -> set[int]:
    return {row.id for row in store.execute(lambda tx: tx.nodes.live())}


def test_a_node_of_another_host_lives_as_long_as_its_lease_for_nobody_here_can_see_its_process(
    store: Store,
) -> None:
    heartbeat, reaper = (node := House(store).node).heartbeat, node.reaper
    heartbeat.done(store.execute(heartbeat.unit(store.clock.now())), store.clock.now())
    away = store.execute(lambda tx: tx.nodes.add("n2", "another-boot/1/5/9", "1", 1, tx.now, tx.now + 60 * SECOND))
    for _ in range(3):
        reaper.done(store.execute(reaper.unit(store.clock.now())), store.clock.now())
    assert away in living(store)
    store.execute(lambda tx: tx.nodes.beat(away, tx.now, tx.now))
    reaper.done(store.execute(reaper.unit(store.clock.now())), store.clock.now())
    assert away not in living(store)
