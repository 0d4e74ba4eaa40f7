"""The door: wishes become rows, whole or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence

from paceline.core.lifecycle import State
from paceline.core.model import UNIT_ROWS, Edge, JobRow, Met, NewJob, Wants
from paceline.core.problem import Problem
from paceline.core.submission import Terms, Wish, conflict, edge_state, first_state, missing, undecided
from paceline.payloads import canonical
from paceline.store.protocol import Tx
from paceline.units.settle import end_open, fail_dependents, settle


def submit(tx: Tx, wishes: Sequence[Wish], check_room: Callable[[Tx, int], None]) -> list[int]:
    """Inserts at most one unit's worth of jobs and answers their ids; a key that is known answers its job.

    `check_room` raises when that many more root jobs may not wait; children are never refused.
    """
    known = _by_key(tx, wishes) if any(wish.terms.key for wish in wishes) else {}
    fresh = _fresh(wishes, known) if known else wishes
    check_room(tx, sum(wish.terms.parent is None for wish in fresh))
    inserted = iter(_insert(tx, fresh, None) if fresh else [])
    return [known[place] if place in known else next(inserted) for place in range(len(wishes))]


def stage(tx: Tx, batch: int, wishes: Sequence[Wish]) -> list[int]:
    """Inserts one chunk of a larger submission; nobody sees the jobs until the whole is accepted."""
    if not tx.submissions.is_open(batch):
        raise Problem(code="submission_abandoned", what="the submission took too long and was swept away",
                      todo="submit it again")  # fmt: skip
    return _insert(tx, wishes, batch)


def publish(tx: Tx, batch: int) -> bool:
    """Makes one unit's worth of an accepted submission visible; False when that was the last of it."""
    staged = tx.submissions.staged(batch, UNIT_ROWS)
    show(tx, staged)
    return _goes_on(tx, batch, staged)


def show(tx: Tx, staged: list[int]) -> None:
    """Makes staged jobs of accepted submissions visible; one whose prerequisite or parent ended badly ends at once."""
    tx.guards.parents(staged)
    tx.guards.jobs(staged)
    blocked = tx.submissions.publish(staged, tx.now) if staged else []
    if blocked:
        settle(tx, fail_dependents(tx, dict(tx.edges.broken(blocked))))
    if orphans := tx.watch.orphans(staged):
        settle(tx, end_open(tx, orphans, State.CANCELLED, "parent_cancelled"))


def forget(tx: Tx, batch: int) -> bool:
    """Removes one unit's worth of a submission that nobody has accepted; False when that was the last of it."""
    if not tx.submissions.abandon_batch(batch):
        return False
    staged = tx.submissions.staged(batch, UNIT_ROWS)
    if staged:
        tx.submissions.forget(staged)
    return _goes_on(tx, batch, staged)


def _goes_on(tx: Tx, batch: int, staged: list[int]) -> bool:
    if len(staged) == UNIT_ROWS:
        return True
    tx.submissions.close_batch(batch)
    return False


def _by_key(tx: Tx, wishes: Sequence[Wish]) -> dict[int, int]:
    """Places whose key answers an existing job; the same key with another input is a conflict."""
    known: dict[int, int] = {}
    used: set[str] = set()
    for place, wish in enumerate(wishes):
        key = wish.terms.key
        if key is None:
            continue
        found = tx.submissions.keyed(tx.lanes.tenant(wish.terms.tenant), wish.terms.agent, key)
        if key in used:
            raise Problem(code="key_conflict", what=f"the key {key!r} is used twice in one submission",
                          todo="give each job a key of its own")  # fmt: skip
        used.add(key)
        if found is not None:
            known[place] = same_input(key, wish.body, *found)
        elif not tx.visits.key_is_free(tx.lanes.tenant(wish.terms.tenant), wish.terms.agent, key):
            raise undecided(key)
    return known


def same_input(key: str, asked: str, job: int, body: str) -> int:
    """The job that a key answers; another input under the same key is a conflict."""
    if body != asked and canonical(body) != canonical(asked):
        raise conflict(key, job)
    return job


def _fresh(wishes: Sequence[Wish], known: dict[int, int]) -> list[Wish]:
    """The wishes without a job; places that a key has answered are jobs by now, and the others move up."""
    left = [place for place in range(len(wishes)) if place not in known]
    moved = {place: new for new, place in enumerate(left)}
    return [
        wish._replace(
            after=(*wish.after, *((known[place], wants) for place, wants in wish.inner if place in known)),
            inner=tuple((moved[place], wants) for place, wants in wish.inner if place not in known),
        )
        for wish in (wishes[place] for place in left)
    ]


