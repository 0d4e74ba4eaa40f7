"""The log: gap-free chains per job, ids in the order of commits, and the change feed that dispatchers read."""

from collections.abc import Iterator
from functools import partial

from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import SECOND
from paceline.events import Event, Kind
from paceline.store.protocol import Tx
from paceline.units.submit import submit
from store.world import World, newest_events, room_for_all


def chain(world: World, job: int) -> list[Event]:
    return world.do(lambda tx: tx.events.of_job(job))


def two_after(cursor: int, tx: Tx) -> list[Event]:
    return tx.events.after(cursor, 2)


def in_pieces(world: World, cursor: int) -> Iterator[Event]:
    while piece := world.do(partial(two_after, cursor)):
        yield from piece
        cursor = piece[-1].id


def test_every_change_of_a_job_is_told_once_and_numbered_without_gaps(world: World) -> None:
    job = world.running(retries=1)
    world.do(lambda tx: tx.jobs.note([(job.id, job.epoch, Kind.JOB_LOG, None)], tx.now))
    world.fail(job, FailureClass.TRANSIENT)
    world.clock.advance(60 * SECOND)
    world.do(lambda tx: tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now))
    again = world.claim(job.id)[0]
    world.cancel(job.id)
    world.stop(again)
    world.replay(job.id)
    events = chain(world, job.id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.epoch for event in events] == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert world.words(job.id) == [
        "queued", "started", "log", "retrying", "due", "started", "cancelled", "released", "replayed",
    ]  # fmt: skip
    assert world.row(job.id).seq == len(events)


def test_a_lost_race_leaves_no_event_and_no_gap(world: World) -> None:
    jobs = world.jobs(3)
    world.claim(jobs[1])
    world.claim(*jobs)
    world.claim(*jobs)
    for job in jobs:
        assert [event.seq for event in chain(world, job)] == [1, 2]


def test_the_ids_of_events_rise_with_every_commit(world: World) -> None:
    seen: list[int] = []
    for _ in range(5):
        before = world.do(lambda tx: tx.events.last())
        world.job()
        new = [event.id for event in world.do(lambda tx: tx.events.after(before, 10))]  # noqa: B023
        assert len(new) == 1
        seen += new
    assert seen == sorted(set(seen))


def test_one_transaction_reserves_each_id_once(world: World) -> None:
    def reserve(tx: Tx) -> list[int]:
        return [tx.events.reserve(count) for count in (1, 5, 1, 2)]

    first, *rest = world.do(reserve)
    assert rest == [first + 1, first + 6, first + 7]


def test_what_is_gathered_comes_behind_the_end_of_the_log_with_the_commit(world: World) -> None:
    def announce(tx: Tx) -> tuple[int, int]:
        before = tx.events.last()
        tx.events.announce(tx.now, Kind.NODE_STARTED, "{}")
        return before, tx.events.last()

    before, gathered = world.do(announce)
    assert gathered == before < world.do(lambda tx: tx.events.last())


def test_what_became_ready_in_this_very_transaction_is_known_before_it_is_written(world: World) -> None:
    delayed = world.job(delay=SECOND)
    world.clock.advance(SECOND)

    def both(tx: Tx) -> tuple[list[int], list[int]]:
        new = submit(tx, [world.wish(), world.wish(delay=SECOND)], room_for_all)
        tx.jobs.make_due(tx.watch.due(tx.now, 10), tx.now)
        gained, _ = tx.events.gained_here(None, tx.events.last())
        return new, [job for _, _, job in tx.lanes.ready(gained)]

    new, ready = world.do(both)
    assert sorted(ready) == [delayed, new[0]]


def look(world: World, after: int | None) -> tuple[int, list[int], bool]:
    """(how far, jobs made ready here, whether that is all) as somebody hears who follows the log."""

    def ask(tx: Tx) -> tuple[int, list[int], bool]:
        upto = tx.events.last()
        return upto, *tx.events.gained_here(after, upto)

    return world.do(ask)


def test_who_alone_writes_need_not_read_the_log_to_know_what_became_ready(world: World) -> None:
    seen, _, _ = look(world, None)
    jobs = world.jobs(3)
    seen, gained, complete = look(world, seen)
    assert (gained, complete) == (jobs, True)
    assert look(world, seen) == (seen, [], True)


