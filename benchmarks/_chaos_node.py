"""One node of the rig: PARENT URL WITNESS-FOLDER CONTROLS. Runs until it is told to stop, or killed."""

import asyncio
import sys
from pathlib import Path

from _chaos_controls import CONTROLS
from _chaos_work import AGENTS, SLOTS, die_with, settings, until_told, witness
from paceline import Paceline


async def main(url: str) -> None:
    """Serves every agent of the rig."""
    async with Paceline(url, agents=AGENTS.values(), slots=SLOTS, **settings()):
        print("ready", flush=True)
        await until_told()


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    witness.open(Path(sys.argv[3]))
    for control in filter(None, sys.argv[4].split(",")):
        CONTROLS[control]()
    asyncio.run(main(sys.argv[2]))
