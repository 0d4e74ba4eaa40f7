"""`paceline ps`, `show` and `explain`: what a person sees of jobs, and what a program reads."""

import json
import os
from pathlib import Path

import pytest

from cli.conftest import Enter
from cli.scenes import HOSTILE, after_looks, assert_harmless, fail_with, progress, say
from cli.scenes import scene as scene
from paceline.core.failures import FailureClass
from paceline.core.lifecycle import State
from paceline.core.scheduling import QueueClass
from store.world import World


def lines_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_without_a_store_the_answer_says_how_to_make_one(enter: Enter) -> None:
    code, out, err = enter("ps")
    assert (code, out) == (2, "")
    assert "paceline init" in err


def test_an_empty_store_says_so_and_what_to_do(scene: World, enter: Enter) -> None:
    code, out, err = enter("ps")
    assert (code, out) == (0, "")
    assert err.startswith("no jobs yet: paceline submit")
    assert enter("ps", "-o", "json").out == "[]\n"


def test_ps_lists_open_jobs_first_with_progress_and_reason(scene: World, enter: Enter) -> None:
    done, running = scene.running(), scene.running()
    scene.complete(done)
    progress(scene, running, 0.5, "half of it")
    blocked = scene.job(after=[running.id])
    code, out, err = enter("ps")
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert head.split() == ["ID", "STATE", "AGENT", "TIME", "PROGRESS"]
    assert [row.split()[:3] for row in rows] == [
        [f"j{running.id}", "running", "worker"],
        [f"j{blocked}", "blocked", "worker"],
        [f"j{done.id}", "completed", "worker"],
    ]
    assert rows[0].endswith("50%  half of it")
    assert rows[1].endswith(f"after j{running.id}")


def test_rank_tenant_and_tries_appear_when_they_are_unusual(scene: World, enter: Enter) -> None:
    scene.job(tenant="acme", queue_class=QueueClass.INTERACTIVE, priority=25)
    claimed = scene.running(retries=1)
    scene.fail(claimed, FailureClass.TRANSIENT)
    rows = {row[0]: row for row in lines_of(enter("ps").out)}
    assert rows["ID"] == ["ID", "STATE", "AGENT", "TENANT", "RANK", "TRY", "TIME"]
    assert rows["j1"][3:6] == ["acme", "interactive", "high"]
    assert rows[f"j{claimed.id}"][3] == "2"


def test_what_is_left_out_is_counted(scene: World, enter: Enter) -> None:
    scene.jobs(7)
    found = enter("ps", "-n", "5")
    assert len(found.out.splitlines()) == 6
    assert "2 more jobs are not shown" in found.err


@pytest.mark.parametrize("state", State)
def test_ps_narrows_to_a_state(scene: World, enter: Enter, state: State) -> None:
    for other in State:
        scene.in_state(other)
    found = json.loads(enter("ps", "--state", state.word, "-o", "json").out)
    assert {job["state"] for job in found} == {state.word}


def test_ps_all_lists_the_newest_first(scene: World, enter: Enter) -> None:
    jobs = scene.jobs(3)
    scene.cancel(jobs[2])
    assert [row[0] for row in lines_of(enter("ps", "--all").out)[1:]] == ["j3", "j2", "j1"]


def test_the_json_of_ps_has_words_times_and_the_reason(scene: World, enter: Enter) -> None:
    scene.job(tenant="acme")
    job = json.loads(enter("ps", "-o", "json").out)[0]
    assert (job["id"], job["state"], job["tenant"], job["queue_class"]) == ("j1", "queued", "acme", "standard")
    assert job["created_at"].endswith("+00:00")
    assert (job["why"], job["progress"]) == ("in_line", {"fraction": None, "note": None})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--state", "faild"], 2, "did you mean failed?"),
        (["--agent", "werker"], 3, "did you mean worker?"),
        (["-n", "0"], 2, "1 or more"),
        (["-n", "many"], 2, "a whole number"),
        (["--tenant"], 2, "needs a value"),
        (["j7"], 2, "more words than this command takes"),
    ],
)
def test_a_slip_of_the_pen_is_one_clear_error(
    scene: World, enter: Enter, words: list[str], code: int, said: str
) -> None:
    found = enter("ps", *words)
    assert (found.code, found.out) == (code, "")
    assert said in found.err


def test_watching_looks_again_until_ctrl_c(scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch) -> None:
    job = scene.job()
    after_looks(monkeypatch, "paceline.cli.look", lambda: scene.cancel(job))
    found = enter("ps", "--watch")
    assert found.code == 130
    assert [row[1] for row in lines_of(found.out) if row[0] == "j1"] == ["queued", "cancelled"]


def test_explain_says_what_holds_a_job_and_what_to_do(scene: World, enter: Enter) -> None:
    number = scene.do(lambda tx: tx.lanes.register("nobody", "app.agents", "{}", None))
    scene.submit(scene.wish()._replace(terms=scene.wish().terms._replace(agent=number)))
    out = enter("explain", "j1").out
    assert out.startswith("j1 queued (no_node_for_agent)\n  no live node has agent nobody from app.agents")
    assert "paceline up --app app.agents" in out


