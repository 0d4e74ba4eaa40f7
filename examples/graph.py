"""A build as a graph: steps that depend on each other by name, submitted as one.

python examples/graph.py
"""

import asyncio
import tempfile
from pathlib import Path

from paceline import Paceline, UsageError, agent, call

DONE: list[str] = []


@agent(isolation="inline", max_concurrency=None)
async def step(name: str) -> str:
    """One step of the build."""
    await asyncio.sleep(0.02)
    DONE.append(name)
    return name


async def main() -> None:
    """The graph runs; the same graph with a circle is refused before anything is written."""
    plan = {
        "fetch": call(step, "fetch"),
        "compile": call(step, "compile", after=["fetch"]),
        "docs": call(step, "docs", after=["fetch"], priority="low"),
        "test": call(step, "test", after=["compile"], timeout="1m"),
        "release": call(step, "release", after=["test", "docs"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        async with Paceline(f"sqlite:///{Path(folder) / 'work.db'}") as pl:
            jobs = await pl.submit_graph(plan)
            await jobs["release"].result(timeout=10)
            print(" -> ".join(DONE))

            plan["fetch"] = call(step, "fetch", after=["release"])
            try:
                await pl.submit_graph(plan)
            except UsageError as error:
                print(f"refused, {error.code}: {error.found}")


if __name__ == "__main__":
    asyncio.run(main())
