"""Everything that differs between databases, as one value; no other file may ask which database it talks to."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one database spells the few things that are not portable."""

    name: str
    begin: str
    lock: str
    without_rowid: str
    in_list: Callable[[str], str]
    rows: Callable[[str, tuple[tuple[str, str], ...]], str]

    def render(self, sql: str) -> str:
        """`sql` with its fragments (`{lock}`, `{in:ids}`, `{rows:r(id int, …)}`) in this dialect."""
        sql = sql.replace("{lock}", self.lock).replace("{without_rowid}", self.without_rowid)
        sql = re.sub(r"\{in:(\w+)\}", lambda found: self.in_list(found[1]), sql)
        return re.sub(r"\{rows:(\w+)\(([^)]*)\)\}", lambda found: self.rows(found[1], _columns(found[2])), sql)


def _columns(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.split() for part in text.split(","))
    return tuple((name, kind) for name, kind in pairs)


def _sqlite_rows(name: str, columns: tuple[tuple[str, str], ...]) -> str:
    fields = ", ".join(f"value->>{place} as {column}" for place, (column, _) in enumerate(columns))
    return f"(select {fields} from json_each(:{name}))"


SQLITE = Dialect(
    name="sqlite",
    begin="begin immediate",
    lock="",
    without_rowid=" without rowid",
    in_list=lambda name: f"in (select value from json_each(:{name}))",
    rows=_sqlite_rows,
)