def _insert(tx: Tx, wishes: Sequence[Wish], batch: int | None) -> list[int]:
    ids = tx.jobs.reserve(len(wishes))
    new = frozenset(ids)
    edges = edges_between(wishes, ids, _states(tx, wishes))
    lanes: dict[Terms, tuple[int, int | None]] = {}
    jobs: list[NewJob] = []
    for job, wish in zip(ids, wishes, strict=True):
        terms = wish.terms
        place = lanes.get(terms)
        if place is None:
            place = lanes[terms] = (lane_of(tx, terms), _root(tx, terms))
        session = None
        if terms.session is not None:
            session = _join(tx, terms, job, new, edges)
        state = State.CREATED if batch else first_state(edge.met for edge in edges.get(job, ()))
        jobs.append(row_of(job, terms, state, place, session, batch, tx.now))
    tx.jobs.insert(jobs, [wish.body for wish in wishes], tx.now)
    if edges:
        tx.edges.insert([edge for some in edges.values() for edge in some])
        if not batch:
            broken = {e.dependent: e.dependency for some in edges.values() for e in some if e.met is Met.BROKEN}
            settle(tx, fail_dependents(tx, broken))
    for job, wish in zip(ids, wishes, strict=True):
        if wish.terms.key is not None:
            tx.submissions.remember_key(tx.lanes.tenant(wish.terms.tenant), wish.terms.agent, wish.terms.key, job)
    return ids


def row_of(
    job: int,
    terms: Terms,
    state: State,
    place: tuple[int, int | None],
    session: int | None,
    batch: int | None,
    now: int,
) -> NewJob:
    """The row of a new job; `place` is its lane and, of a child, the root of its run."""
    lane, root = place
    due_at = now + terms.delay if terms.delay else None
    ready_at = None if state is not State.QUEUED else due_at or now
    deadline = terms.deadline
    return NewJob(
        job, state, lane, root or job, terms.parent, session, batch, terms.retries, terms.timeout, ready_at, due_at,
        deadline, now, 0, None,
    )  # fmt: skip


def lane_of(tx: Tx, terms: Terms) -> int:
    """The number of the lane in which such a job queues."""
    return tx.lanes.lane(terms.queue_class, terms.priority, tx.lanes.tenant(terms.tenant), terms.agent, terms.home)


def _root(tx: Tx, terms: Terms) -> int | None:
    """The root of the run a child belongs to; a parent that has ended takes no more children."""
    if terms.parent is None:
        return None
    return root_behind(terms.parent, {row.id: row for row in tx.guards.rows([terms.parent])})


def root_behind(parent: int, rows: Mapping[int, JobRow]) -> int:
    """The root of the run that a parent belongs to."""
    if parent not in rows:
        raise missing([parent])
    if rows[parent].state.ended:
        raise Problem(code="parent_ended", what=f"the parent j{parent} has ended and takes no more children",
                      found=rows[parent].state.word)  # fmt: skip
    return rows[parent].root


def _join(tx: Tx, terms: Terms, job: int, new: Collection[int], edges: dict[int, list[Edge]]) -> int:
    """A job waits for the end of the one before it in its session; the `new` ones are not rows yet."""
    session, last = tx.submissions.join_session(tx.lanes.tenant(terms.tenant), str(terms.session), job)
    asked = {edge.dependency for edge in edges.get(job, ())}
    waits = [] if last is None else [last] if last in new else _still_open(tx, last)
    for before in waits:
        if before not in asked:
            edges.setdefault(job, []).append(Edge(before, job, Wants.FINISHED, Met.OPEN))
    return session


def _still_open(tx: Tx, last: int) -> list[int]:
    """The newest job of a session or, when that ended before its turn, the open ones that it waited for."""
    for row in tx.guards.rows([last]):
        if not row.state.ended:
            return [last]
        if row.state is not State.COMPLETED:
            return tx.sessions.open_before(last)
    return []


def _states(tx: Tx, wishes: Sequence[Wish]) -> dict[int, State]:
    """Where the prerequisites that are jobs already stand right now."""
    outside = sorted({dependency for wish in wishes for dependency, _ in wish.after})
    states = {row.id: row.state for row in tx.guards.rows(outside)} if outside else {}
    if len(states) < len(outside):
        raise missing([job for job in outside if job not in states])
    return states


def edges_between(wishes: Sequence[Wish], ids: Sequence[int], states: Mapping[int, State]) -> dict[int, list[Edge]]:
    """The edges of each new job, worth what their prerequisites make them."""
    edges: dict[int, list[Edge]] = {}
    for job, wish in zip(ids, wishes, strict=True):
        if wish.after or wish.inner:
            edges[job] = [
                *(Edge(before, job, wants, edge_state(wants, states[before])) for before, wants in wish.after),
                *(Edge(ids[place], job, wants, Met.OPEN) for place, wants in wish.inner),
            ]
    return edges
