"""`paceline submit`, `wait`, `cancel`, `retry` and `dead`: what is done to jobs, and the exit codes that say so."""

import io
import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Enter
from cli.scenes import HOSTILE, after_looks, assert_harmless, fail_with
from cli.scenes import scene as scene
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.scheduling import QueueClass
from store.world import World, newest_job

AGENTS = """
from paceline import agent

@agent(max_concurrency=2, retries=3)
async def cli_double(n: int) -> int:
    return 2 * n
"""


def row_of(scene: World, job: int) -> tuple[State, int]:
    row = scene.row(job)
    return row.state, row.retries


def test_submit_prints_the_id_alone_and_the_job_is_in_the_store(scene: World, enter: Enter) -> None:
    assert enter("submit", "worker", '{"n": 1}') == (0, "j1\n", "")
    assert scene.state(1) is State.QUEUED
    assert json.loads(scene.do(lambda tx: tx.outcomes.input(1))) == {"n": 1}


def test_every_option_of_a_submission_reaches_the_job(scene: World, enter: Enter) -> None:
    scene.jobs(2)
    words = (
        "--priority high --queue-class interactive --tenant acme --after 1 --after j2:finished --key k --delay 2s"
        " --timeout 1m --deadline 1h --retries 2 --session chat --parent 2"
    )
    assert enter("submit", "worker", "1", *words.split()).out == "j3\n"
    row = scene.row(3)
    lane = scene.do(lambda tx: tx.reasons.agent_of_lane(row.lane))
    assert (lane.queue_class, lane.priority) == (QueueClass.INTERACTIVE, 25)
    assert (row.retries, row.timeout, row.parent, row.state) == (2, 60_000_000, 2, State.BLOCKED)
    assert row.due_at is not None
    assert row.deadline is not None
    edges = scene.do(lambda tx: tx.edges.before(3))
    assert [(edge.dependency, edge.wants.name) for edge in edges] == [(1, "COMPLETED"), (2, "FINISHED")]
    assert scene.do(lambda tx: tx.reasons.names(3, lane.tenant, lane.agent)) == ("k", "chat")


def test_the_same_key_answers_the_same_job_and_another_input_is_a_conflict(scene: World, enter: Enter) -> None:
    assert enter("submit", "worker", "1", "--key", "k").out == "j1\n"
    again = enter("submit", "worker", "1", "--key", "k")
    assert (again.code, again.out) == (0, "j1\n")
    assert "the key was used before" in again.err
    assert json.loads(enter("submit", "worker", "1", "--key", "k", "-o", "json").out)["new"] is False
    other = enter("submit", "worker", "2", "--key", "k")
    assert (other.code, other.out) == (4, "")
    assert "key_conflict" in other.err


def test_a_file_with_the_agent_makes_the_store_and_says_that_a_node_is_missing(enter: Enter, folder: Path) -> None:
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
    found = enter("submit", "agents.py:cli_double", "21")
    assert (found.code, found.out) == (0, "j1\n")
    assert "no node is running" in found.err
    assert f"paceline up --app {folder / 'agents.py'}" in found.err
    by_name = enter("submit", "cli_double", "22")
    assert by_name.out == "j2\n"
    assert json.loads(enter("show", "2", "-o", "json").out)["retries"] == 3, "defaults of the definition hold"
    assert enter("--app", "agents.py", "submit", "cli_double", "1").out == "j3\n"


