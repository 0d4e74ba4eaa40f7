"""The few things that databases spell differently: lists, rows, locks; whatever is in them and however much."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.core.lifecycle import State
from paceline.core.model import Move
from paceline.events import Kind
from paceline.store.driver import as_list
from paceline.store.statements import fill, texts
from store.stores import Database
from store.world import World, newest_events

WORDS = ["", "plain", "Grüße, 世界 🌍", 'quo\'te "double" back\\slash', "line\nbreak\ttab", "\u2028\x7f", "null", "[1]"]
whatever = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ask(world: World, sql: str, **bindings: int | str | None) -> list[tuple[object, ...]]:
    dialect = world.store._sql._dialect
    return world.do(lambda tx: world.store._connection.rows(fill(sql, dialect), bindings))


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
def test_a_list_may_hold_nothing_one_or_thousands(world: World, count: int) -> None:
    found = ask(world, "select 7 where 7 {in:ids}", ids=as_list(list(range(8, 8 + count))))
    assert found == []
    found = ask(world, "select 7 where 7 {in:ids}", ids=as_list([*range(8, 8 + count), 7]))
    assert found == [(7,)]


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
def test_rows_may_be_none_one_or_thousands_and_keep_their_order(world: World, count: int) -> None:
    rows = [(number, f"w{number}", None) for number in range(count, 0, -1)]
    found = ask(world, "select id, word, gap from {rows:rows(id int, word text, gap int)} r", rows=as_list(rows))
    assert found == rows


@whatever
@given(rows=st.lists(st.tuples(st.integers(-(2**62), 2**62), st.one_of(st.none(), st.text(), st.sampled_from(WORDS)))))
def test_rows_come_back_as_they_went(world: World, rows: list[tuple[int, str | None]]) -> None:
    rows = [(number, word.replace("\0", "") if word is not None else None) for number, word in rows]
    assert ask(world, "select id, word from {rows:rows(id int, word text)} r", rows=as_list(rows)) == rows


@pytest.mark.parametrize("word", WORDS)
def test_words_survive_every_way_into_a_row(world: World, word: str) -> None:
    job = world.running(key=word or "-", session=word or "-", tenant=word or "-")
    move = Move(job.id, State.RUNNING, job.epoch, State.QUEUED, word)
    world.do(lambda tx: tx.jobs.move([move], Kind.JOB_GIVEN_BACK, tx.now, {job.id: word}))
    assert world.row(job.id).reason == word
    assert world.do(lambda tx: newest_events(tx, 1))[0].data == word
    tenant = world.do(lambda tx: tx.lanes.tenant(word or "-"))
    assert world.do(lambda tx: tx.reasons.names(job.id, tenant, world.agent)) == (word or "-",) * 2
    world.do(lambda tx: tx.outcomes.set_input(job.id, word))
    assert world.do(lambda tx: tx.jobs.lock_ready([job.id])) == {job.id: word}


def test_absent_numbers_are_nulls_and_not_zeros(world: World) -> None:
    job = world.running()
    rows = [Move(job.id, State.RUNNING, job.epoch, State.QUEUED, None, due_at=None, attempt=None, snoozes=0)]
    world.do(lambda tx: tx.jobs.move(rows, Kind.JOB_GIVEN_BACK, tx.now))
    row = world.row(job.id)
    assert (row.reason, row.due_at, row.snoozes) == (None, None, 0)


def test_verbs_take_empty_lists_and_thousands(world: World) -> None:
    many = list(range(1_000, 6_000))
    for ids in ([], many):
        assert world.do(lambda tx: tx.jobs.rows(ids)) == []  # noqa: B023
        assert world.do(lambda tx: tx.jobs.claim(ids, world.node, tx.now)) == []  # noqa: B023
        assert world.do(lambda tx: tx.jobs.complete([(job, 1, "0") for job in ids], tx.now)) == []  # noqa: B023
        assert world.do(lambda tx: tx.edges.open_from(ids, 10)) == []  # noqa: B023
        assert world.do(lambda tx: tx.edges.freed(ids)) == []  # noqa: B023
        assert world.do(lambda tx: tx.outcomes.results(ids)) == {}  # noqa: B023
        assert world.do(lambda tx: tx.lanes.facts(ids)) == {}  # noqa: B023


def test_every_named_statement_is_one_that_the_database_understands(database: Database, world: World) -> None:
    statements = world.store._sql
    for name in sorted(name for name in texts() if " (" not in name):
        assert not re.search(r"\{[a-z_]+[:}]", statements[name]), name
        if statements[name]:
            world.do(lambda tx: database.check(world.store, statements[name]))  # noqa: B023
