"""`paceline demo`: what it shows is what happened."""

import json
import tempfile
from pathlib import Path

import pytest

from cli.conftest import Enter
from paceline import Context
from paceline.demo import agents
from paceline.demo.agents import TOPICS, UNLUCKY


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """The same story in less time, with temporary folders where the test sees them."""
    pretend = agents._pretend

    async def hurry(ctx: Context, seconds: float, steps: tuple[str, ...], until: float = 1.0) -> None:
        await pretend(ctx, seconds / 20, steps, until)

    monkeypatch.setattr(agents, "_pretend", hurry)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_answer_is_made_of_all_notes_and_nothing_stays_behind(enter: Enter, quick: Path) -> None:
    typed = enter("demo")
    assert (typed.code, typed.err) == (0, "")
    assert all(topic.finding in typed.out for topic in TOPICS.values())
    assert "10 of 10 jobs completed" in typed.out
    assert "tried again" in typed.out
    assert "times as fast" in typed.out
    assert list(quick.iterdir()) == []


def test_its_numbers_are_those_of_the_jobs(enter: Enter, quick: Path) -> None:
    story = json.loads(enter("demo", "-o", "json").out)
    assert [job["name"] for job in story["jobs"]] == ["lead", *TOPICS, "answer"]
    assert {job["state"] for job in story["jobs"]} == {"completed"}
    assert [job["name"] for job in story["jobs"] if job["attempt"] > 1] == [UNLUCKY]
    assert story["speed_up"] == pytest.approx(story["work_seconds"] / story["wall_seconds"], abs=0.01)
    assert story["store"] is None


def test_a_store_that_is_kept_can_be_looked_at(enter: Enter, quick: Path) -> None:
    typed = enter("demo", "--keep")
    url = typed.out.partition("--store ")[2].split()[0]
    assert url.startswith(f"sqlite:///{quick}")
    assert "10 jobs" in enter("--store", url, "db", "check").out
    assert enter("--store", url, "ps", "-o", "json").code == 0
