"""Submissions in somebody else's transaction: prepared in one of ours, written in theirs, shown once theirs committed.

What is written in theirs is new rows alone. Nothing that others need is locked there, however long it stays open.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS, JobRow
from paceline.core.problem import Problem
from paceline.core.submission import Terms, Wish, missing, undecided
from paceline.core.waking import settle as decide
from paceline.store.protocol import Tx
from paceline.units.submit import edges_between, lane_of, root_behind, row_of, same_input, show


class Plan(NamedTuple):
    """What was found out in a transaction of ours, so that theirs need not ask for it or write it."""

    home: str
    lanes: dict[Terms, int]
    tenants: dict[str, int]
    rows: dict[int, JobRow]
    """Prerequisites and parents that everybody can see."""
    keyed: dict[str, tuple[int, str]]
    """(job, input) of the keys that are taken."""
    now: int


class Draft(NamedTuple):
    """What was found out in theirs; from here on nothing but the database itself can go wrong."""

    known: int | None
    """The job that a key answers, so that there is nothing to write."""
    ids: list[int]
    rows: dict[int, JobRow]


def plan(tx: Tx, wishes: Sequence[Wish], check_room: Callable[[Tx, int], None]) -> Plan:
    """Whatever of a submission must or may be written before it: names, and room for that many more root jobs."""
    if any(wish.terms.session is not None for wish in wishes):
        raise Problem(
            code="session_undecided", what="the place of a job in its session is not known before the commit",
            where="session", todo="submit jobs of a session without a connection, after the commit",
        )  # fmt: skip
    terms = dict.fromkeys(wish.terms for wish in wishes)
    check_room(tx, sum(wish.terms.parent is None for wish in wishes))
    tenants = {one.tenant: tx.lanes.tenant(one.tenant) for one in terms}
    keyed = {one.key: tx.submissions.keyed(tenants[one.tenant], one.agent, one.key) for one in terms if one.key}
    return Plan(
        tx.visits.home(),
        {one: lane_of(tx, one) for one in terms},
        tenants,
        {row.id: row for row in tx.jobs.rows(_named(wishes))},
        {key: found for key, found in keyed.items() if found},
        tx.now,
    )


def draft(tx: Tx, wishes: Sequence[Wish], plan: Plan) -> Draft:
    """Looks where the connection leads and at what only it can see; takes numbers and a key, and writes nothing."""
    home = tx.visits.home()
    if home != plan.home:
        same = home.rpartition(" ")[0] == plan.home.rpartition(" ")[0]
        what = (
            "the connection's user may not see the store's tables"
            if same
            else ("the connection leads to another database than the store's")
        )
        todo = (
            "use the rights of the store's own user"
            if same
            else ("use a connection to the database that the store's URL names")
        )
        raise Problem(code="bad_connection", what=what, where="connection", todo=todo)
    if not tx.visits.may_write():
        raise Problem(
            code="bad_connection", what="the connection's transaction or user may not write the store's tables",
            where="connection", todo="begin a transaction that writes, as a user with the rights of the store's own",
        )  # fmt: skip
    known = [_by_key(tx, wish, plan) for wish in wishes if wish.terms.key is not None]
    if known and known[0] is not None:  # a key belongs to one job, which is submitted alone
        return Draft(known[0], [], {})
    rows = plan.rows | _own(tx, [job for job in _named(wishes) if job not in plan.rows])
    for wish in wishes:
        _root(wish.terms, rows)
    return Draft(None, tx.jobs.reserve(len(wishes)), rows)


def write(tx: Tx, wishes: Sequence[Wish], plan: Plan, draft: Draft) -> list[int]:
    """Inserts the jobs unseen; answers their ids, or that of the job which a key answers."""
    if draft.known is not None:
        return [draft.known]
    ids, rows = draft.ids, draft.rows
    batch = tx.visits.open(ids[0], plan.now)
    jobs = [
        row_of(job, terms, State.CREATED, (plan.lanes[terms], _root(terms, rows)), None, batch, plan.now)
        for job, (terms, *_) in zip(ids, wishes, strict=True)
    ]
    for start, end in pairwise([*range(0, len(jobs), UNIT_ROWS), len(jobs)]):
        tx.jobs.insert(jobs[start:end], [wish.body for wish in wishes[start:end]], plan.now)
    # A prerequisite may end, or be tried again, before anybody can see who waits for it: all edges begin open.
    edges = edges_between(wishes, ids, dict.fromkeys(rows, State.QUEUED))
    tx.edges.insert([edge for some in edges.values() for edge in some])
    for job, wish in zip(ids, wishes, strict=True):
        if wish.terms.key is not None:
            tx.submissions.remember_key(plan.tenants[wish.terms.tenant], wish.terms.agent, wish.terms.key, job)
    return ids


def show_committed(tx: Tx) -> tuple[bool, bool]:
    """Makes one unit's worth of what was committed so visible; answers (anything was, more is left)."""
    batches = tx.visits.committed(UNIT_ROWS)
    if not batches:
        return False, False
    staged = tx.visits.staged(batches, UNIT_ROWS)
    show_overlooked(tx, staged)
    if len(staged) == UNIT_ROWS:
        return True, True
    tx.visits.close(batches)
    return True, len(batches) == UNIT_ROWS


def show_overlooked(tx: Tx, staged: list[int]) -> None:
    """Makes jobs visible whose edges nobody could see: what became of their prerequisites meanwhile counts now."""
    if staged:
        tx.guards.prerequisites(staged)
        found = tx.visits.overlooked(staged)
        if found:
            tx.edges.settle(decide([edge for edge, _ in found], {edge.dependency: state for edge, state in found}))
        show(tx, staged)


def _named(wishes: Iterable[Wish]) -> list[int]:
    """The jobs that a submission names: prerequisites and parents."""
    parents = {wish.terms.parent for wish in wishes if wish.terms.parent is not None}
    return sorted({job for wish in wishes for job, _ in wish.after} | parents)


def _own(tx: Tx, jobs: list[int]) -> dict[int, JobRow]:
    """Jobs that their transaction has submitted before, which nobody else can see; one that it has not is refused."""
    found = {row.id: row for row in tx.jobs.rows(jobs)} if jobs else {}
    if len(found) < len(jobs):
        raise missing([job for job in jobs if job not in found])
    return found


def _root(terms: Terms, rows: dict[int, JobRow]) -> int | None:
    return None if terms.parent is None else root_behind(terms.parent, rows)


def _by_key(tx: Tx, wish: Wish, plan: Plan) -> int | None:
    """The job that a key answers already; nobody else can take a free one before their transaction ends."""
    key, tenant = str(wish.terms.key), plan.tenants[wish.terms.tenant]
    if not tx.visits.hold_key(tenant, wish.terms.agent, key):
        raise undecided(key)
    found = tx.submissions.keyed(tenant, wish.terms.agent, key) or plan.keyed.get(key)
    return None if found is None else same_input(key, wish.body, *found)
