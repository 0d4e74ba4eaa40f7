"""A store on a Postgres server, from the way there up to what is in it."""

from collections.abc import Iterator
from functools import partial

from paceline.config import Settings
from paceline.core.durations import format_duration
from paceline.core.problem import Problem
from paceline.health.users import LARGE_STORE, contents, in_use, unread
from paceline.health.verdicts import Grade, Verdict, failed, guarded, listed, ok, warn
from paceline.store.doors import ENCODING, LEAST_SERVER
from paceline.store.maintenance import Plan
from paceline.store.postgres_care import Facts, Server, check, facts_of, plan, size_of
from paceline.store.postgres_place import Place

CLOCK_SLACK = 5_000_000
FULL_AT = 0.8
"""The share of its connections at which a server is nearly full."""
MANY_DEAD = 50_000


def server_store(place: Place, settings: Settings) -> Iterator[Verdict]:
    """What the server says, then the store in it; ends at the first thing that makes the rest meaningless."""
    try:
        facts = facts_of(place)
    except Problem as problem:
        yield failed("server", problem)
        return
    said = list(judge(facts, place))
    yield from said
    if any(one.grade is Grade.FAIL for one in said):
        return
    if not facts.rights.exists:
        yield warn("store", f"there is no schema {place.schema} yet", "paceline init makes it; so does the first run")
        return
    found = guarded("schema", lambda: _schema(plan(place)))
    yield found
    if found.grade is not Grade.OK:
        return
    yield guarded("contents", partial(_contents, place))
    yield from in_use(settings)


def judge(facts: Facts, place: Place) -> Iterator[Verdict]:
    """What the facts mean: whether the server can keep a store at all, how well, and what keeps it from clearing up."""
    server = facts.server
    right = server.major >= LEAST_SERVER
    todo = "" if right else f"upgrade it: Paceline needs {LEAST_SERVER} or newer"
    yield Verdict("server", Grade.OK if right else Grade.FAIL, f"PostgreSQL {server.version} at {place.shown}", todo)
    yield _encoding(server)
    yield _writes(server)
    yield _durability(server)
    yield _isolation(server)
    yield _connections(server)
    yield _pooler(facts, place)
    yield _clock(facts.ahead)
    yield _rights(facts, place)
    yield _transactions(facts)
    yield _prepared(facts)
    yield _dead_rows(facts)


def _encoding(server: Server) -> Verdict:
    if server.encoding == ENCODING:
        return ok("encoding", server.encoding)
    todo = f"create database … encoding '{ENCODING}' template template0, and name that one"
    return Verdict("encoding", Grade.FAIL, f"{server.encoding}, which cannot keep every text", todo)


def _writes(server: Server) -> Verdict:
    if server.standby:
        return Verdict("writes", Grade.FAIL, "the server is a standby and takes none", "name the primary")
    if server.read_only:
        todo = "set default_transaction_read_only off for this user and database"
        return Verdict("writes", Grade.FAIL, "transactions are read only by default", todo)
    return ok("writes", "taken")


def _durability(server: Server) -> Verdict:
    risks = []
    if not server.fsync:
        risks.append("fsync is off: a crash of its machine can damage the database beyond repair")
    if not server.full_page_writes:
        risks.append("full_page_writes is off: a crash of its machine can leave torn pages")
    if server.synchronous_commit == "off":
        risks.append("synchronous_commit is off: a crash can lose the last moments of what was acknowledged")
    if risks:
        return warn("durability", "; ".join(risks), "turn it on, unless all of this may be lost")
    return ok("durability", f"fsync, full_page_writes; synchronous_commit {server.synchronous_commit}")


def _isolation(server: Server) -> Verdict:
    return ok("isolation", f"{server.isolation} by default; transactions of Paceline say read committed themselves")


