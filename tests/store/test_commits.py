"""Units of work: many in one commit, each whole or not at all, and every one of them answered."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import apsw
import pytest

from paceline.core.lifecycle import State
from paceline.errors import PacelineError, StoreError
from paceline.events import Kind
from paceline.store.protocol import Done, Tx
from paceline.store.writer import Waiting, Writer
from paceline.units.submit import submit
from store.stores import Database
from store.world import World, newest_job, room_for_all

TRICKS: dict[str, BaseException] = {
    "an error of its own": ValueError("no"),
    "an error of the database": apsw.SQLError("no such thing"),
    "an error that callers catch": StoreError(code="store_io", what="a disk"),
}


class Ear:
    """Hears from another thread what became of a unit."""

    def __init__(self) -> None:
        self.told: list[Done] = []
        self._heard = threading.Event()

    def __call__(self, done: Done) -> None:
        self.told.append(done)
        self._heard.set()

    def wait(self) -> Done:
        assert self._heard.wait(30)
        return self.told[0]


def one_job(world: World, **terms: Any) -> Callable[[Tx], int]:
    return lambda tx: submit(tx, [world.wish(**terms)], room_for_all)[0]


def failing(world: World, error: BaseException) -> Callable[[Tx], None]:
    """Does a bit of everything and then raises."""

    def fail(tx: Tx) -> None:
        tx.lanes.lane(0, 0, tx.lanes.tenant("ghost"), world.agent)
        submit(tx, [world.wish(key="ghost", session="ghost")], room_for_all)
        tx.events.announce(tx.now, Kind.SWEEP_REPAIRED, "ghost")
        raise error

    return fail


@pytest.mark.parametrize("error", TRICKS.values(), ids=TRICKS.keys())
@pytest.mark.parametrize("company", [0, 1, 3])
def test_a_unit_that_raises_is_undone_alone(world: World, error: BaseException, company: int) -> None:
    before = world.do(lambda tx: tx.events.last())
    units = [one_job(world) for _ in range(company)]
    done = world.store.commit([*units, failing(world, error), *units])
    assert [one.error is None for one in done] == [True] * company + [False] + [True] * company
    jobs = [one.value for one in done if one.error is None]
    assert [world.state(job) for job in jobs] == [State.QUEUED] * len(jobs)
    events = world.do(lambda tx: tx.events.after(before, 100))
    assert [event.job for event in events] == jobs
    assert all(event.data != "ghost" for event in events)


@pytest.mark.parametrize("company", [0, 2])
def test_names_that_a_failed_unit_has_numbered_can_be_numbered_again(world: World, company: int) -> None:
    world.store.commit([failing(world, ValueError("no")), *(one_job(world) for _ in range(company))])
    job = world.job(tenant="ghost", key="ghost", session="ghost")
    assert world.state(job) is State.QUEUED
    (line,) = world.do(lambda tx: tx.listing.by_ids([job]))
    assert line.tenant == "ghost"


def test_units_of_one_commit_see_what_those_before_them_did(world: World) -> None:
    done = world.store.commit([one_job(world, key="k"), one_job(world, key="k"), lambda tx: tx.now])
    assert done[0].value == done[1].value
    assert done[2].value == world.clock.now()


def test_an_interrupt_undoes_the_whole_commit_and_reaches_whoever_asked(world: World) -> None:
    def interrupted(tx: Tx) -> None:
        submit(tx, [world.wish()], room_for_all)
        raise KeyboardInterrupt

    newest = world.do(newest_job)
    with pytest.raises(KeyboardInterrupt):
        world.do(interrupted)
    done = world.store.commit([one_job(world), interrupted, one_job(world)])
    assert {type(one.error) for one in done} == {KeyboardInterrupt}
    assert world.do(newest_job) == newest
    assert world.state(world.job()) is State.QUEUED


def test_when_the_database_undoes_everything_by_itself_no_unit_is_told_that_it_succeeded(
    database: Database, world: World
) -> None:
    def lose(tx: Tx) -> None:
        submit(tx, [world.wish()], room_for_all)
        world.store._connection.rollback()
        raise database.full

    newest = world.do(newest_job)
    done = world.store.commit([one_job(world), lose, one_job(world)])
    assert [one.error.code for one in done if isinstance(one.error, PacelineError)] == ["store_full"] * 3
    assert world.do(newest_job) == newest


def test_a_commit_that_fails_answers_every_unit(
    database: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(proof: int | None) -> None:
        raise database.full

    with monkeypatch.context() as patch:
        patch.setattr(world.store._connection, "commit", fail)
        done = world.store.commit([one_job(world), one_job(world)])
    assert [one.error.code for one in done if isinstance(one.error, PacelineError)] == ["store_full"] * 2
    assert world.do(newest_job) == 0
    assert world.state(world.job()) is State.QUEUED


def test_units_of_many_callers_are_answered_in_their_order(world: World) -> None:
    async def callers() -> list[int]:
        futures = [world.store.enqueue(one_job(world)) for _ in range(50)]
        return [await future for future in futures]

    world.store.start()
    jobs = asyncio.run(callers())
    assert jobs == list(range(jobs[0], jobs[0] + 50))
    assert world.store.commits < 50


def test_a_caller_that_gave_up_keeps_nobody_from_an_answer(world: World) -> None:
    async def callers() -> list[int]:
        futures = [world.store.enqueue(one_job(world)) for _ in range(3)]
        futures[1].cancel()
        return [await futures[0], await futures[2], await world.store.read(newest_job)]

    world.store.start()
    first, last, following = asyncio.run(callers())
    assert (last, following) == (first + 2, first + 2)


def test_a_listener_that_fails_keeps_nobody_from_an_answer(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def callers() -> int:
        def bad_news(done: Done) -> None:
            raise RuntimeError("a bug in a loop")

        world.store.hand_over(one_job(world), bad_news)
        return await world.store.transact(one_job(world))

    world.store.start()
    with caplog.at_level(logging.ERROR):
        assert world.state(asyncio.run(callers())) is State.QUEUED
    assert "a bug in a loop" in caplog.text


def test_an_event_loop_that_has_ended_keeps_nobody_from_an_answer(world: World) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    writer = Writer(world.store.commit)
    writer.start()
    nobody, somebody = Ear(), Ear()
    writer.put(Waiting(one_job(world), loop, nobody))
    writer.put(Waiting(one_job(world), None, somebody))
    assert somebody.wait().error is None
    writer.stop()
    assert nobody.told == []


def test_a_writer_whose_commit_raises_answers_everybody_and_goes_on() -> None:
    answers: list[Done] = []
    failures = iter([OSError("no disk"), None])

    def commit(units: list[Callable[[Any], Any]]) -> list[Done]:
        if error := next(failures):
            raise error
        return [Done(unit(None), None) for unit in units]

    writer = Writer(commit)
    writer.start()
    for _ in range(2):
        heard = Ear()
        writer.put(Waiting(lambda tx: "done", None, heard))
        answers.append(heard.wait())
    writer.stop()
    assert [(one.value, type(one.error)) for one in answers] == [(None, OSError), ("done", type(None))]


def test_what_waits_when_the_store_is_closed_is_still_carried_out(world: World) -> None:
    async def callers() -> list[int]:
        futures = [world.store.enqueue(one_job(world)) for _ in range(5)]
        await asyncio.get_running_loop().run_in_executor(None, world.store._writer.stop)
        return list(await asyncio.gather(*futures))

    world.store.start()
    assert len(asyncio.run(callers())) == 5
    world.store.start()


def test_a_question_sees_what_was_committed_and_cannot_write(database: Database, world: World) -> None:
    job = world.job()
    assert world.store.look(lambda tx: tx.jobs.rows([job]))[0].id == job
    if database.shared:
        with pytest.raises(PacelineError):
            world.store.look(lambda tx: tx.listing.set_fact("x", "y"))
        assert world.store.look(lambda tx: tx.listing.fact("x")) is None


def test_a_closed_store_says_so_at_every_door(world: World) -> None:
    async def doors() -> list[str]:
        codes = []
        for door in (world.store.transact, world.store.read):
            with pytest.raises(StoreError) as error:
                await door(lambda tx: tx.now)
            codes.append(error.value.code)
        with pytest.raises(StoreError) as error:
            world.store.hand_over(lambda tx: tx.now, lambda done: None)
        return [*codes, error.value.code]

    world.store.start()
    world.store.close()
    world.store.close()
    for door in (world.store.execute, world.store.look):
        with pytest.raises(StoreError) as error:
            door(lambda tx: tx.now)
        assert error.value.code == "store_closed"
    assert asyncio.run(doors()) == ["store_closed"] * 3
