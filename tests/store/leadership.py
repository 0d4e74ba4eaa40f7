"""Pairs of nodes that would lead at once: whoever wins leads alone, and what it does is done once."""

from paceline.core.leasing import Lead
from paceline.store.protocol import Tx
from paceline.units.reap import end_node
from store.acts import leads_and_reaps
from store.racing import Race, Scenario
from store.world import TERM, World


def reaping(one: World, other: World) -> tuple[str, int]:
    """A task that nobody has led so far, and a node that is late; the two that may lead are not."""
    dead = one.do(lambda tx: tx.nodes.add("late", "p", "1", 1, tx.now, tx.now))
    return f"reaping {dead}", dead


def ended_once_by_a_leader(one: World, dead: int, *answers: tuple[bool, bool]) -> None:
    assert [ended for _, ended in answers].count(True) == 1
    assert all(leading for leading, ended in answers if ended)
    found = one.do(lambda tx: tx.reasons.node(dead))
    assert found is not None
    assert found.ended_at is not None


def lead_and_lead(one: World, other: World) -> Race:
    task, dead = reaping(one, other)

    def law(*answers: tuple[bool, bool]) -> None:
        assert [leading for leading, _ in answers].count(True) == 1
        ended_once_by_a_leader(one, dead, *answers)
        lead = one.do(lambda tx: tx.leaders.lead(task))
        assert lead is not None
        assert (lead.term, lead.node) == (1, one.node if answers[0][0] else other.node)

    return Race(leads_and_reaps(one, task, dead), leads_and_reaps(other, task, dead), law)


def take_over_and_take_over(one: World, other: World) -> Race:
    task, dead = reaping(one, other)
    one.do(lambda tx: tx.leaders.hold(task, None, Lead(dead, 3, tx.now)))

    def law(*answers: tuple[bool, bool]) -> None:
        assert [leading for leading, _ in answers].count(True) == 1
        ended_once_by_a_leader(one, dead, *answers)
        lead = one.do(lambda tx: tx.leaders.lead(task))
        assert lead is not None
        assert lead.term == 4

    return Race(leads_and_reaps(one, task, dead), leads_and_reaps(other, task, dead), law)


def go_on_leading_and_take_over(one: World, other: World) -> Race:
    """The clock stands at the last moment of a lead for its leader, and behind it for the other."""
    task, dead = reaping(one, other)
    held = Lead(one.node, 3, one.clock.now() + 1)
    one.do(lambda tx: tx.leaders.hold(task, None, held))

    def takes_over(tx: Tx) -> tuple[bool, bool]:
        seen = tx.leaders.lead(task)
        mine = tx.leaders.hold(task, held, Lead(other.node, 4, tx.now + TERM)) if seen == held else False
        return mine, mine and end_node(tx, dead, "lease_expired", expired_by=tx.now)

    def law(*answers: tuple[bool, bool]) -> None:
        assert [leading for leading, _ in answers].count(True) == 1
        ended_once_by_a_leader(one, dead, *answers)
        lead = one.do(lambda tx: tx.leaders.lead(task))
        assert lead is not None
        assert (lead.node, lead.term) == ((one.node, 3) if answers[0][0] else (other.node, 4))

    return Race(leads_and_reaps(one, task, dead), takes_over, law)


def reap_of_an_old_leader_and_of_its_successor(one: World, other: World) -> Race:
    task, dead = reaping(one, other)
    one.do(lambda tx: tx.leaders.hold(task, None, Lead(one.node, 3, tx.now + TERM)))
    one.do(lambda tx: tx.nodes.end(one.node, tx.now, "process_gone"))

    def law(old: tuple[bool, bool], new: tuple[bool, bool]) -> None:
        assert (old, new) == ((False, False), (True, True))
        ended_once_by_a_leader(one, dead, old, new)

    return Race(leads_and_reaps(one, task, dead), leads_and_reaps(other, task, dead), law)


LEADERSHIP: tuple[Scenario, ...] = (
    lead_and_lead, take_over_and_take_over, go_on_leading_and_take_over, reap_of_an_old_leader_and_of_its_successor,
)  # fmt: skip
