"""From a URL to an open store: where the file is, whose clock it uses, and what it is called."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.bus.protocol import Hint
from paceline.clock import SystemClock, boot_id, measure_offset
from paceline.config import FOLDER, Settings
from paceline.errors import UsageError
from paceline.store.doors import sqlite_store
from paceline.store.places import check_file, make_folder
from paceline.store.sql import Store
from paceline.store.tx import Tx

SQLITE_PREFIX = "sqlite://"
MEMORY = ("", ":memory:", "/:memory:")


@dataclass(frozen=True, slots=True)
class Opened:
    """An open store with the facts that belong to it."""

    store: Store
    id: str
    hints: Path | None

    def tell(self, hints: Sequence[Hint]) -> None:
        """Tells who listens on this host, for programs without an event loop."""
        if self.hints is not None:
            from paceline.bus.datagrams import tell_once  # late: who only looks does without

            tell_once(self.hints, hints)


def path_of(url: str) -> Path | None:
    """The file a `sqlite:///…` URL names (three slashes: relative, four: absolute); None for memory."""
    if not url.startswith(SQLITE_PREFIX) or not url.isprintable():
        raise _bad(
            url, "this does not name a store", "sqlite:///relative.db, sqlite:////absolute.db, sqlite://:memory:"
        )
    rest = url.removeprefix(SQLITE_PREFIX)
    if rest in MEMORY:
        return None
    if not rest.startswith("/"):
        raise _bad(url, "a store on this host has three slashes", f"sqlite:///{rest}")
    if not Path(rest[1:]).name:
        raise _bad(url, "this names a folder and no file in it", f"{url.rstrip('/')}/paceline.db")
    return Path(rest[1:])


def open_store(settings: Settings, *, create: bool = True) -> Opened:
    """Opens the store a program's settings name, creating file and folder where that is asked for."""
    path = path_of(settings.store)
    if path is not None:
        path = path.absolute()
        if not create:
            check_file(path)
        elif path.parent.name == FOLDER:
            make_folder(path.parent)
    clock = SystemClock(measure_offset())
    store = sqlite_store(path, clock, synchronous=settings.synchronous)
    try:
        id, offset = store.execute(lambda tx: _facts(tx, clock.offset_us, settings))
        clock.offset_us = offset
    except BaseException:
        store.close()
        raise
    return Opened(store, id, None if path is None else path.with_name(f"{path.name}.hints"))


def _bad(url: str, what: str, allowed: str) -> UsageError:
    shown = url.split("@")[-1][:200].encode("unicode_escape").decode()
    return UsageError(code="bad_store", what=what, found=shown, allowed=allowed)


def _facts(tx: Tx, offset: int, settings: Settings) -> tuple[str, int]:
    """The store's own id, and the clock offset that all processes share since this boot."""
    id = tx.listing.fact("store_id")
    if id is None:
        id = uuid.uuid4().hex[:12]
        tx.listing.set_fact("store_id", id)
    tx.pools.seed(settings.limits)
    boot = boot_id()
    known_boot, _, known_offset = (tx.listing.fact("clock") or "").partition(" ")
    if boot and known_boot == boot:
        return id, int(known_offset)
    tx.listing.set_fact("clock", f"{boot} {offset}")
    return id, offset
