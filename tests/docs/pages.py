"""What the documentation holds that can be run: blocks of Python and of commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
EXAMPLE_DATABASE = "postgresql://paceline@db.example/paceline"
"""The database that the pages speak of; where a page is run, a real one stands in its place."""
_BLOCK = re.compile(r"^```(python|sh|toml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\S+\.(?:py|toml))\n")
_STARTS_ITSELF = ("asyncio.run(", "Paceline.sync(")


class Block(NamedTuple):
    """One block of a page: `file` when its first line names one, else `program`, `snippet`, `commands` or `other`."""

    kind: str
    text: str
    line: int
    name: str = ""


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        language, body = found.groups()
        line = text.count("\n", 0, found.start()) + 2
        named = _FILE.match(body)
        if named:
            yield Block("file", body, line, named[1])
        elif language == "python":
            yield Block("program" if any(one in body for one in _STARTS_ITSELF) else "snippet", body, line)
        else:
            yield Block("commands" if language == "sh" else "other", body, line)
