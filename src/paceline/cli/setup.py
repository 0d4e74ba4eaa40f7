"""`paceline init`: the files that a project begins with."""

import os
import re
from pathlib import Path
from typing import Annotated

from paceline.cli.arguments import Argument
from paceline.cli.render import Cell
from paceline.cli.shell import Shell
from paceline.config import DEFAULT_STORE, Settings, load
from paceline.core.names import shown
from paceline.core.problem import Problem
from paceline.errors import UsageError
from paceline.opening import kept, open_store, place_shown

SETTINGS = """\
# Settings of Paceline for this folder; every line that is commented out shows what holds without it.
# PACELINE_* in the environment (PACELINE_SLOTS=50) and options on the command line count more than this file.

# store = "sqlite:///.paceline/paceline.db"   # sqlite:////srv/work.db (absolute), postgresql://user@host/database
# synchronous = "full"                        # "normal": quicker, but a power cut may take the last moments with it
# slots = 1000                                # jobs that one node runs at once
# max_pending = 100000                        # jobs that may wait; submitting more is refused
# drain = "30s"                               # how long a node that stops waits for what it runs
# heartbeat = "15s"                           # how often a node says that it lives
# dead_after = "60s"                          # when others take over the jobs of a node that has not said so
# work_sharing = true                         # false: a node takes only what is submitted through itself

# [limits]                                    # pools of things at once, which agents name with needs={...}
# llm = 12
"""

AGENTS = '''\
"""Two agents to begin with. Try: paceline run agents.py:greet world"""

import asyncio

from paceline import Context, agent


@agent
async def greet(name: str) -> str:
    """Takes a text and gives one back."""
    return f"Hello, {name}!"


@agent(max_concurrency=4, retries=2, timeout="5m")
async def count(ctx: Context, word: str, letters: int = 3) -> dict[str, int]:
    """Up to four of these run at once; a failure that may pass is tried again, twice."""
    found = {}
    for place, letter in enumerate(word[:letters]):
        ctx.progress(place / letters, f"counting {letter}")
        await asyncio.sleep(0.2)  # here an agent would ask a model, a page or a program
        found[letter] = word.count(letter)
    ctx.log(f"counted {len(found)} letters")
    return found
'''

NEXT = (
    ("paceline run agents.py:greet world", "run one job and see its result"),
    ("""paceline run agents.py:count '{"word": "tidal"}'""", "one with progress and a log"),
    ("paceline up --app agents.py", "run a node; then, in another terminal:"),
    ("paceline submit greet world --wait", "give it work"),
    ("paceline doctor", "check that all is well here"),
)


def init(
    shell: Shell,
    folder: Annotated[str, Argument("where; made if it does not exist", "FOLDER")] = ".",
) -> int:
    """Makes paceline.toml, an example agents.py and the store in a folder. What is there already is left alone.

    Examples:
      paceline init
      paceline init my-project
    """
    place = _folder(folder)
    made = {"agents.py": _create(place / "agents.py", AGENTS)}
    if _has_settings(place / "pyproject.toml"):
        made["pyproject.toml [tool.paceline]"] = False
    else:
        made["paceline.toml"] = _create(place / "paceline.toml", _settings_for(shell.store))
    settings = load(place, os.environ, {"store": shell.store})
    inside = settings.store == DEFAULT_STORE
    if inside:
        settings = load(place, os.environ, {"store": f"sqlite:///{place.absolute()}/.paceline/paceline.db"})
    shown = str(Path(".paceline", "paceline.db")) if inside else place_shown(settings.store)
    made[shown] = _is_missing(settings)
    open_store(settings).store.close()
    _tell(shell, place, made)
    return 0


def _settings_for(store: str | None) -> str:
    """The file of settings, with the store that the command line names."""
    return SETTINGS if store is None else re.sub(r"# store = .*", lambda _: f'store = "{kept(store)}"', SETTINGS)


def _folder(name: str) -> Path:
    place = Path(name)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(code="not_a_folder", what="this is a file, not a folder", where=shown(name)) from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UsageError(code="no_folder", what="the folder cannot be made", where=shown(name), found=said) from None
    return place


def _has_settings(project: Path) -> bool:
    """A paceline.toml beside them would silence the settings that a project keeps in its pyproject.toml."""
    try:
        return "[tool.paceline" in project.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _is_missing(settings: Settings) -> bool:
    """There is no store yet; one that was there and cannot be used is told when it is opened."""
    try:
        open_store(settings, create=False).store.close()
    except Problem as problem:
        return problem.code in ("no_store", "no_folder")
    return False


def _create(path: Path, text: str) -> bool:
    """Writes a new file; False when there is something of that name."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _tell(shell: Shell, place: Path, made: dict[str, bool]) -> None:
    screen = shell.screen
    if screen.as_json:
        screen.json({"folder": str(place.absolute()), "made": [name for name, new in made.items() if new],
                     "kept": [name for name, new in made.items() if not new]})  # fmt: skip
        return
    for name, new in made.items():
        screen.cells(Cell("made", "green") if new else Cell("kept", "dim"), name)
    screen.line()
    screen.line("Next" + ("" if place.absolute() == Path.cwd() else f": cd {place}"), "bold")
    for command, meaning in NEXT:
        screen.line(f"  {command.ljust(52)}  {meaning}")