def test_what_was_undone_became_ready_for_nobody(world: World) -> None:
    seen, _, _ = look(world, None)

    def undone(tx: Tx) -> None:
        submit(tx, [world.wish()], room_for_all)
        raise ValueError("no")

    world.store.commit([undone])
    job = world.job()
    assert look(world, seen)[1] == [job]


def test_when_somebody_else_writes_too_the_log_has_to_be_read(pair: tuple[World, World]) -> None:
    one, other = pair
    seen, _, _ = look(one, None)
    mine, yours = one.job(), other.job()
    upto, gained, complete = look(one, seen)
    assert (gained, complete) == ([mine], False)
    assert [row[2] for row in one.do(lambda tx: tx.events.gained(seen, upto))] == [mine, yours]


def test_who_followed_from_elsewhere_has_to_read_the_log(world: World) -> None:
    seen, _, _ = look(world, None)
    world.job()
    look(world, seen)
    world.job()
    assert not look(world, seen)[2]


def test_what_a_unit_gathered_is_forgotten_on_demand(world: World) -> None:
    def announce(tx: Tx) -> None:
        tx.events.announce(tx.now, Kind.NODE_DIED, None)
        tx.events.discard()

    last = world.do(lambda tx: tx.events.last())
    world.do(announce)
    assert world.do(lambda tx: tx.events.last()) == last


def test_a_cursor_reads_everything_in_order_and_in_pieces(world: World) -> None:
    start = world.do(lambda tx: tx.events.last())
    jobs = world.jobs(5)
    whole = world.do(lambda tx: tx.events.after(start, 100))
    assert [event.job for event in whole] == jobs
    assert list(in_pieces(world, start)) == whole
    assert world.do(lambda tx: newest_events(tx, 2)) == whole[-2:]


def test_the_events_of_a_job_can_be_had_from_a_cursor_and_to_a_number(world: World) -> None:
    job = world.running()
    world.complete(job)
    whole = chain(world, job.id)
    assert world.do(lambda tx: tx.events.of_job(job.id, after=whole[0].id)) == whole[1:]
    assert world.do(lambda tx: tx.events.of_job(job.id, most=1)) == whole[-1:]
    assert world.do(lambda tx: tx.events.of_job(999)) == []


def test_the_feed_tells_of_jobs_that_became_ready_or_were_taken_and_how_they_are_now(world: World) -> None:
    start = world.do(lambda tx: tx.events.last())
    ready, claimed, delayed = world.job(), world.running().id, world.job(delay=SECOND)
    blocked = world.job(after=[claimed])
    back = world.running()
    world.fail(back, FailureClass.TRANSIENT)
    upto = world.do(lambda tx: tx.events.last())
    rows = world.do(lambda tx: tx.events.gained(start, upto))
    lane, ready_at = world.row(ready).lane, world.row(ready).ready_at
    assert [row[:3] for row in rows if row[3]] == [(lane, ready_at, ready)]
    assert {row[2] for row in rows if not row[3]} >= {claimed, back.id}
    assert {world.state(job) for job in (delayed, blocked)} == {State.QUEUED, State.BLOCKED}
    assert world.do(lambda tx: tx.events.gained(upto, upto + 100)) == []


def test_people_read_the_log_forwards_backwards_by_kind_and_from_a_moment_on(world: World) -> None:
    start = world.do(lambda tx: tx.events.last())
    first = world.job()
    world.clock.advance(SECOND)
    moment = world.clock.now()
    second = world.job()
    world.cancel(first)
    last = world.do(lambda tx: tx.events.last())
    queued = [Kind.JOB_QUEUED]
    history = world.do(lambda tx: tx.history.after(start, last, None, 10))
    assert [(event.job, event.kind) for event in history] == [
        (first, Kind.JOB_QUEUED), (second, Kind.JOB_QUEUED), (first, Kind.JOB_CANCELLED),
    ]  # fmt: skip
    assert world.do(lambda tx: tx.history.before(last + 1, start, None, 10)) == history[::-1]
    assert [event.job for event in world.do(lambda tx: tx.history.after(start, last, queued, 10))] == [first, second]
    assert [event.job for event in world.do(lambda tx: tx.history.before(last + 1, start, queued, 1))] == [second]
    assert world.do(lambda tx: tx.history.after(start, last, [], 10)) == []
    cursor = world.do(lambda tx: tx.history.cursor_at(moment, last))
    assert [event.job for event in world.do(lambda tx: tx.history.after(cursor, last, None, 10))] == [second, first]
    assert world.do(lambda tx: tx.history.cursor_at(moment + SECOND, last)) == last
