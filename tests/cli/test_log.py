"""`paceline logs` and `events`: what jobs have written and what has happened, once or as it happens."""

import csv
import io
import json

import pytest

from cli.conftest import Enter
from cli.scenes import HOSTILE, after_looks, assert_harmless, fail_with, say
from cli.scenes import scene as scene
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from store.world import World


def test_logs_have_time_and_level_and_keep_their_lines(scene: World, enter: Enter) -> None:
    job = scene.running()
    say(scene, job, "one\ntwo")
    say(scene, job, "careful", "warning")
    code, out, err = enter("logs", "1")
    first, second, third = out.splitlines()
    assert (code, err) == (0, "")
    assert first.endswith(" one")
    assert second == "    two"
    assert third.split()[1:] == ["warning", "careful"]


def test_the_last_lines_alone_on_request(scene: World, enter: Enter) -> None:
    job = scene.running()
    for number in range(5):
        say(scene, job, f"line {number}")
    assert [line[-6:] for line in enter("logs", "1", "-n", "2").out.splitlines()] == ["line 3", "line 4"]
    assert enter("logs", "1", "-n", "0").code == 2


def test_a_second_start_is_announced_between_the_lines(scene: World, enter: Enter) -> None:
    job = scene.running()
    say(scene, job, "first")
    scene.do(lambda tx: tx.jobs.release([], tx.now))
    scene.fail(job, FailureClass.CAPACITY)
    scene.do(lambda tx: tx.jobs.make_due([(job.id, job.epoch)], tx.now))
    say(scene, scene.claim(job.id)[0], "second")
    lines = enter("logs", "1").out.splitlines()
    assert [line.split()[-1] for line in lines] == ["first", "2", "second"]
    assert lines[1] == "--- start 2"


def test_a_silent_job_says_so(scene: World, enter: Enter) -> None:
    scene.job()
    assert enter("logs", "1") == (0, "", "j1 has not written anything yet\n")
    assert json.loads(enter("logs", "1", "-o", "json").out) == []


def test_following_goes_on_until_the_job_has_ended(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    job = scene.running()
    say(scene, job, "first")

    def last_words() -> None:
        say(scene, job, "last")
        scene.complete(job)

    steps = (lambda: None, lambda: say(scene, job, "more"), last_words)
    after_looks(monkeypatch, "paceline.cli.log", *steps)
    found = enter("logs", "-f", "1", "-o", "json")
    assert found.code == 0
    assert [json.loads(line)["text"] for line in found.out.splitlines()] == ["first", "more", "last"]


def test_events_tell_what_happened_in_order(scene: World, enter: Enter) -> None:
    fail_with(scene, scene.running(), "boom")
    rows = [line.split(None, 3)[1:] for line in enter("events").out.splitlines()]
    assert rows == [["j1", "job.queued"], ["j1", "job.started"], ["j1", "job.failed", "ValueError: boom"]]


def test_events_are_narrowed_by_kind_severity_job_and_time(scene: World, enter: Enter) -> None:
    scene.in_state(State.COMPLETED)
    scene.in_state(State.FAILED)
    chosen = {
        ("--kind", "job.started"): 2,
        ("--kind", "job.started", "--kind", "job.failed"): 3,
        ("--severity", "error"): 1,
        ("--job", "1"): 3,
        ("--job", "2", "--kind", "job"): 3,
        ("-n", "4"): 4,
        ("--since", "1h"): 6,
        ("--since", "1h", "-n", "2"): 2,
    }
    for words, count in chosen.items():
        assert len(json.loads(enter("events", *words, "-o", "json").out)) == count, words


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--kind", "job.faild"], 2, "did you mean job.failed?"),
        (["--severity", "loud"], 2, "debug, info, warning, error"),
        (["--since", "yesterday"], 2, "cannot be read"),
        (["--job", "9"], 3, "unknown_job"),
        (["--export", "xml"], 2, "jsonl, csv, json"),
        (["--export", "json", "-f"], 2, "has no end"),
    ],
)
def test_a_filter_that_cannot_be_is_one_clear_error(
    scene: World, enter: Enter, words: list[str], code: int, said: str
) -> None:
    found = enter("events", *words)
    assert (found.code, found.out) == (code, "")
    assert said in found.err


def test_no_events_say_why(scene: World, enter: Enter) -> None:
    assert enter("events").err == "no events yet: nothing was submitted\n"
    scene.job()
    assert enter("events", "--severity", "error") == (0, "", "no event fits\n")
    assert json.loads(enter("events", "--severity", "error", "-o", "json").out) == []


def test_exports_hold_every_event_in_three_formats(scene: World, enter: Enter) -> None:
    scene.in_state(State.FAILED)
    scene.jobs(60)
    listed = json.loads(enter("events", "--export", "json").out)
    assert len(listed) == 63, "an export is not cut to the last fifty"
    lines = enter("events", "--export", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == listed
    rows = list(csv.DictReader(io.StringIO(enter("events", "--export", "csv").out)))
    assert [(row["id"], row["kind"]) for row in rows] == [(str(one["id"]), one["kind"]) for one in listed]
    assert json.loads(rows[2]["data"]) == listed[2]["data"]


def test_an_empty_export_is_still_valid(scene: World, enter: Enter) -> None:
    assert enter("events", "--export", "json").out == "[]\n"
    assert enter("events", "--export", "jsonl") == (0, "", "")
    assert enter("events", "--export", "csv").out == "id,job,seq,at,kind,severity,epoch,data\n"


def test_following_events_ends_with_ctrl_c(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.job()
    after_looks(monkeypatch, "paceline.cli.log", scene.job, lambda: scene.cancel(2))
    found = enter("events", "-f", "--export", "jsonl", "--kind", "job.queued", "--kind", "job.cancelled")
    assert found.code == 130
    told = [json.loads(line) for line in found.out.splitlines()]
    assert [(one["job"], one["kind"]) for one in told] == [
        ("j1", "job.queued"), ("j2", "job.queued"), ("j2", "job.cancelled"),
    ]  # fmt: skip


def test_what_agents_write_never_acts_on_a_terminal(scene: World, enter: Enter) -> None:
    job = scene.running()
    say(scene, job, HOSTILE)
    fail_with(scene, job, HOSTILE)
    for words in (
        ("logs", "1"), ("logs", "1", "-o", "json"), ("events",), ("events", "-o", "json"),
        ("events", "--export", "csv"), ("events", "--export", "jsonl"), ("events", "--export", "json"),
    ):  # fmt: skip
        assert_harmless(enter(*words).out)
