import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from node.stage import Bench
from paceline.core.model import SECOND
from paceline.events import Kind, Severity
from paceline.node import lookout
from paceline.node.lookout import LOOK_EVERY, Lookout
from paceline.testing.clock import ManualClock
from store.stores import DATABASES, postgres_of
from store.world import World


@pytest.fixture
def served(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world on Postgres, where a transaction is old as soon as it has begun."""
    monkeypatch.setattr(lookout, "LEFT_OPEN_AFTER", 0)
    store = DATABASES["postgres"].open(tmp_path, clock)
    yield World(store, clock)
    store.close()


def connect(world: World, application: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(postgres_of(world.store).place.conninfo, application_name=application)


def test_a_transaction_that_is_left_open_is_announced_once_whoever_looks(served: World) -> None:
    bench, other = Bench(served), Bench(served, name="n2")
    with closing(connect(served, "the shop")) as shop:
        assert bench.turn(Lookout()) == 0
        shop.execute("select 1")
        assert [bench.turn(Lookout()), other.turn(Lookout()), bench.turn(Lookout())] == [1, 0, 0]
        (said,) = [json.loads(data) for data in bench.announced(Kind.STORE_TRANSACTION_OPEN)]
        assert said.pop("seconds") < 60
        assert said == {
            "pid": shop.info.backend_pid, "user": shop.info.user, "application": "the shop",
            "state": "idle in transaction",
        }  # fmt: skip
        shop.rollback()
        assert bench.turn(Lookout()) == 0
        shop.execute("select 1")
        assert bench.turn(Lookout()) == 1
    assert Kind.STORE_TRANSACTION_OPEN.severity is Severity.WARNING


def test_two_transactions_are_two_warnings(served: World) -> None:
    bench = Bench(served)
    with closing(connect(served, 'a "quoted" name')) as one, closing(connect(served, "two")) as two:
        for connection in (one, two):
            connection.execute("select 1")
        assert bench.turn(Lookout()) == 2
    names = {json.loads(data)["application"] for data in bench.announced(Kind.STORE_TRANSACTION_OPEN)}
    assert names == {'a "quoted" name', "two"}


def test_a_transaction_of_usual_length_is_none_of_our_business(served: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LEFT_OPEN_AFTER", 60 * SECOND)
    bench = Bench(served)
    with closing(connect(served, "quick")) as quick:
        quick.execute("select 1")
        assert bench.turn(Lookout()) == 0
        assert served.do(lambda tx: tx.visits.warn("transaction of somebody"))
        assert not served.do(lambda tx: tx.visits.warn("transaction of somebody"))
        served.do(lambda tx: tx.visits.forget_warnings(["transaction of somebody"]))
        assert not served.do(lambda tx: tx.visits.warn("transaction of somebody"))
        bench.turn(Lookout())
        assert served.do(lambda tx: tx.visits.warn("transaction of somebody"))


def test_it_looks_every_half_minute_and_a_file_has_nothing_to_look_for(bench: Bench) -> None:
    looking = Lookout()
    now = bench.clock.now()
    assert looking.next_at(now) == now
    assert bench.turn(looking) == 0
    assert looking.next_at(now) == now + LOOK_EVERY
    looking.failed(now + 1)
    assert looking.next_at(now) == now + 1 + LOOK_EVERY
    assert bench.announced(Kind.STORE_TRANSACTION_OPEN) == []