def test_with_its_code_at_hand_an_input_is_checked_before_anything_is_written(enter: Enter, folder: Path) -> None:
    (folder / "agents.py").write_text(AGENTS, encoding="utf-8")
    found = enter("submit", "agents.py:cli_double", '"x"')
    assert (found.code, found.out) == (2, "")
    assert "input_invalid" in found.err
    assert enter("ps", "--all", "-o", "json").out == "[]\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["werker", "1"], 3, "did you mean worker?"),
        (["agents.py", "1"], 2, "which function of this file?"),
        (["missing.py:f", "1"], 3, "no_such_file"),
        (["worker", "1", "--priority", "101"], 2, "bad_priority"),
        (["worker", "1", "--priority", "soon"], 2, "bad_priority"),
        (["worker", "1", "--queue-class", "slow"], 2, "interactive, standard, batch"),
        (["worker", "1", "--delay", "5"], 2, "has no unit"),
        (["worker", "1", "--timeout", "-1s"], 2, "is negative"),
        (["worker", "1", "--retries", "-1"], 2, "bad_retries"),
        (["worker", "1", "--tenant", ""], 2, "bad_name"),
        (["worker", "1", "--after", "j99"], 3, "unknown_job"),
        (["worker", "1", "--after", "1:soon"], 2, "bad_dependency"),
        (["worker", "1", "--parent", "2"], 4, "parent_ended"),
        (["worker", "@missing.json"], 3, "no_such_file"),
        (["worker", "{bad json"], 2, "bad_json"),
        (["worker", '{"a": NaN}'], 2, "bad_json"),
        (["worker", '{"a": "\\ud800"}'], 2, "bad_json"),
        (["worker", "1", "--nonsense"], 2, "no option"),
        ([], 2, "AGENT is missing"),
    ],
)
def test_a_submission_that_cannot_be_is_refused_and_nothing_is_written(
    scene: World, enter: Enter, words: list[str], code: int, said: str
) -> None:
    scene.job()
    scene.cancel(scene.job())
    found = enter("submit", *words)
    assert (found.code, found.out) == (code, "")
    assert said in found.err
    assert scene.do(newest_job) == 2


