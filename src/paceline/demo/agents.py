"""A lead, eight researchers and a writer who share a folder of notes; their waiting stands in for model calls."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.agents.context import Context
from paceline.agents.definition import agent
from paceline.errors import TransientError

QUESTION = "Should our bakery open a second shop in Lisbon?"
STEPS = 12


@dataclass(frozen=True, slots=True)
class Topic:
    """One thing to find out: how long that takes, what the researcher does meanwhile, and what comes of it."""

    seconds: float
    steps: tuple[str, str, str]
    finding: str


TOPICS: Mapping[str, Topic] = {
    "rents": Topic(
        1.9,
        ("reading listings", "comparing districts", "writing it up"),
        "Corner shops in Arroios cost half of what Chiado asks.",
    ),
    "footfall": Topic(
        2.3,
        ("counting commuters", "looking at weekends", "writing it up"),
        "Two metro stops bring 9,000 people past the door before ten.",
    ),
    "suppliers": Topic(
        1.5,
        ("asking three mills", "tasting rye", "writing it up"),
        "One mill delivers stone-ground rye twice a week.",
    ),
    "permits": Topic(
        1.4,
        ("opening the city register", "reading the rules", "writing it up"),
        "An oven permit takes six weeks; the old one cannot be taken over.",
    ),
    "wages": Topic(
        1.7,
        ("reading contracts", "asking two bakers", "writing it up"),
        "A night shift for three is the largest monthly cost.",
    ),
    "competition": Topic(
        2.5,
        ("walking the streets", "tasting croissants", "writing it up"),
        "Nobody within ten minutes on foot sells sourdough.",
    ),
    "seasons": Topic(
        1.2,
        ("looking at three years", "asking the café next door", "writing it up"),
        "August is quiet: half of the regulars are away.",
    ),
    "delivery": Topic(
        2.1,
        ("timing cargo bikes", "asking five cafés", "writing it up"),
        "Five cafés would buy bread every morning.",
    ),
}
UNLUCKY = "permits"
"""The one whose first try meets a server that is down."""


@agent(max_concurrency=1)
async def lead(ctx: Context, folder: str, question: str) -> list[str]:
    """Splits the question into topics, one for each researcher."""
    await _pretend(ctx, 0.6, ("reading the question", "splitting it up", "handing it out"))
    await asyncio.to_thread(_write, Path(folder, "question.txt"), question)
    return list(TOPICS)


@agent(max_concurrency=8, retries=2)
async def research(ctx: Context, folder: str, topic: str) -> str:
    """Finds out about one topic and leaves a note in the shared folder."""
    found = TOPICS[topic]
    if topic == UNLUCKY and ctx.attempt == 1:
        await _pretend(ctx, 0.7, found.steps, until=0.4)
        raise TransientError("the city register did not answer (503)")
    await _pretend(ctx, found.seconds, found.steps)
    ctx.log(found.finding)
    await asyncio.to_thread(_write, Path(folder, f"{topic}.txt"), found.finding)
    return found.finding


@agent(max_concurrency=1)
async def answer(ctx: Context, folder: str, topics: list[str]) -> str:
    """Reads all notes and writes the answer; it starts when the last researcher is done."""
    await _pretend(ctx, 0.9, ("reading the notes", "weighing them", "writing the answer"))
    notes = await asyncio.to_thread(lambda: [Path(folder, f"{topic}.txt").read_text("utf-8") for topic in topics])
    points = "\n".join(f"  {place}. {note}" for place, note in enumerate(notes, 1))
    return f"Yes, in Arroios, and not before autumn. From {len(notes)} notes:\n{points}"


async def _pretend(ctx: Context, seconds: float, steps: tuple[str, ...], until: float = 1.0) -> None:
    """Takes time as a model would, and says how far it is."""
    for step in range(round(STEPS * until)):
        ctx.progress(step / STEPS, steps[step * len(steps) // STEPS])
        await asyncio.sleep(seconds / STEPS)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
