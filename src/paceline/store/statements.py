"""Named SQL texts: read from `queries/*.sql` once, rendered for one dialect."""

from functools import cache
from pathlib import Path

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
def texts() -> dict[str, str]:
    """Every named statement as it was written."""
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).with_name("queries").glob("*.sql")):
        room = file.name.removesuffix(".sql")
        for part in file.read_text(encoding="utf-8").split(_MARK)[1:]:
            name, _, body = part.partition("\n")
            lines = (line for line in body.splitlines() if not line.lstrip().startswith("--"))
            found[f"{room}.{name.strip()}"] = "\n".join(lines).strip().rstrip(";")
    return found


class Statements:
    """All named statements of one dialect, each rendered when it is first asked for.

    A name with a dialect behind it, as in `heads (postgres)`, is that dialect's own way to say the same.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._rendered: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        text = self._rendered.get(name)
        if text is None:
            said = texts()
            own = said.get(f"{name} ({self._dialect.name})", said[name])
            text = self._rendered[name] = fill(own, self._dialect)
        return text
