"""Why a job is where it is: facts go in, one explanation comes out, for every state there is."""

from collections.abc import Callable, Sequence

from paceline.core.durations import format_duration
from paceline.core.explanation import (
    COUNTED_AHEAD,
    NAMED,
    QUIET_AFTER,
    Explanation,
    Facts,
    Holder,
    Host,
    Prerequisite,
    Why,
)
from paceline.core.lifecycle import State
from paceline.core.model import Wants
from paceline.core.retrying import COUNTED, WhyNot
from paceline.core.scheduling import effective


def explain(facts: Facts, now: int) -> Explanation:
    """The one reason that matters most, with what else is worth knowing."""
    found = _BY_STATE[facts.job.state](facts, now)
    return found if found.since is not None else found._replace(since=facts.entered_at)


def stands_before(queue_class: int, priority: int, mine: tuple[int, int, int, int], now: int) -> tuple[int, int]:
    """The (ready_at, job) in a lane before which everything goes before `mine`: (class, priority, ready_at, job).

    `mine` is the standing that age has given that job by `now`. Within a lane the order is that of arrival, so one
    border is enough however many jobs there are.
    """
    low, high = 0, max(now, mine[2]) + 1

    def behind(ready_at: int) -> bool:
        return (*effective(queue_class, priority, ready_at, now), ready_at) >= mine[:3]

    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if behind(middle) else (middle + 1, high)
    equal = (*effective(queue_class, priority, low, now), low) == mine[:3]
    return low, mine[3] if equal else 0


def _because(facts: Facts, code: Why, brief: str, text: str, **more: object) -> Explanation:
    return Explanation(facts.job.id, facts.job.state, code, brief, text)._replace(**more)  # type: ignore[arg-type]


def _created(facts: Facts, now: int) -> Explanation:
    if facts.accepted:
        text = "its submission is accepted; its jobs become visible a few hundred at a time"
        return _because(facts, Why.SUBMISSION_ACCEPTED, "accepted", text, since=facts.job.created_at)
    text = "its submission is still being written: all of its jobs become visible together, or none"
    return _because(facts, Why.SUBMISSION_OPEN, "being submitted", text, since=facts.job.created_at)


def _blocked(facts: Facts, now: int) -> Explanation:
    unmet = [one for one in facts.unmet if not one.state.ended]
    if not unmet:
        text = "what it waited for has ended; it is told within a moment"
        return _because(facts, Why.SETTLING, "being told", text, waits_for=_jobs(facts.unmet))
    more = facts.unmet_count - NAMED
    brief = f"after {_list([f'j{one.job}' for one in unmet[:2]], facts.unmet_count - 2)}"
    notes = []
    if facts.at_root is not None:
        notes.append(f"in the end it waits for j{facts.at_root[0]}: {facts.at_root[1]}")
    if all(one.session for one in unmet):
        before = _list([f"j{one.job} ({one.state.word})" for one in unmet[:NAMED]], more)
        text = f"jobs of one session run one after the other; before it is {before}"
        return _because(facts, Why.SESSION, brief, text, waits_for=_jobs(unmet), notes=tuple(notes))
    text = f"first {_list([_must(one) for one in unmet[:NAMED]], more)}"
    return _because(facts, Why.DEPENDENCIES, brief, text, waits_for=_jobs(unmet), notes=tuple(notes))


def _must(one: Prerequisite) -> str:
    return f"j{one.job} ({one.state.word}) must {'end' if one.wants is Wants.FINISHED else 'complete'}"


def _queued(facts: Facts, now: int) -> Explanation:
    for reason in (_delayed, _no_node, _never_fits, _pinned, _full_pool, _full_slots):
        found = reason(facts, now)
        if found is not None:
            break
    else:
        found = _in_line(facts, now)
    if found.code not in (Why.DELAYED, Why.BACKING_OFF):
        place = None if facts.in_lane is None else facts.in_lane + 1
        found = found._replace(position=place, ahead=facts.ahead)
    return found._replace(notes=(*found.notes, *_past(facts, now)))


