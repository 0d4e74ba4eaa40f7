"""Runs the snippets of a page one after the other, inside `async with Paceline() as pl:`, as the page says."""

import ast
import asyncio
import inspect
import sys
from pathlib import Path

from docs.pages import blocks_of
from paceline import Paceline


async def play(page: Path) -> None:
    """Snippets share their names, as in one program."""
    names: dict[str, object] = {"__name__": "snippets"}
    async with asyncio.timeout(30), Paceline() as pl:
        names["pl"] = pl
        for block in blocks_of(page):
            if block.kind == "snippet":
                text = "\n" * (block.line - 1) + block.text
                code = compile(text, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                waiting = eval(code, names)  # noqa: S307 - our own pages
                if inspect.isawaitable(waiting):
                    await waiting


asyncio.run(play(Path(sys.argv[1])))
