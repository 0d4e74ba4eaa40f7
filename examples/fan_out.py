"""Many jobs beside each other, and one that runs when all of them have ended - however they ended.

    python examples/fan_out.py

One source is out of reach. The summary runs all the same and names the gap.
"""

import asyncio
import tempfile
from pathlib import Path

from paceline import Context, Paceline, PermanentError, agent

SOURCES = ("tides", "winds", "currents", "ice", "harbours")
NOTES: dict[str, str] = {}
"""What the readers found. Nothing is handed from job to job: results go where the next one can find them."""


@agent(isolation="inline", max_concurrency=3)
async def read(ctx: Context, source: str) -> int:
    """Reads one source; three of them at once, whatever the number of jobs."""
    ctx.log(f"reading {source}")
    await asyncio.sleep(0.05)
    if source == "ice":
        raise PermanentError("the station is closed in winter")
    NOTES[source] = f"{source} as usual"
    return len(NOTES[source])


@agent(isolation="inline")
async def summarize(sources: list[str]) -> str:
    """The last job: it reads what is there and says what is missing."""
    missing = [source for source in sources if source not in NOTES]
    return f"{len(NOTES)} of {len(sources)} sources, nothing from {', '.join(missing) or 'nobody'}"


async def main() -> None:
    """Five jobs and a sixth behind them."""
    with tempfile.TemporaryDirectory() as folder:
        async with Paceline(f"sqlite:///{Path(folder) / 'work.db'}") as pl:
            readers = await pl.submit_many(read, SOURCES)
            summary = await pl.submit(summarize, list(SOURCES), after=[(job, "finished") for job in readers])
            print(await summary.result(timeout=10))
            for source, job in zip(SOURCES, readers, strict=True):
                print(f"  {source:<9} {(await job.state()).word}")


if __name__ == "__main__":
    asyncio.run(main())