def _delayed(facts: Facts, now: int) -> Explanation | None:
    job = facts.job
    if job.due_at is None or job.due_at <= now:
        return None
    wait = format_duration(job.due_at - now)
    if not job.epoch:
        text = f"it was submitted with a delay and may start in {wait}"
        return _because(facts, Why.DELAYED, f"in {wait}", text, until=job.due_at)
    failure = facts.failure
    cause = f"{failure.type}: {failure.message}" if failure.type else (job.reason or "a failure")
    cost = f"retry {job.attempt} of {job.retries}" if job.reason in COUNTED else "costs no retry"
    text = f"{cause} ended its last start; it is tried again in {wait} ({job.reason}, {cost})"
    return _because(facts, Why.BACKING_OFF, f"retry in {wait}: {failure.type or job.reason}", text, until=job.due_at)


def _no_node(facts: Facts, now: int) -> Explanation | None:
    if facts.serving:
        return None
    which = f"agent {facts.agent} from {facts.origin}"
    if not facts.nodes:
        text = f"no node is running; it needs one that has {which}"
    else:
        text = f"no live node has {which} ({_count(facts.nodes, 'node')} without it)"
    notes = tuple(
        f"node {node} has another agent {facts.agent}, from {origin}: it never takes this one's jobs"
        for node, origin in facts.namesakes[:NAMED]
    )
    return _because(facts, Why.NO_NODE, "no node for its agent", text, notes=notes, todo=_start_a_node(facts.origin))


def _never_fits(facts: Facts, now: int) -> Explanation | None:
    for pool in facts.pools:
        if pool.units > pool.limit:
            text = f"it needs {pool.units} of {pool.name}, whose limit is {pool.limit}: waiting cannot help"
            todo = f"raise the limit of {pool.name}, or paceline cancel j{facts.job.id}"
            return _because(facts, Why.NEVER_FITS, f"{pool.name} too small", text, todo=todo)
    return None


def _full_pool(facts: Facts, now: int) -> Explanation | None:
    full = next((pool for pool in facts.pools if pool.held + pool.units > pool.limit), None)
    if full is None:
        return None
    own = full.name == f"agent:{facts.agent}"
    holders = _held_by(full.holders, full.held if own else len(full.holders), now)
    first = f" (j{full.holders[0].job})" if full.holders else ""
    if own:
        text = f"agent {facts.agent} runs {full.held} of at most {_count(full.limit, 'job')} at once: {holders}"
        code, brief = Why.AGENT_LIMIT, f"agent limit {full.limit}{first}"
    elif full.name.startswith("lock:"):
        text = f"{full.name} is held by {holders}"
        code, brief = Why.LOCK_HELD, f"{full.name}{first}"
    else:
        text = f"it needs {full.units} of {full.name}, and {full.held} of {full.limit} are held: {holders}"
        code, brief = Why.POOL_FULL, f"{full.name} {full.held}/{full.limit}"
    return _because(facts, code, brief, text, held_by=full.holders)


def _pinned(facts: Facts, now: int) -> Explanation | None:
    """Somebody has room for it and leaves it to the node through which it came, which has none, or no code for it."""
    takers = [node for node in facts.serving if node.takes]
    if any(node.held < node.slots for node in takers) or all(node.held >= node.slots for node in facts.serving):
        return None
    what = "every slot there is used" if takers else f"agent {facts.agent} is not there"
    text = f"it waits for node {facts.home}, through which it was submitted, and {what}; "
    text += "the nodes that have room take only what is submitted through themselves (work_sharing = false)"
    todo = "paceline up: a node that shares work takes it"
    return _because(facts, Why.PINNED, f"pinned to {facts.home}", text, todo=todo)


def _full_slots(facts: Facts, now: int) -> Explanation | None:
    if any(node.held < node.slots for node in facts.serving if node.takes):
        return None
    names = [f"{node.name} {node.held}/{node.slots}" for node in facts.serving[:NAMED]]
    used = _list(names, len(facts.serving) - NAMED)
    text = f"every slot of the nodes that have agent {facts.agent} is used: {used}"
    return _because(facts, Why.SLOTS_FULL, "all slots used", text)


