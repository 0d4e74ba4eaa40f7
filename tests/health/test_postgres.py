"""What a server says of itself, and what it means: one verdict each, decided from values."""

from typing import Any

import pytest

from paceline.health.postgres import judge
from paceline.health.verdicts import Grade, Verdict
from paceline.store.postgres_care import Dead, Facts, OpenTransaction, Prepared, Rights, Server
from paceline.store.postgres_place import Place, place_of

SECOND = 1_000_000
SERVER = Server(
    version="16.4", major=16, encoding="UTF8", standby=False, read_only=False, isolation="read committed", fsync=True,
    full_page_writes=True, synchronous_commit="on", autovacuum=True, connections=10, max_connections=100, user="me",
    pid=7, now=0,
)  # fmt: skip
FACTS = Facts(SERVER, 0, False, Rights(True, True, True, True, True), (), (), (Dead("jobs", 3, 100),))
HOME = place_of("postgresql://me:secret@server/work")


def facts(**other: Any) -> Facts:
    """A server that is well but for this."""
    of_server = {name: value for name, value in other.items() if name in Server._fields}
    of_facts = {name: value for name, value in other.items() if name in Facts._fields}
    return FACTS._replace(server=SERVER._replace(**of_server), **of_facts)


def verdicts(found: Facts, place: Place = HOME) -> dict[str, Verdict]:
    return {one.name: one for one in judge(found, place)}


def test_of_a_server_that_is_well_there_is_nothing_to_do() -> None:
    found = verdicts(FACTS)
    assert {one.grade for one in found.values()} == {Grade.OK}
    assert {one.todo for one in found.values()} == {""}
    assert "secret" not in str(found)


FAILS: dict[str, tuple[Facts, str, str]] = {
    "an old server": (facts(major=13, version="13.2"), "server", "14"),
    "another encoding": (facts(encoding="SQL_ASCII"), "encoding", "UTF8"),
    "a standby": (facts(standby=True), "writes", "primary"),
    "read only": (facts(read_only=True), "writes", "default_transaction_read_only"),
    "a schema that is another's": (
        facts(rights=Rights(True, False, False, False, True)), "rights", "grant all on schema paceline",
    ),
    "tables that are another's": (
        facts(rights=Rights(True, True, True, True, False)), "rights", "grant all on schema paceline",
    ),
    "a schema that cannot be made": (
        facts(rights=Rights(False, True, True, False, True)), "rights", "create schema paceline authorization me",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "name", "todo"), FAILS.values(), ids=FAILS.keys())
def test_what_a_store_cannot_live_with_fails(found: Facts, name: str, todo: str) -> None:
    verdict = verdicts(found)[name]
    assert verdict.grade is Grade.FAIL
    assert todo in verdict.todo


LONG_AGO = (OpenTransaction(99, "psql", "idle in transaction", 300 * SECOND + 5),)
WARNS: dict[str, tuple[Facts, str, str, str]] = {
    "no fsync": (facts(fsync=False), "durability", "damage", "turn it on"),
    "torn pages": (facts(full_page_writes=False), "durability", "torn", "turn it on"),
    "late commits": (facts(synchronous_commit="off"), "durability", "acknowledged", "turn it on"),
    "few connections left": (facts(connections=80), "connections", "80 of 100", "PgBouncer"),
    "a pooler": (facts(pooled=True), "pooler", "prepared", "prepare=off"),
    "a clock ahead": (facts(ahead=6 * SECOND), "clock of server", "6 s ahead", "the database's clock counts"),
    "a clock behind": (facts(ahead=-6 * SECOND), "clock of server", "6 s behind", "the database's clock counts"),
    "no migrations": (
        facts(rights=Rights(True, True, False, False, True)), "rights", "not migrate", "paceline db migrate",
    ),
    "a transaction": (facts(open=LONG_AGO), "transactions", "process 99 (psql, idle in transaction) for 5m", "99"),
    "a prepared one": (facts(prepared=(Prepared("left", 9 * SECOND),)), "prepared ones", "left for 9 s", "rollback"),
    "dead rows": (facts(dead=(Dead("jobs", 60_000, 100),)), "dead rows", "60,000 beside 100", "vacuum"),
    "no vacuum": (facts(autovacuum=False), "dead rows", "autovacuum is off", "turn autovacuum on"),
}  # fmt: skip


@pytest.mark.parametrize(("found", "name", "said", "todo"), WARNS.values(), ids=WARNS.keys())
def test_what_costs_something_is_told_with_what_is_at_risk(found: Facts, name: str, said: str, todo: str) -> None:
    verdict = verdicts(found)[name]
    assert verdict.grade is Grade.WARN
    assert said in verdict.found
    assert todo in verdict.todo


def test_a_clock_within_five_seconds_a_few_dead_rows_and_a_pooler_without_preparing_are_fine() -> None:
    found = facts(ahead=5 * SECOND, dead=(Dead("jobs", 49_000, 1),), pooled=True, connections=79)
    place = place_of("postgresql://me@server/work?prepare=off")
    assert {one.grade for one in verdicts(found, place).values()} == {Grade.OK}


def test_a_schema_that_can_be_made_is_fine() -> None:
    assert "may make" in verdicts(facts(rights=Rights(False, True, True, True, True)))["rights"].found
