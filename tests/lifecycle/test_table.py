"""The law of a job's life, as a table."""

from itertools import product
from pathlib import Path

import pytest

from paceline.core.lifecycle import ARROWS, ENDED, OPEN, Happening, State, diagram, sources_of, target_of

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"
S, H = State, Happening

LEGAL = {
    S.CREATED: {H.PUBLISH_READY: S.QUEUED, H.PUBLISH_BLOCKED: S.BLOCKED},
    S.BLOCKED: {H.UNBLOCK: S.QUEUED, H.DEPENDENCY_FAILED: S.FAILED, H.CANCEL: S.CANCELLED, H.TIME_OUT: S.TIMED_OUT},
    S.QUEUED: {H.CLAIM: S.RUNNING, H.FAIL: S.FAILED, H.CANCEL: S.CANCELLED, H.TIME_OUT: S.TIMED_OUT},
    S.RUNNING: {
        H.COMPLETE: S.COMPLETED, H.FAIL: S.FAILED, H.RETRY: S.QUEUED, H.GIVE_BACK: S.QUEUED, H.SUSPEND: S.WAITING,
        H.CANCEL: S.CANCELLED, H.TIME_OUT: S.TIMED_OUT,
    },
    S.WAITING: {H.WAKE: S.QUEUED, H.CANCEL: S.CANCELLED, H.TIME_OUT: S.TIMED_OUT},
    S.COMPLETED: {},
    S.FAILED: {H.REPLAY: S.QUEUED, H.REVIVE: S.BLOCKED},
    S.CANCELLED: {H.REPLAY: S.QUEUED},
    S.TIMED_OUT: {H.REPLAY: S.QUEUED},
}  # fmt: skip
"""Written out a second time on purpose: a change of the law has to be meant."""


@pytest.mark.parametrize(("state", "happening"), list(product(State, Happening)), ids=lambda one: one.name.lower())
def test_each_thing_that_can_happen_in_each_state_leads_where_the_law_says(state: State, happening: Happening) -> None:
    assert target_of(state, happening) is LEGAL[state].get(happening)
    assert (state in sources_of(happening)) is (happening in LEGAL[state])


def test_no_arrow_is_written_twice_and_each_has_a_reason_of_its_own_source() -> None:
    assert len({(arrow.source, arrow.happening) for arrow in ARROWS}) == len(ARROWS)
    assert all(len(arrow.reason.split()) >= 3 for arrow in ARROWS)


def test_the_numbers_of_states_never_change() -> None:
    assert {state.word: int(state) for state in State} == {
        "created": 0, "blocked": 1, "queued": 2, "running": 3, "waiting": 4,
        "completed": 10, "failed": 11, "cancelled": 12, "timed_out": 13,
    }  # fmt: skip


def test_states_are_open_or_ended_and_what_is_completed_is_final() -> None:
    assert set(State) == OPEN | ENDED
    assert not OPEN & ENDED
    assert all(state.ended is (state in ENDED) for state in State)
    assert not LEGAL[S.COMPLETED]


def test_every_state_is_reached_and_from_every_open_state_there_is_an_end() -> None:
    def reachable(start: State) -> set[State]:
        found, frontier = {start}, [start]
        while frontier:
            state = frontier.pop()
            new = {arrow.target for arrow in ARROWS if arrow.source is state} - found
            found |= new
            frontier += new
        return found

    assert reachable(S.CREATED) == set(State)
    for state in OPEN:
        assert {S.COMPLETED, S.FAILED, S.CANCELLED, S.TIMED_OUT} <= reachable(state)


def test_the_picture_shows_every_arrow_once() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    for arrow in ARROWS:
        assert lines.count(f"    {arrow.source.word} --> {arrow.target.word}: {arrow.happening.value}") == 1
    assert len(lines) == 2 + len(ARROWS) + len(ENDED)


def test_the_architecture_shows_the_picture_of_this_table() -> None:
    blocks = ARCHITECTURE.read_text(encoding="utf-8").split("```mermaid\n")[1:]
    pictures = [block.partition("\n```")[0] for block in blocks]
    assert diagram() in pictures, f"put this into {ARCHITECTURE.name}:\n```mermaid\n{diagram()}\n```"
