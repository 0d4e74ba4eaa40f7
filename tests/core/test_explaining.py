"""Every job can be explained: which reason wins, what it names, and what it advises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.durations import HOUR, MINUTE
from paceline.core.explaining import explain, stands_before
from paceline.core.explanation import (
    COUNTED_AHEAD,
    Explanation,
    Facts,
    Failure,
    Holder,
    Host,
    Pool,
    Prerequisite,
    Why,
)
from paceline.core.lifecycle import State
from paceline.core.model import SECOND, JobRow, Wants
from paceline.core.scheduling import QueueClass, effective, rank

NOW = 1_000_000 * SECOND
HOST = Host("alpha", slots=10, held=1, beat_at=NOW, expires_at=NOW + MINUTE)
ROW = JobRow(
    id=42, state=State.QUEUED, lane=1, root=42, parent=None, session=None, epoch=0, attempt=0, crashes=0, timeouts=0,
    snoozes=0, retries=0, timeout=HOUR, node=None, ready_at=NOW - SECOND, due_at=None, deadline=None,
    created_at=NOW - SECOND, started_at=None, ended_at=None, seq=1, last_event=1, reason=None,
)  # fmt: skip
FACTS = Facts(
    ROW, QueueClass.STANDARD, 50, "writer", "app.writers", NOW - SECOND, nodes=1, serving=(HOST,), ahead=0, in_lane=0
)


def why(facts: Facts = FACTS, /, **row: object) -> Explanation:
    return explain(facts._replace(job=ROW._replace(**row)), NOW)  # type: ignore[arg-type]


def ended(state: State, **row: object) -> dict[str, object]:
    return {"state": state, "epoch": 1, "started_at": NOW - 3 * SECOND, "ended_at": NOW - SECOND, **row}


@pytest.mark.parametrize("state", State)
def test_every_state_has_an_explanation_that_fits_on_a_line_of_a_listing(state: State) -> None:
    row = ended(state) if state.ended else {"state": state}
    found = why(**row)
    assert found.text
    assert "\n" not in found.brief
    assert str(found).startswith(f"j42 {state.word.replace('_', ' ')}: ")


def test_a_staged_job_waits_for_the_whole_of_its_submission() -> None:
    assert why(state=State.CREATED).code is Why.SUBMISSION_OPEN
    assert why(FACTS._replace(accepted=True), state=State.CREATED).code is Why.SUBMISSION_ACCEPTED


def test_a_blocked_job_names_what_must_complete_and_what_may_just_end() -> None:
    unmet = (
        Prerequisite(7, State.RUNNING, Wants.COMPLETED),
        Prerequisite(8, State.QUEUED, Wants.FINISHED),
    )
    found = why(FACTS._replace(unmet=unmet, unmet_count=2), state=State.BLOCKED)
    assert found.code is Why.DEPENDENCIES
    assert found.text == "first j7 (running) must complete, j8 (queued) must end"
    assert (found.waits_for, found.since) == ((7, 8), NOW - SECOND)


def test_of_many_prerequisites_a_few_are_named_and_the_others_counted() -> None:
    unmet = tuple(Prerequisite(job, State.RUNNING, Wants.COMPLETED) for job in range(1, 51))
    found = why(FACTS._replace(unmet=unmet, unmet_count=10_000), state=State.BLOCKED)
    assert found.text.endswith("and 9,997 more")
    assert found.brief == "after j1, j2 and 9,998 more"


def test_the_job_at_the_end_of_the_line_is_named_with_its_reason() -> None:
    unmet = (Prerequisite(7, State.BLOCKED, Wants.COMPLETED),)
    facts = FACTS._replace(unmet=unmet, unmet_count=1, at_root=(3, "queued, no node is running"))
    assert why(facts, state=State.BLOCKED).notes == ("in the end it waits for j3: queued, no node is running",)


def test_the_predecessor_in_a_session_is_a_reason_of_its_own() -> None:
    unmet = (Prerequisite(41, State.RUNNING, Wants.FINISHED, session=True),)
    assert why(FACTS._replace(unmet=unmet, unmet_count=1), state=State.BLOCKED).code is Why.SESSION


def test_when_all_prerequisites_have_ended_the_job_is_about_to_be_told() -> None:
    unmet = (Prerequisite(7, State.COMPLETED, Wants.COMPLETED),)
    assert why(FACTS._replace(unmet=unmet, unmet_count=1), state=State.BLOCKED).code is Why.SETTLING


def test_a_delayed_job_says_when_it_may_start() -> None:
    found = why(due_at=NOW + 90 * SECOND)
    assert (found.code, found.brief, found.until) == (Why.DELAYED, "in 1m 30s", NOW + 90 * SECOND)


def test_a_job_in_its_back_off_names_the_error_and_what_the_retry_costs() -> None:
    failed = {"epoch": 1, "due_at": NOW + 2 * SECOND, "retries": 3}
    counted = why(FACTS._replace(failure=Failure("OSError", "reset")), **failed, attempt=1, reason="transient")
    assert counted.code is Why.BACKING_OFF
    assert counted.text == "OSError: reset ended its last start; it is tried again in 2 s (transient, retry 1 of 3)"
    assert "costs no retry" in why(**failed, reason="rate_limit").text


def test_a_delay_that_is_over_is_no_reason_any_more() -> None:
    assert why(due_at=NOW).code is Why.IN_LINE


def test_without_any_node_the_advice_is_the_command_that_starts_one() -> None:
    found = why(FACTS._replace(nodes=0, serving=()))
    assert (found.code.value, found.brief) == ("no_node_for_agent", "no node for its agent")
    assert found.text == "no node is running; it needs one that has agent writer from app.writers"
    assert found.todo == "start a node that has it: paceline up --app app.writers"


def test_a_job_that_waits_for_the_node_it_came_through_says_so() -> None:
    full, idle = HOST._replace(held=10), HOST._replace(name="beta", takes=False)
    found = why(FACTS._replace(nodes=2, serving=(full, idle), home="alpha"))
    assert (found.code.value, found.brief) == ("pinned", "pinned to alpha")
    assert found.text == (
        "it waits for node alpha, through which it was submitted, and every slot there is used; "
        "the nodes that have room take only what is submitted through themselves (work_sharing = false)"
    )
    assert "agent writer is not there" in why(FACTS._replace(nodes=2, serving=(idle,), home="alpha")).text
    assert why(FACTS._replace(serving=(HOST, idle), home="alpha")).code is Why.IN_LINE
    assert why(FACTS._replace(serving=(full, idle._replace(held=10)), home="alpha")).code is Why.SLOTS_FULL


def test_a_node_with_a_namesake_from_another_origin_is_pointed_out() -> None:
    found = why(FACTS._replace(nodes=2, serving=(), namesakes=(("beta", "/home/me/other.py"),)))
    assert found.text == "no live node has agent writer from app.writers (2 nodes without it)"
    assert found.notes == (
        "node beta has another agent writer, from /home/me/other.py: it never takes this one's jobs",
    )


def test_code_made_inside_a_function_is_started_by_its_module() -> None:
    assert why(FACTS._replace(origin="app.writers:make", serving=())).todo.endswith("--app app.writers")


def test_an_agent_at_its_limit_names_who_holds_it_and_since_when() -> None:
    holders = (Holder(7, NOW - 200 * SECOND), Holder(9, NOW - 10 * SECOND, State.CANCELLED))
    found = why(FACTS._replace(pools=(Pool("agent:writer", 1, 2, 2, holders),), in_lane=4, ahead=6))
    assert found.code is Why.AGENT_LIMIT
    assert found.text == (
        "agent writer runs 2 of at most 2 jobs at once: j7 for 3m 20s, j9 (cancelled, its code still runs)"
    )
    assert (found.held_by, found.position, found.ahead) == (holders, 5, 6)


def test_a_held_lock_and_a_full_pool_are_told_apart() -> None:
    holder = (Holder(7, NOW),)
    assert why(FACTS._replace(pools=(Pool("lock:deploy", 1, 1, 1, holder),))).code is Why.LOCK_HELD
    found = why(FACTS._replace(pools=(Pool("gpu", 2, 3, 2, holder),)))
    assert (found.code, found.brief) == (Why.POOL_FULL, "gpu 2/3")


def test_a_demand_above_the_limit_says_that_waiting_cannot_help() -> None:
    found = why(FACTS._replace(pools=(Pool("gpu", 4, 3, 0),)))
    assert found.code is Why.NEVER_FITS
    assert "waiting cannot help" in found.text


def test_full_nodes_are_named_with_their_slots() -> None:
    found = why(FACTS._replace(serving=(HOST._replace(held=10),)))
    assert found.code is Why.SLOTS_FULL
    assert found.text.endswith("alpha 10/10")


def test_a_missing_node_wins_over_a_full_pool() -> None:
    assert why(FACTS._replace(serving=(), pools=(Pool("agent:writer", 1, 1, 1),))).code is Why.NO_NODE


def test_a_job_that_nothing_holds_back_is_next_or_says_how_many_are_not() -> None:
    assert why().brief == "next"
    assert why(FACTS._replace(ahead=1)).text == "one ready job stands before it"
    assert why(FACTS._replace(ahead=COUNTED_AHEAD)).text == "more than 1,000 ready jobs stand before it"


def test_the_rank_says_what_age_has_made_of_it() -> None:
    assert why().notes == ("its rank: standard, priority 50",)
    aged = why(ready_at=NOW - 80 * SECOND).notes
    assert aged == ("its rank: standard, priority 50; after 1m 20s it counts as interactive, priority 25",)


def test_a_node_that_has_gone_quiet_deserves_a_word() -> None:
    quiet = HOST._replace(beat_at=NOW - 45 * SECOND)
    assert "node alpha was last heard of 45 s ago" in why(FACTS._replace(serving=(quiet,))).notes


def test_a_running_job_says_where_since_when_and_how_far() -> None:
    facts = FACTS._replace(holder=HOST, fraction=0.4, note="reading")
    found = why(facts, state=State.RUNNING, node=1, epoch=1, started_at=NOW - 5 * SECOND)
    assert (found.code, found.since) == (Why.RUNNING, NOW - 5 * SECOND)
    assert found.text == "it has been running on alpha for 5 s: 40% reading"
    assert "its timeout of 1h leaves it 59m 55s" in found.notes


def test_a_running_job_whose_node_is_gone_says_so() -> None:
    gone = HOST._replace(beat_at=NOW - 70 * SECOND, expires_at=NOW - 10 * SECOND)
    found = why(FACTS._replace(holder=gone), state=State.RUNNING, node=1, epoch=1, started_at=NOW - MINUTE)
    assert found.code is Why.NODE_SILENT
    assert "last heard of 1m 10s ago" in found.text


@pytest.mark.parametrize(
    ("failure_class", "row", "note"),
    [
        ("permanent", {}, "not tried again: failures of class permanent never are"),
        ("transient", {}, "not tried again: class transient may be, but the job has no retries (retries=0)"),
        ("transient", {"retries": 2, "attempt": 2}, "not tried again: all 2 retries are used (class transient)"),
        ("timeout", {"reason": "repeating"}, "not tried again: it failed in the same way three times within a minute"),
        ("timeout", {"reason": "too_many_timeouts"}, "not tried again: it timed out too often"),
    ],
)  # fmt: skip
def test_a_failed_job_says_why_it_was_not_tried_again(failure_class: str, row: dict[str, object], note: str) -> None:
    facts = FACTS._replace(failure=Failure("OSError", "no\nroute", failure_class))
    found = why(facts, **ended(State.FAILED, **row))
    assert (found.brief, found.text, found.notes) == ("OSError: no", "OSError: no\nroute", (note,))


def test_a_job_that_failed_with_another_names_the_chain_and_the_one_to_retry() -> None:
    failure = Failure(
        "DependencyFailed", "dependency j7 ← j3 ended: ValueError: boom", chain=(7, 3), cause="ValueError: boom"
    )
    found = why(FACTS._replace(failure=failure), **ended(State.FAILED, reason="dependency_failed"))
    assert (found.code, found.waits_for, found.brief) == (Why.DEPENDENCY_FAILED, (7, 3), "j7: ValueError: boom")
    assert found.todo == "paceline retry j3: this one follows by itself"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"reason": "cancelled"}, "somebody cancelled it"),
        ({"reason": "parent_cancelled", "parent": 40}, "it was cancelled with its parent j40"),
        ({"reason": "evicted"}, "it was evicted: the queue was full and its rank the lowest"),
    ],
)
def test_a_cancelled_job_says_by_whom(row: dict[str, object], text: str) -> None:
    assert why(**ended(State.CANCELLED, **row)).text == text


def test_a_deadline_and_a_timeout_are_told_apart() -> None:
    assert why(**ended(State.TIMED_OUT, reason="timeout")).text == "it ran longer than its timeout of 1h"
    assert "before it was ever started" in why(**ended(State.TIMED_OUT, reason="deadline", epoch=0)).text


def test_an_ended_job_whose_code_still_runs_says_that_it_holds_its_place() -> None:
    found = why(FACTS._replace(holder=HOST), **ended(State.CANCELLED, reason="cancelled", node=1))
    assert (found.code, found.brief) == (Why.STOPPING, "code still runs")
    assert "alpha" in found.text


AGES = st.integers(min_value=0, max_value=300 * SECOND)
KINDS = st.tuples(st.sampled_from(QueueClass), st.sampled_from([0, 25, 50, 60, 75, 100]))


@given(mine=st.tuples(KINDS, AGES), lane=KINDS, ages=st.lists(AGES, max_size=12))
def test_the_border_in_a_lane_parts_those_who_go_first_from_all_others(
    mine: tuple[tuple[QueueClass, int], int], lane: tuple[QueueClass, int], ages: list[int]
) -> None:
    (queue_class, priority), age = mine
    ready_at, job = NOW - age, 500
    me = (*effective(queue_class, priority, ready_at, NOW), ready_at, job)
    border = stands_before(*lane, me, NOW)
    for place, other in enumerate([*ages, age]):
        key = (NOW - other, 495 + place)
        assert (key < border) == (rank(*lane, *key, NOW) < rank(queue_class, priority, ready_at, job, NOW))