def test_a_full_queue_refuses(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.jobs(3)
    monkeypatch.setenv("PACELINE_MAX_PENDING", "3")
    found = enter("submit", "worker", "1")
    assert (found.code, found.out) == (4, "")
    assert "queue_full" in found.err


def test_the_input_may_come_from_a_file_a_pipe_or_be_plain_text(
    scene: World, enter: Enter, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "in.json").write_text('{"from": "file"}', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1, 2]")))
    for words in (["@in.json"], ["-"], ["plain words"], []):
        assert enter("submit", "worker", *words).code == 0
    inputs = [json.loads(scene.do(lambda tx, job=job: tx.outcomes.input(job))) for job in (1, 2, 3, 4)]  # type: ignore[misc]
    assert inputs == [{"from": "file"}, [1, 2], "plain words", None]


def test_submit_and_wait_prints_the_result(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    after_looks(monkeypatch, "paceline.cli.jobs", lambda: scene.complete(scene.claim(1)[0], '{"a":1}'))
    found = enter("submit", "worker", "1", "--wait")
    assert (found.code, json.loads(found.out), found.err) == (0, {"a": 1}, "j1\n")


def test_submit_and_wait_tells_a_failure_by_its_exit_code(
    scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_looks(monkeypatch, "paceline.cli.jobs", lambda: fail_with(scene, scene.claim(1)[0], HOSTILE))
    found = enter("submit", "worker", "1", "--wait")
    assert (found.code, found.out) == (1, "")
    assert_harmless(found.err)


def test_wait_ends_when_all_have_ended(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = scene.running(), scene.running()
    after_looks(monkeypatch, "paceline.cli.jobs", lambda: scene.complete(first), lambda: scene.complete(second))
    assert enter("wait", "1", "2") == (0, "j1 completed\nj2 completed\n", "")


def test_wait_any_ends_with_the_first(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    _, second = scene.running(), scene.running()
    after_looks(monkeypatch, "paceline.cli.jobs", lambda: scene.complete(second))
    assert enter("wait", "1", "2", "--any") == (0, "j2 completed\n", "")


def test_wait_tells_failure_and_patience_apart(scene: World, enter: Enter) -> None:
    job = scene.running()
    late = enter("wait", "1", "--timeout", "1ms")
    assert (late.code, late.out) == (124, "j1 running\n")
    fail_with(scene, job, "no")
    failed = enter("wait", "1", "1", "-o", "json")
    assert failed.code == 1
    assert json.loads(failed.out) == [{"id": "j1", "state": "failed", "detail": "ValueError: no"}]


def test_ctrl_c_ends_the_waiting_and_not_the_job(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.running()
    after_looks(monkeypatch, "paceline.cli.jobs")
    assert enter("wait", "1") == (130, "", "")
    assert scene.state(1) is State.RUNNING


def test_cancel_answers_for_each_job(scene: World, enter: Enter) -> None:
    first, second = scene.jobs(2)
    scene.job(after=[first])
    found = enter("cancel", "j1", "2")
    assert found.code == 0
    assert found.out == "j1 cancelled: 1 more that belonged to it or needed it ended too\nj2 cancelled\n"
    again = enter("cancel", f"j{second}", "-o", "json")
    assert (again.code, json.loads(again.out)) == (
        4, [{"id": "j2", "state": "cancelled", "detail": "had ended before"}],
    )  # fmt: skip


def test_cancelling_a_parent_and_its_child_together_is_no_failure(scene: World, enter: Enter) -> None:
    parent = scene.job()
    child = scene.job(parent=parent)
    assert enter("cancel", f"j{parent}", f"j{child}").code == 0


def test_cancelling_what_runs_says_that_its_code_is_being_stopped(scene: World, enter: Enter) -> None:
    scene.running()
    assert enter("cancel", "1").out == "j1 cancelled: its code is being stopped\n"


def test_one_wrong_id_cancels_nothing(scene: World, enter: Enter) -> None:
    scene.job()
    assert enter("cancel", "1", "99").code == 3
    assert scene.state(1) is State.QUEUED


def test_retry_brings_back_a_dead_job_and_what_failed_with_it(scene: World, enter: Enter) -> None:
    claimed = scene.running()
    behind = scene.job(after=[claimed.id])
    scene.fail(claimed)
    assert enter("retry", "1") == (0, "j1 queued: 1 more that failed because of it too\n", "")
    assert (scene.state(1), scene.state(behind)) == (State.QUEUED, State.BLOCKED)


def test_retry_takes_another_input(scene: World, enter: Enter) -> None:
    scene.fail(scene.running())
    assert enter("retry", "1", "--input", '{"n": 2}').out == "j1 queued\n"
    assert json.loads(scene.do(lambda tx: tx.outcomes.input(1))) == {"n": 2}
    assert enter("retry", "1", "1", "--input", "1").code == 2


def test_retrying_several_tries_all_and_tells_those_it_could_not(scene: World, enter: Enter) -> None:
    scene.job()
    scene.fail(scene.running())
    found = enter("retry", "1", "2")
    assert (found.code, found.out) == (4, "j2 queued\n")
    assert "not_dead" in found.err


def test_dead_lists_failed_jobs_with_class_and_error(scene: World, enter: Enter) -> None:
    claimed = scene.running()
    behind = scene.job(after=[claimed.id])
    fail_with(scene, claimed, "boom")
    scene.time_out(scene.job(tenant="acme"))
    found = enter("dead")
    rows = {line.split()[0]: line for line in found.out.splitlines()}
    assert set(rows) == {"ID", "j1", "j2", "j3"}
    assert "permanent" in rows["j1"]
    assert rows["j1"].endswith("ValueError: boom")
    assert rows[f"j{behind}"].endswith("dependency j1 ended: ValueError: boom")
    assert "paceline retry" in found.err
    assert [job["id"] for job in json.loads(enter("dead", "--tenant", "acme", "-o", "json").out)] == ["j3"]


def test_no_dead_jobs_is_good_news(scene: World, enter: Enter) -> None:
    scene.job()
    assert enter("dead") == (0, "", "no dead jobs\n")
    assert enter("dead", "-o", "json").out == "[]\n"


def test_failure_classes_that_were_retried_are_counted_as_tries(scene: World, enter: Enter) -> None:
    claimed = scene.running(retries=1)
    scene.fail(claimed, FailureClass.TRANSIENT)
    scene.time_out(claimed.id)
    assert json.loads(enter("dead", "-o", "json").out)[0]["attempt"] == 1
