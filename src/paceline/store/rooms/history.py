"""The log of events as people read it: forwards from a cursor, backwards from the end, from a moment on."""

from collections.abc import Sequence

from paceline.events import Event, Kind
from paceline.store.driver import Driver, Row, as_list
from paceline.store.statements import Statements


class HistoryRoom:
    """What people see as the id of an event is its place in the log, which rises in the order of commits."""

    def __init__(self, driver: Driver, sql: Statements) -> None:
        self._driver = driver
        self._sql = sql

    def after(self, after: int, upto: int, kinds: Sequence[Kind] | None, most: int) -> list[Event]:
        """The log behind a cursor, oldest first."""
        return self._events("after", after=after, upto=upto, kinds=_numbers(kinds), most=most)

    def before(self, before: int, after: int, kinds: Sequence[Kind] | None, most: int) -> list[Event]:
        """The log back from a point, as far as a cursor; newest first."""
        return self._events("before", before=before, after=after, kinds=_numbers(kinds), most=most)

    def ended(self, after: int, kinds: Sequence[Kind], lanes: Sequence[int] | None, most: int) -> list[int]:
        """The jobs that ended behind a cursor, the last one first; one that lived again stands there twice."""
        arguments = {"after": after, "kinds": _numbers(kinds), "most": most}
        within = {"lanes": None if lanes is None else as_list(lanes)}
        return [row[0] for row in self._driver.rows(self._sql["history.ended"], {**arguments, **within})]

    def cursor_at(self, moment: int, last: int) -> int:
        """The cursor behind which everything from that moment on stands, as far as times rise with places."""
        low, high = 1, last + 1
        while low < high:
            middle = (low + high) // 2
            found = self._driver.rows(self._sql["history.at_or_behind"], {"id": middle})
            if not found or found[0][1] >= moment:
                high = middle
            else:
                low = found[0][0] + 1
        return low - 1

    def _events(self, name: str, **arguments: int | str | None) -> list[Event]:
        return [_event(row) for row in self._driver.rows(self._sql[f"history.{name}"], arguments)]


def _numbers(kinds: Sequence[Kind] | None) -> str | None:
    return None if kinds is None else as_list([int(kind) for kind in kinds])


def _event(row: Row) -> Event:
    return Event(row[0], row[1], row[2], row[3], Kind(row[4]), row[5], row[6])