def _in_line(facts: Facts, now: int) -> Explanation:
    job, ahead = facts.job, facts.ahead
    if ahead is None:
        brief, text = "ready", "it is ready and waits for its turn"
    elif ahead == 0:
        brief, text = "next", "it is next: a node that has room takes it within a second"
    else:
        brief = f"{_many(ahead)} ahead"
        text = f"{_count(ahead, 'ready job')} stand before it" if ahead > 1 else "one ready job stands before it"
        text = f"more than {text}" if ahead >= COUNTED_AHEAD else text
    rank = f"{facts.queue_class.word}, priority {facts.priority}"
    ready_at = min(now, job.ready_at or now)
    risen_class, risen = effective(facts.queue_class, facts.priority, ready_at, now)
    if (risen_class, risen) != (facts.queue_class, facts.priority):
        age = format_duration(now - ready_at)
        rank += f"; after {age} it counts as {risen_class.word}, priority {risen}"
    return _because(facts, Why.IN_LINE, brief, text, notes=(f"its rank: {rank}",))


def _past(facts: Facts, now: int) -> list[str]:
    """What is worth knowing of a queued job besides its reason."""
    notes = []
    job = facts.job
    if job.epoch and job.due_at is None and job.reason:
        notes.append(f"it has been started before; that ended: {job.reason}")
    if job.deadline is not None:
        left = job.deadline - now
        notes.append(f"its deadline is in {format_duration(left)}" if left > 0 else "its deadline has passed")
    notes += [quiet for node in facts.serving if (quiet := _quiet(node, now))]
    return notes


def _running(facts: Facts, now: int) -> Explanation:
    job, node = facts.job, facts.holder
    since = job.started_at or now
    where = node.name if node else f"node {job.node}"
    notes = []
    if job.retries or job.attempt:
        notes.append(f"attempt {job.attempt + 1} of {job.retries + 1}")
    if job.epoch > 1:
        notes.append(f"this is start number {job.epoch}")
    left = format_duration(max(0, since + job.timeout - now))
    notes.append(f"its timeout of {format_duration(job.timeout)} leaves it {left}")
    if node is not None and (node.ended_at is not None or node.expires_at <= now):
        text = f"node {where} that runs it was last heard of {format_duration(now - node.beat_at)} ago"
        todo = "" if node.ended_at else "paceline up: the next node to look gives it back to the queue"
        return _because(facts, Why.NODE_SILENT, "node silent", text, since=since, notes=tuple(notes), todo=todo)
    if node is not None and (quiet := _quiet(node, now)):
        notes.append(quiet)
    said = _progress(facts.fraction, facts.note)
    text = f"it has been running on {where} for {format_duration(now - since)}" + (f": {said}" if said else "")
    return _because(facts, Why.RUNNING, said, text, since=since, notes=tuple(notes))


def _waiting(facts: Facts, now: int) -> Explanation:
    text = f"it is suspended and holds nothing, until what it waits for has come{_in_brackets(facts.job.reason)}"
    return _because(facts, Why.WAITING, facts.job.reason or "", text, waits_for=_jobs(facts.unmet))


def _completed(facts: Facts, now: int) -> Explanation:
    job = facts.job
    tries = f" at start number {job.epoch}" if job.epoch > 1 else ""
    took = format_duration(max(0, (job.ended_at or now) - (job.started_at or job.ended_at or now)))
    return _because(facts, Why.COMPLETED, "", f"it completed{tries} after {took}", since=job.ended_at)


def _failed(facts: Facts, now: int) -> Explanation:
    job, failure = facts.job, facts.failure
    if job.reason == "dependency_failed":
        chain = failure.chain
        brief = f"j{chain[0]}: {failure.cause}" if chain else "dependency failed"
        text = failure.message or "a job that it depends on did not complete"
        todo = f"paceline retry j{chain[-1]}: this one follows by itself" if chain else ""
        return _because(facts, Why.DEPENDENCY_FAILED, brief, text, since=job.ended_at, waits_for=chain, todo=todo)
    said = f"{failure.type}: {failure.message}" if failure.type else (job.reason or "it failed")
    return _because(
        facts, Why.FAILED, said.partition("\n")[0], said, since=job.ended_at, notes=(_why_no_retry(facts),),
        todo=f"paceline show j{job.id}, then paceline retry j{job.id}",
    )  # fmt: skip