def test_explain_names_the_place_in_line(scene: World, enter: Enter) -> None:
    scene.jobs(3)
    assert "number 3 in its lane, number 3 of all ready jobs" in enter("explain", "3").out


@pytest.mark.parametrize("state", State)
def test_every_state_can_be_explained_and_shown_in_words_and_as_json(scene: World, enter: Enter, state: State) -> None:
    job = f"j{scene.in_state(state)}"
    assert enter("explain", job).out.startswith(f"{job} {state.word.replace('_', ' ')}")
    explained = json.loads(enter("explain", job, "-o", "json").out)
    assert (explained["id"], explained["state"]) == (job, state.word)
    assert enter("show", job).out.startswith(f"{job} {state.word.replace('_', ' ')} worker from tests")
    shown = json.loads(enter("show", job, "-o", "json").out)
    assert (shown["id"], shown["state"], shown["why"]["code"]) == (job, state.word, explained["code"])


def test_show_has_everything_about_a_job_on_one_screen(scene: World, enter: Enter) -> None:
    before = scene.running()
    job = scene.job('{"n": 21}', after=[before.id], key="order-7", session="chat", retries=1)
    behind = scene.job(finished=[job])
    scene.complete(before)
    claimed = scene.claim(job)[0]
    say(scene, claimed, "hello")
    fail_with(scene, claimed, "first line\nsecond line", 'File "a.py", line 3, in work\n  raise ValueError\n')
    code, out, _ = enter("show", str(job))
    assert code == 0
    for part in (
        "  ValueError: first line\n  second line\n  not tried again",
        "key        order-7",
        "session    chat",
        'input      {"n": 21}',
        'File "a.py", line 3, in work',
        f"after\n  j{before.id}",
        f"before\n  j{behind}",
        f"do: paceline retry j{job}",
        f"do: paceline logs j{job} (1 line)",
    ):
        assert part in out


def test_show_as_json_has_the_values_themselves(scene: World, enter: Enter) -> None:
    claimed = scene.running()
    scene.complete(claimed, '{"answer":[1,2,"' + "x" * 10_000 + '"]}')
    shown = json.loads(enter("show", "1", "-o", "json").out)
    assert (shown["input"], shown["result"]["answer"][:2], len(shown["result"]["answer"][2])) == (1, [1, 2], 10_000)
    assert [event["kind"] for event in shown["events"]] == ["job.queued", "job.started", "job.completed"]
    assert len(enter("show", "1").out) < 2_000, "a person sees its beginning"


@pytest.mark.parametrize("command", ["show", "explain", "logs", "cancel", "retry", "wait"])
@pytest.mark.parametrize(("word", "code"), [("j99", 3), ("x", 2), ("", 2), ("-1", 2)])
def test_an_id_that_means_no_job_is_refused_by_every_command(
    scene: World, enter: Enter, command: str, word: str, code: int
) -> None:
    scene.job()
    found = enter(command, word)
    assert (found.code, found.out) == (code, "")
    assert found.err.startswith("error: ")


def test_foreign_text_reaches_neither_terminal_nor_json_unescaped(scene: World, enter: Enter) -> None:
    scene.do(lambda tx: tx.lanes.register(f"agent {HOSTILE}", HOSTILE, "{}", None))
    number = scene.do(lambda tx: tx.lanes.agents())[0].id
    terms = scene.wish().terms._replace(agent=number, tenant=HOSTILE, key=HOSTILE, session=HOSTILE)
    job = scene.submit(scene.wish(json.dumps(HOSTILE))._replace(terms=terms))[0]
    claimed = scene.claim(job)[0]
    progress(scene, claimed, 0.3, HOSTILE)
    for words in (("ps",), ("show", "1"), ("explain", "1"), ("ps", "-o", "json")):
        assert_harmless(enter(*words).out)
    fail_with(scene, claimed, HOSTILE, f'File "{HOSTILE}"\n')
    behind = scene.job(after=[job])
    for words in (
        ("ps",),
        ("dead",),
        ("show", "1"),
        ("explain", "1"),
        ("explain", f"j{behind}"),
        ("show", f"j{behind}"),
    ):
        assert_harmless(enter(*words).out)
        assert_harmless(enter(*words, "-o", "json").out)
    assert_harmless(enter("ps", "--agent", HOSTILE).err)
    assert_harmless(enter("show", HOSTILE).err)


def test_a_narrow_terminal_keeps_the_reason(
    scene: World, enter: Enter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    holder = scene.running(tenant="a tenant with a rather long name", queue_class=QueueClass.INTERACTIVE, priority=75)
    progress(scene, holder, 0.5, "reading the third chapter")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = enter("ps").out
        assert "reading the third chapter" in out
        assert max(map(len, out.splitlines())) <= columns
        assert ("TENANT" in out) == (columns == 120)


def test_ps_leaves_the_store_as_it_is_and_starts_no_thread(scene: World, enter: Enter, folder: Path) -> None:
    scene.job()
    last = scene.do(lambda tx: tx.events.last())
    before = set(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else set()
    assert enter("ps").code == 0
    assert scene.do(lambda tx: tx.events.last()) == last
    after = set(os.listdir("/proc/self/task")) if before else set()
    assert after <= before
