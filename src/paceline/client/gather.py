"""Submissions of many callers, gathered for one turn of the event loop and written as one unit of work."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from paceline.core.model import UNIT_ROWS
from paceline.core.submission import Wish
from paceline.errors import PacelineError, StoreError
from paceline.store.protocol import Done, Store, Tx

Submit = Callable[[Tx, list[Wish]], list[int]]


class Caller(NamedTuple):
    """Wishes that belong together, and who waits for their ids."""

    wishes: list[Wish]
    future: "asyncio.Future[list[int]]"


class Gatherer:
    """Who submits alone pays nothing; those who submit at once share one insert; each gets its own answer."""

    def __init__(self, store: Store, submit: Submit, poke: Callable[[], None]) -> None:
        self._store = store
        self._submit = submit
        self._poke = poke
        self._callers: list[Caller] = []
        self._count = 0

    def accept(self, wishes: list[Wish]) -> "asyncio.Future[list[int]]":
        """Resolved with the ids once they are durable, or with the reason why nothing of it was written."""
        loop = asyncio.get_running_loop()
        caller = Caller(wishes, loop.create_future())
        if self._count + len(wishes) > UNIT_ROWS:
            self._flush()
        if not self._callers:
            loop.call_soon(self._flush)
        self._callers.append(caller)
        self._count += len(wishes)
        return caller.future

    def _flush(self) -> None:
        callers, self._callers, self._count = self._callers, [], 0
        if callers:
            self._hand_over(callers)
            self._poke()

    def _hand_over(self, callers: list[Caller]) -> None:
        wishes = _joined(callers) if len(callers) > 1 else callers[0].wishes
        try:
            self._store.hand_over(lambda tx: self._submit(tx, wishes), partial(self._land, callers))
        except PacelineError as error:
            self._land(callers, Done(None, error))

    def _land(self, callers: list[Caller], done: Done) -> None:
        if done.error is not None and len(callers) > 1 and not isinstance(done.error, StoreError):
            for caller in callers:  # one of them was refused: each is asked again for itself
                self._hand_over([caller])
            return
        place = 0
        for wishes, future in callers:
            if not future.done():
                if done.error is None:
                    future.set_result(done.value[place : place + len(wishes)])
                else:
                    future.set_exception(done.error)
            place += len(wishes)


def _joined(callers: list[Caller]) -> list[Wish]:
    """One list of all wishes; each caller's places begin where those of the callers before end."""
    joined: list[Wish] = []
    for caller in callers:
        first = len(joined)
        joined += [
            wish._replace(inner=tuple((first + place, wants) for place, wants in wish.inner)) if wish.inner else wish
            for wish in caller.wishes
        ]
    return joined
