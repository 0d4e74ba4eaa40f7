"""Guard rows: what may be held, by whom, and what the holder may rely on; the meetings show what they are good for."""

from paceline.core.lifecycle import State
from paceline.store.protocol import Tx
from store.world import World


def test_rows_that_are_held_are_the_newest_and_unknown_ones_are_left_out(world: World) -> None:
    first, second = world.jobs(2)
    world.claim(first)
    held = world.do(lambda tx: tx.guards.rows([second, first, 999]))
    assert [(row.id, row.state) for row in held] == [(first, State.RUNNING), (second, State.QUEUED)]


def test_everything_may_be_held_at_once_twice_and_when_there_is_nothing(world: World) -> None:
    parent = world.running(session="s")
    child = world.job(parent=parent.id)
    behind = world.job(session="s")
    world.cancel(behind)

    def hold(tx: Tx) -> int:
        for jobs in ([child, parent.id], [], [child, 999]):
            tx.guards.limits([world.agent, 999])
            tx.guards.pools({"lock:a", "gpu"} if jobs else set())
            tx.guards.rows(jobs)
            tx.guards.jobs(jobs)
            tx.guards.parents(jobs)
            tx.guards.open_before(behind)
        return len(tx.jobs.rows([child, parent.id, behind]))

    assert world.do(hold) == 3


def test_numbers_of_one_transaction_rise_and_are_given_once(world: World) -> None:
    def reserve(tx: Tx) -> list[int]:
        return [*tx.jobs.reserve(2), *tx.jobs.reserve(1)]

    numbers = world.do(reserve)
    assert numbers == sorted(set(numbers))
