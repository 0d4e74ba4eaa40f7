"""What somebody does to jobs, as units of work."""

from typing import Any

from paceline.core.completion import Ended, Ending
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.model import Claimed
from paceline.node.dispatcher import Dispatcher
from paceline.node.pools import Served
from paceline.store.protocol import Tx, Unit
from paceline.units.control import cancel
from paceline.units.leading import leads
from paceline.units.reap import end_node, give_back_jobs
from paceline.units.settle import end_open, settle
from paceline.units.submit import submit
from store.world import TERM, World, raised, room_for_all


def submits(world: World, **terms: Any) -> Unit[list[int]]:
    wish = world.wish(**terms)
    return lambda tx: submit(tx, [wish], room_for_all)


def completes(world: World, job: Claimed) -> Unit[Any]:
    return lambda tx: world.completer.finish(tx, [Ended(job, Ending.RETURNED, "2")], leased=True)


def fails(world: World, job: Claimed, failure: FailureClass = FailureClass.PERMANENT) -> Unit[Any]:
    return lambda tx: world.completer.finish(tx, [raised(job, failure)], leased=True)


def cancels(job: int) -> Unit[Any]:
    return lambda tx: cancel(tx, job, "cancelled")


def times_out(job: int) -> Unit[Any]:
    def end(tx: Tx) -> list[tuple[int, State]]:
        ended = end_open(tx, [job], State.TIMED_OUT, "deadline")
        return ended + settle(tx, ended)

    return end


def gives_back(node: int) -> Unit[int]:
    def reap(tx: Tx) -> int:
        end_node(tx, node, "process_gone")
        return give_back_jobs(tx, node, "node_died")

    return reap


def dispatches(world: World, *, limited: bool = False, needs: dict[str, int] | None = None) -> Unit[list[int]]:
    dispatcher = Dispatcher()
    dispatcher.serve(world.agent, Served(limited, needs or {}))
    return lambda tx: [start.job.id for start in dispatcher.claim(tx, world.node, 10, tx.company.look(world.node))]


def leads_and_reaps(world: World, task: str, dead: int) -> Unit[tuple[bool, bool]]:
    """(leads, ended): does for all what only one does, if it is the one; ends the life of a node that is late."""

    def sweep(tx: Tx) -> tuple[bool, bool]:
        leading = leads(tx, task, world.node, TERM // 2)
        return leading, leading and end_node(tx, dead, "lease_expired", expired_by=tx.now)

    return sweep
