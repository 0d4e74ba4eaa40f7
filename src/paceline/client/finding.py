"""From what a person or a program says to what the store holds: ids, agents, and what is known of them."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from paceline.client.options import Defaults
from paceline.core.model import AgentRow, JobRow
from paceline.core.names import closest, shown
from paceline.core.scheduling import QueueClass
from paceline.errors import NotFound, UsageError
from paceline.store.protocol import Tx

SHOWN = 5


class Target(NamedTuple):
    """An agent as the door knows it: its number, what it assumes, and how it checks an input."""

    number: int
    name: str
    defaults: Defaults
    check: Callable[[object], str]


class Known(msgspec.Struct):
    """The part of a stored definition that matters to those who submit and ask."""

    needs: dict[str, int] = {}
    priority: int | None = None
    queue_class: int | None = None
    tenant: str | None = None
    retries: int = 0
    timeout: int = 3_600_000_000


_decode = msgspec.json.Decoder(Known).decode


def known_of(definition: str) -> Known:
    """What a stored definition says; one that another version wrote may say nothing that we understand."""
    try:
        return _decode(definition)
    except msgspec.DecodeError:
        return Known()


def row_of(tx: Tx, job: int) -> JobRow:
    """A job's row; for one that does not exist, an error that names its neighbours."""
    found = tx.jobs.rows([job])
    if not found:
        raise no_such_job(tx, job)
    return found[0]


def resolve_id(tx: Tx, text: str) -> int:
    """The job that `j42`, `42` or the unambiguous beginning of an id means."""
    digits = text.strip().removeprefix("j").removeprefix("J")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19 and digits[0] != "0"):
        raise UsageError(
            code="bad_job", what="this does not name a job", found=shown(text), allowed="an id such as j42 or 42",
            todo="`paceline ps --all` lists them",
        )  # fmt: skip
    found = tx.listing.starting_with(digits, SHOWN + 1)
    if len(found) == 1:
        return found[0]
    if not found:
        raise no_such_job(tx, int(digits))
    lines = [f"j{line.id} ({line.agent}, {line.state.word})" for line in tx.listing.by_ids(found[:SHOWN])]
    more = " and more" if len(found) > SHOWN else ""
    raise UsageError(
        code="ambiguous_id", what=f"several jobs begin with j{digits}", found=", ".join(lines) + more,
        todo="write more of the id",
    )  # fmt: skip


def no_such_job(tx: Tx, job: int) -> NotFound:
    """There is no such job; the nearest ids may be what was meant."""
    near = ", ".join(f"j{one}" for one in tx.listing.nearest(job))
    return NotFound(
        code="unknown_job", what=f"there is no job j{job}", allowed=f"the nearest: {near}" if near else "no job yet",
        todo="`paceline ps --all` lists them",
    )  # fmt: skip


def find_target(tx: Tx, name: str) -> Target:
    """The agent of that name, with the defaults of its stored definition."""
    found = find_agents(tx, name)
    if len(found) > 1:
        raise NotFound(
            code="ambiguous_agent", what=f"more than one agent is called {name}",
            found=", ".join(row.origin for row in found),
            todo="say whose: `--app` on the command line, the function itself in a program",
        )  # fmt: skip
    from paceline.payloads import encode  # late: who only looks at jobs does without

    return Target(found[0].id, name, defaults_of(found[0].definition), partial(encode, where=f"input of {name}"))


def find_agents(tx: Tx, name: str) -> list[AgentRow]:
    """Every agent of that name, one per origin; a name that nobody has registered is refused with what there is."""
    found = tx.lanes.agents_named(name)
    if found:
        return found
    known = list(dict.fromkeys(row.name for row in tx.lanes.agents()))
    likely = closest(name, known)
    raise NotFound(
        code="unknown_agent", what=f"no agent is called {shown(name)}",
        allowed=", ".join(known[:10]) or "none is registered yet",
        todo=f"did you mean {likely[0]}?" if likely else "start a node that has it: paceline up --app MODULE",
    )  # fmt: skip


def defaults_of(definition: str) -> Defaults:
    """What an agent's stored definition says where a caller says nothing."""
    said, usual = known_of(definition), Defaults()
    return Defaults(
        priority=usual.priority if said.priority is None else said.priority,
        queue_class=usual.queue_class if said.queue_class is None else QueueClass(said.queue_class),
        tenant=said.tenant or usual.tenant,
        retries=said.retries,
        timeout=said.timeout,
    )