def _connections(server: Server) -> Verdict:
    found = f"{server.connections} of {server.max_connections} in use"
    if server.connections >= FULL_AT * server.max_connections:
        return warn(
            "connections", found, "raise max_connections, or put PgBouncer before the server: each node takes 3"
        )
    return ok("connections", found)


def _pooler(facts: Facts, place: Place) -> Verdict:
    if not facts.pooled:
        said = "each statement is prepared once" if place.prepare else "nothing is prepared: prepare=off in the URL"
        return ok("pooler", f"none; {said}")
    if not place.prepare:
        return ok("pooler", "there is one, and nothing is prepared")
    todo = "with PgBouncer before 1.21, or max_prepared_statements = 0, add prepare=off to the URL"
    return warn("pooler", "there is one between us and the server, and statements are prepared", todo)


def _clock(ahead: int) -> Verdict:
    said = f"{format_duration(max(1_000, abs(ahead)))} {'ahead of' if ahead > 0 else 'behind'} this host's"
    if abs(ahead) <= CLOCK_SLACK:
        return ok("clock of server", f"{said}; the database's counts")
    todo = "set both by NTP; the database's clock counts, so times of jobs and schedules are by that one"
    return warn("clock of server", said, todo)


def _rights(facts: Facts, place: Place) -> Verdict:
    rights, user, schema = facts.rights, facts.server.user, place.schema
    if not rights.exists:
        if rights.may_create:
            return ok("rights", f"user {user} may make the schema {schema}")
        found = f"user {user} may not make the schema {schema}"
        return Verdict("rights", Grade.FAIL, found, f"create schema {schema} authorization {user}")
    if not rights.may_use or not rights.may_write:
        found = f"user {user} may not read and write all of the schema {schema}"
        return Verdict(
            "rights", Grade.FAIL, found, f"grant all on schema {schema}, and on all tables and sequences in it"
        )
    if not rights.may_create_in:
        found = f"user {user} may read and write in the schema {schema}, and not migrate it"
        return warn("rights", found, f"let its owner run paceline db migrate, or grant create on schema {schema}")
    return ok("rights", f"user {user} may read, write and migrate the schema {schema}")


def _schema(found: Plan) -> Verdict:
    if found.steps:
        return warn("schema", f"{found.schema}; this program has {found.newest}", "paceline db migrate")
    return ok("schema", f"{found.schema}")


def _transactions(facts: Facts) -> Verdict:
    if not facts.open:
        return ok("transactions", "none is open for long")
    said = [
        f"process {one.pid} ({one.application or 'without a name'}, {one.state or 'hidden'}) for {_age(one.age)}"
        for one in facts.open
    ]
    todo = (
        f"end what it belongs to, or select pg_terminate_backend({facts.open[0].pid}): nothing is cleared up meanwhile"
    )
    return warn("transactions", f"open: {listed(said, 3)}", todo)


def _prepared(facts: Facts) -> Verdict:
    if not facts.prepared:
        return ok("prepared ones", "none was prepared and left")
    said = [f"{one.name} for {_age(one.age)}" for one in facts.prepared]
    todo = f"commit prepared or rollback prepared '{facts.prepared[0].name}': it outlives restarts"
    return warn("prepared ones", f"waiting for an end: {listed(said, 3)}", todo)


def _dead_rows(facts: Facts) -> Verdict:
    found = ", ".join(f"{one.table} {one.dead:,} beside {one.live:,}" for one in facts.dead) or "not counted yet"
    if not facts.server.autovacuum:
        return warn("dead rows", f"autovacuum is off; {found}", "turn autovacuum on: nothing else clears them away")
    if any(one.dead > max(MANY_DEAD, one.live) for one in facts.dead):
        return warn("dead rows", found, "look for long transactions above; then vacuum these tables")
    return ok("dead rows", found)


def _contents(place: Place) -> Verdict:
    room = size_of(place)
    if room > LARGE_STORE:
        return unread(room)
    return contents(check(place))


def _age(age: int) -> str:
    return format_duration(age // 1_000_000 * 1_000_000)
