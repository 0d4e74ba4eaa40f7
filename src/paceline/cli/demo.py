"""`paceline demo`: a lead, eight researchers at once and an answer, on a store of its own, watched while it happens."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, NamedTuple

from paceline.app import Paceline
from paceline.cli.arguments import Option
from paceline.cli.loops import run_here
from paceline.cli.shell import Shell
from paceline.cli.watching import Watch, watcher
from paceline.client.graph import Call
from paceline.client.job import Job
from paceline.client.reading import starts_of
from paceline.core.durations import format_duration
from paceline.core.lifecycle import State
from paceline.core.lines import JobLine
from paceline.demo.agents import QUESTION, TOPICS, UNLUCKY, answer, lead, research
from paceline.events import Event

PREFIX = "paceline-demo-"
LOOK = 0.08
"""Seconds between two looks at the jobs."""


class Story(NamedTuple):
    """What there is to tell when all is done; times in microseconds."""

    answer: str
    lines: list[JobLine]
    worked: int
    wall: int

    @property
    def gain(self) -> float:
        """How much faster than one after the other."""
        return self.worked / max(1, self.wall)


def demo(
    shell: Shell,
    keep: Annotated[bool, Option("keep the store, to look around in it afterwards")] = False,
) -> int:
    """Shows the main thing in a few seconds: one question, eight agents at once, one answer, and nothing lost.

    The lead's job, eight research jobs and the answer's job are submitted together; they wait for each other by
    dependencies. One researcher meets a server that is down and is tried again by itself. The agents are scripted: no
    key, no network. The store is a temporary folder, removed afterwards unless --keep is given.

    Examples:
      paceline demo
      paceline demo --keep
    """
    place = nullcontext(tempfile.mkdtemp(prefix=PREFIX)) if keep else tempfile.TemporaryDirectory(prefix=PREFIX)
    with place as folder:
        return run_here(lambda: _demo(shell, Path(folder), keep))


async def _demo(shell: Shell, folder: Path, keep: bool) -> int:
    url = f"sqlite:///{folder}/demo.db"
    async with Paceline(url, agents=[lead, research, answer]) as app:
        jobs = await app.submit_graph(_graph(folder))
        numbers = [job.number for job in jobs.values()]
        with watcher(shell.screen, QUESTION, names={job.number: name for name, job in jobs.items()}) as watch:
            await _watch(app, jobs["answer"], numbers, watch)
        lines, logs = await app.client.store.read(
            lambda tx: (tx.listing.by_ids(numbers), [tx.events.of_job(number) for number in numbers])
        )
        story = _story(lines, logs)
        story = story._replace(answer=str(await jobs["answer"].result()))
    if shell.screen.as_json:
        shell.screen.json(_as_json(story, jobs, url if keep else None))
    else:
        _tell(shell, story, jobs, url if keep else None)
    return 0


def _graph(folder: Path) -> dict[str, Call]:
    """Ten jobs; what each waits for is said by name."""
    notes = str(folder)
    graph = {"lead": Call(lead, {"folder": notes, "question": QUESTION})}
    for topic in TOPICS:
        graph[topic] = Call(research, {"folder": notes, "topic": topic}, after=["lead"])
    graph["answer"] = Call(answer, {"folder": notes, "topics": list(TOPICS)}, after=list(TOPICS))
    return graph


async def _watch(app: Paceline, last: Job, numbers: list[int], watch: Watch) -> None:
    ended = asyncio.ensure_future(last.wait())
    try:
        while not ended.done():
            await asyncio.wait({ended}, timeout=LOOK)
            watch.show(await app.client.store.read(lambda tx: tx.listing.by_ids(numbers)), app.client.store.clock.now())
    finally:
        ended.cancel()


def _story(lines: list[JobLine], logs: Sequence[Sequence[Event]]) -> Story:
    starts = [start for log in logs for start in starts_of(log)]
    worked = sum((start.ended_at or start.started_at) - start.started_at for start in starts)
    wall = max(line.ended_at or 0 for line in lines) - min(line.created_at for line in lines)
    return Story("", lines, worked, wall)


def _tell(shell: Shell, story: Story, jobs: dict[str, Job], url: str | None) -> None:
    screen = shell.screen
    screen.line()
    screen.lines(story.answer)
    screen.line()
    times = f"{format_duration(story.worked)} of work in {format_duration(story.wall)}"
    screen.line(f"{times}: {story.gain:.1f} times as fast as one after the other.", "bold")
    done = sum(line.state is State.COMPLETED for line in story.lines)
    screen.line(
        f"{done} of {len(story.lines)} jobs completed; {jobs[UNLUCKY].id} failed once and was tried again by itself."
    )
    screen.line("The agents are scripted and only pretend to think; jobs, dependencies, retry and store are real.")
    screen.line()
    gone = "" if url else " (this store is gone; `paceline demo --keep` leaves one and says its URL)"
    screen.line(f"Where to look next{gone}", "bold")
    at = f"paceline --store {url or 'URL'}"
    width = len(at) + 10
    for command, meaning in (
        ("ps", "all jobs"),
        (f"show {jobs[UNLUCKY].id}", "the one that was tried again"),
        (f"logs {jobs['rents'].id}", "what a job has written"),
        ("events", "what happened, in order"),
    ):
        screen.line(f"  {f'{at} {command}'.ljust(width)}  {meaning}")
    screen.line(f"  {'paceline init'.ljust(width)}  a first agent of your own")


def _as_json(story: Story, jobs: dict[str, Job], url: str | None) -> dict[str, object]:
    by_id = {line.id: line for line in story.lines}
    lines = [by_id[job.number] for job in jobs.values()]
    return {
        "question": QUESTION,
        "answer": story.answer,
        "jobs": [
            {"name": name, "id": job.id, "state": line.state.word, "attempt": line.attempt + 1}
            for (name, job), line in zip(jobs.items(), lines, strict=True)
        ],
        "work_seconds": story.worked / 1e6,
        "wall_seconds": story.wall / 1e6,
        "speed_up": round(story.gain, 2),
        "store": url,
    }
