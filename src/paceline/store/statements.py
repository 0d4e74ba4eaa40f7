"""Named SQL texts: read from `queries/*.sql` once, rendered for one dialect."""

from functools import cache
from importlib.resources import files

from paceline.core.lifecycle import FIRST_ENDED, State
from paceline.store.dialect import Dialect

_MARK = "-- name: "


def constants() -> dict[str, str]:
    """The numbers of the law as SQL texts may name them: `{queued}`, `{first_ended}`, `{states}`."""
    words = {state.word: str(int(state)) for state in State}
    return {**words, "first_ended": str(FIRST_ENDED), "states": ", ".join(words.values())}


def fill(sql: str, dialect: Dialect) -> str:
    """`sql` with the law's numbers and the dialect's fragments filled in."""
    for word, number in constants().items():
        sql = sql.replace("{" + word + "}", number)
    return dialect.render(sql)


@cache
def _texts() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("paceline.store").joinpath("queries").iterdir(), key=lambda entry: entry.name):
        room = file.name.removesuffix(".sql")
        for part in file.read_text(encoding="utf-8").split(_MARK)[1:]:
            name, _, body = part.partition("\n")
            lines = (line for line in body.splitlines() if not line.lstrip().startswith("--"))
            found[f"{room}.{name.strip()}"] = "\n".join(lines).strip().rstrip(";")
    return found


class Statements:
    """All named statements of one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._texts = {name: fill(text, dialect) for name, text in _texts().items()}

    def __getitem__(self, name: str) -> str:
        return self._texts[name]
