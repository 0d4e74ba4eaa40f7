"""Known-bad variants, planted in the processes of the rig only: each breaks one promise, and the rig must notice."""

import asyncio
import time
from collections.abc import Callable

from _chaos_work import GAP_SECONDS
from paceline.node import completer
from paceline.node.node import Node
from paceline.node.pump import Round
from paceline.store.postgres import PostgresConnection
from paceline.store.rooms.pools import PoolRoom
from paceline.store.rooms.watch import WatchRoom
from paceline.store.statements import Statements
from paceline.store.tx import Tx
from paceline.units.settle import Ends, settle


def complete_without_fence() -> None:
    """Whoever says that a job is done is believed, whatever its epoch and the job's state."""
    text = Statements.__getitem__
    fence = "and jobs.state = 3 and jobs.epoch = r.epoch"

    def unfenced(statements: Statements, name: str) -> str:
        found = text(statements, name)
        if name != "jobs.complete":
            return found
        if found.count(fence) != 1:
            raise SystemExit("the control does not know the completion any more")
        return found.replace(fence, "")

    Statements.__getitem__ = unfenced  # type: ignore[method-assign]


def settle_after_the_commit() -> None:
    """Dependents are told by a transaction of its own, a moment after the one that wrote the end."""
    waiting: list[Ends] = []
    running: set[asyncio.Task[object]] = set()
    take_in = Node._take_in

    def postpone(tx: Tx, ended: Ends) -> Ends:
        waiting.append(ended)
        return []

    async def settle_soon(node: Node, ends: Ends) -> None:
        await asyncio.sleep(GAP_SECONDS)
        await node._store.transact(lambda tx: settle(tx, ends))
        node.poke()

    def then_settle(node: Node, round: Round) -> None:
        take_in(node, round)
        while waiting:
            task = asyncio.get_running_loop().create_task(settle_soon(node, waiting.pop()))
            running.add(task)
            task.add_done_callback(running.discard)

    completer.settle = postpone  # type: ignore[attr-defined]
    Node._take_in = then_settle  # type: ignore[method-assign,assignment]


def admit_without_usage() -> None:
    """Nobody looks at what is held before admitting more."""
    WatchRoom.held_by_lane = lambda self: []  # type: ignore[method-assign]
    PoolRoom.held = lambda self: {}  # type: ignore[method-assign]


def hold_no_guard() -> None:
    """Who decides over a set of rows holds none of them; only a database where writers meet can tell."""
    text = Statements.__getitem__

    def unguarded(statements: Statements, name: str) -> str:
        found = text(statements, name)
        if name.startswith("guards."):
            return found.removesuffix(" for update").removesuffix(" for share")
        return found

    commit = PostgresConnection.commit

    def commit_later(connection: PostgresConnection, proof: int | None = None) -> None:
        time.sleep(GAP_SECONDS / 2)
        commit(connection, proof)

    def hold_nothing(connection: PostgresConnection, sql: str, bindings: object = (), *, ending: bool = False) -> None:
        """Not even the end of the log."""

    Statements.__getitem__ = unguarded  # type: ignore[method-assign]
    PostgresConnection.lock = hold_nothing  # type: ignore[method-assign,assignment]
    PostgresConnection.commit = commit_later  # type: ignore[method-assign,assignment]


def in_the_submitter() -> None:
    """Acknowledging before the commit happens in the submitter."""


CONTROLS: dict[str, Callable[[], None]] = {
    "fence": complete_without_fence,
    "settle": settle_after_the_commit,
    "limit": admit_without_usage,
    "ack": in_the_submitter,
    "guards": hold_no_guard,
}
"""What must be found: doubled by `fence`, repaired or stuck by `settle`, over_limit by `limit`, lost by `ack`; and on
Postgres over_limit, repaired or stuck by `guards`."""