def _why_no_retry(facts: Facts) -> str:
    job, kind = facts.job, facts.failure.failure_class or "unknown"
    sentence = _GIVEN_UP.get(job.reason or "")
    if sentence:
        return f"not tried again: {sentence}"
    if kind not in COUNTED:
        return f"not tried again: failures of class {kind} never are"
    if not job.retries:
        return f"not tried again: class {kind} may be, but the job has no retries (retries=0)"
    return f"not tried again: all {job.retries} retries are used (class {kind})"


_GIVEN_UP = {
    WhyNot.TOO_MANY_TIMEOUTS.value: "it timed out too often",
    WhyNot.REPEATING.value: "it failed in the same way three times within a minute",
    WhyNot.CRASHED.value: "its process died too often",
}


def _cancelled(facts: Facts, now: int) -> Explanation:
    job = facts.job
    by = {
        "cancelled": "somebody cancelled it",
        "parent_cancelled": f"it was cancelled with its parent j{job.parent}",
        "evicted": "it was evicted: the queue was full and its rank the lowest",
    }.get(job.reason or "cancelled", f"it was cancelled: {job.reason}")
    return _because(
        facts, Why.CANCELLED, "" if job.reason == "cancelled" else (job.reason or ""), by, since=job.ended_at
    )


def _timed_out(facts: Facts, now: int) -> Explanation:
    job = facts.job
    if job.reason == "deadline":
        text = "its deadline passed " + ("before it was ever started" if not job.epoch else "before it was done")
    else:
        text = f"it ran longer than its timeout of {format_duration(job.timeout)}"
    return _because(facts, Why.TIMED_OUT, job.reason or "", text, since=job.ended_at, todo=f"paceline retry j{job.id}")


def _ended(reason: Callable[[Facts, int], Explanation]) -> Callable[[Facts, int], Explanation]:
    """An ended job whose code has not stopped yet still holds its place; that is the news about it."""

    def with_its_code(facts: Facts, now: int) -> Explanation:
        found = reason(facts, now)
        if facts.job.node is None:
            return found
        where = facts.holder.name if facts.holder else f"node {facts.job.node}"
        text = f"{found.text}; its code still runs on {where} and holds its place until it stops"
        notes = (*found.notes, "a plain function cannot be interrupted: it can look at ctx.cancelled and return")
        return found._replace(code=Why.STOPPING, brief="code still runs", text=text, notes=notes)

    return with_its_code


_BY_STATE: dict[State, Callable[[Facts, int], Explanation]] = {
    State.CREATED: _created,
    State.BLOCKED: _blocked,
    State.QUEUED: _queued,
    State.RUNNING: _running,
    State.WAITING: _waiting,
    State.COMPLETED: _ended(_completed),
    State.FAILED: _ended(_failed),
    State.CANCELLED: _ended(_cancelled),
    State.TIMED_OUT: _ended(_timed_out),
}


def _held_by(holders: Sequence[Holder], jobs: int, now: int) -> str:
    names = [f"j{one.job}{_holding(one, now)}" for one in holders[:NAMED]]
    return _list(names, jobs - NAMED) if names else "somebody"


def _holding(holder: Holder, now: int) -> str:
    if holder.state.ended:
        return f" ({holder.state.word}, its code still runs)"
    return f" for {format_duration(now - holder.since)}" if holder.since is not None and holder.since <= now else ""


def _progress(fraction: float | None, note: str | None) -> str:
    share = "" if fraction is None else f"{fraction:.0%}"
    return " ".join(part for part in (share, note or "") if part)


def _quiet(node: Host, now: int) -> str:
    silence = now - node.beat_at
    return f"node {node.name} was last heard of {format_duration(silence)} ago" if silence >= QUIET_AFTER else ""


def _start_a_node(origin: str) -> str:
    """Only a name that a person can use is worth proposing; `module:maker` stands for code inside a function."""
    base = origin.partition(":")[0]
    return f"start a node that has it: paceline up --app {base}" if base else "start a node that has it: paceline up"


def _jobs(prerequisites: Sequence[Prerequisite]) -> tuple[int, ...]:
    return tuple(one.job for one in prerequisites)


def _list(names: Sequence[str], more: int) -> str:
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _many(number: int) -> str:
    return f"{number:,}" + ("+" if number >= COUNTED_AHEAD else "")


def _in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""
