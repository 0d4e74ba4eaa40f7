"""From a URL to an open store: where it is, whose clock it uses, its name, and how its users hear each other."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paceline.bus.packing import NOTIFICATIONS
from paceline.bus.protocol import Hint, Notifier
from paceline.clock import DatabaseClock, SystemClock, boot_id, measure_offset
from paceline.config import FOLDER, Settings
from paceline.errors import UsageError
from paceline.store.doors import postgres_store, postgres_visits, sqlite_store
from paceline.store.places import check_file, make_folder
from paceline.store.postgres_place import Place, names_postgres, place_of
from paceline.store.protocol import Visits
from paceline.store.sql import Store
from paceline.store.tx import Tx

SQLITE_PREFIX = "sqlite://"
MEMORY = ("", ":memory:", "/:memory:")
LONGEST_CHANNEL = 63
"""Postgres knows no longer names; stores whose long names begin alike get each other's hints, which does no harm."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An open store with the facts that belong to it."""

    store: Store
    id: str
    notifier: Callable[[], Notifier]
    """What carries hints to and from everybody else who uses the store."""
    tell: Callable[[Sequence[Hint]], object]
    """The same in one direction, for programs without an event loop."""
    visits: Visits | None = None
    """The way into open transactions of the application, where a database has one."""


def path_of(url: str) -> Path | None:
    """The file a `sqlite:///…` URL names (three slashes: relative, four: absolute); None for memory."""
    if not url.startswith(SQLITE_PREFIX) or not url.isprintable():
        raise _bad(
            url,
            "this does not name a store",
            "sqlite:///relative.db, sqlite:////absolute.db, sqlite://:memory:, postgresql://user@host/database",
        )
    rest = url.removeprefix(SQLITE_PREFIX)
    if rest in MEMORY:
        return None
    if not rest.startswith("/"):
        raise _bad(url, "a store on this host has three slashes", f"sqlite:///{rest}")
    if not Path(rest[1:]).name:
        raise _bad(url, "this names a folder and no file in it", f"{url.rstrip('/')}/paceline.db")
    return Path(rest[1:])


def place_shown(url: str) -> str:
    """Where a store is, for people: a file, memory, or a URL without its password."""
    if names_postgres(url):
        return place_of(url).shown
    path = path_of(url)
    return "memory" if path is None else str(path.absolute())


def kept(url: str) -> str:
    """The URL as a file of settings may hold it: without a password."""
    return place_of(url).kept if names_postgres(url) else url


def open_store(settings: Settings, *, create: bool = True) -> Opened:
    """Opens the store a program's settings name; `create` makes what is missing and migrates what is older."""
    if names_postgres(settings.store):
        return _open_postgres(settings, place_of(settings.store), create)
    path = path_of(settings.store)
    if path is not None:
        path = path.absolute()
        if not create:
            check_file(path)
        elif path.parent.name == FOLDER:
            make_folder(path.parent)
    clock = SystemClock(measure_offset())
    store = sqlite_store(path, clock, synchronous=settings.synchronous, grow=create)
    try:
        id, clock.offset_us = store.execute(lambda tx: (_facts(tx, settings), _shared_offset(tx, clock.offset_us)))
    except BaseException:
        store.close()
        raise
    hints = None if path is None else path.with_name(f"{path.name}.hints")
    return Opened(store, id, partial(_local_notifier, hints), partial(_tell_host, hints))


def _open_postgres(settings: Settings, place: Place, create: bool) -> Opened:
    """The clock is the database's, which is one for all hosts."""
    store = postgres_store(place, DatabaseClock(measure_offset()), grow=create)
    try:
        id = store.execute(lambda tx: _facts(tx, settings))
    except BaseException:
        store.close()
        raise
    channel = f"paceline_{place.schema}"[:LONGEST_CHANNEL]
    return Opened(
        store,
        id,
        partial(_notifier_of_hosts, place.conninfo, channel),
        partial(_tell_hosts, place.conninfo, channel),
        postgres_visits(place, (channel, NOTIFICATIONS.pack([Hint("cancel")]).decode())),
    )


def _local_notifier(hints: Path | None) -> Notifier:
    from paceline.bus.local import LocalNotifier  # late: who only looks does without

    return LocalNotifier(hints)


def _notifier_of_hosts(conninfo: str, channel: str) -> Notifier:
    from paceline.bus.postgres import PostgresNotifier

    return PostgresNotifier(conninfo, channel)


def _tell_host(folder: Path | None, hints: Sequence[Hint]) -> None:
    if folder is not None:
        from paceline.bus.datagrams import tell_once

        tell_once(folder, hints)


def _tell_hosts(conninfo: str, channel: str, hints: Sequence[Hint]) -> None:
    from paceline.bus.postgres import tell_once

    tell_once(conninfo, channel, hints)


def _bad(url: str, what: str, allowed: str) -> UsageError:
    hidden = "@" in url or "password" in url.lower()
    shown = ("what may hold a password" if hidden else url)[:200].encode("unicode_escape").decode()
    return UsageError(code="bad_store", what=what, found=shown, allowed=allowed)


def _facts(tx: Tx, settings: Settings) -> str:
    """The store's own id, and the limits of the settings where it has none yet."""
    id = tx.listing.fact("store_id")
    if id is None:
        tx.listing.add_fact("store_id", uuid.uuid4().hex[:12])  # somebody else may be opening it as well
        id = str(tx.listing.fact("store_id"))
    tx.pools.seed(settings.limits)
    return id


def _shared_offset(tx: Tx, offset: int) -> int:
    """The clock offset that all processes of this host share since its boot."""
    boot = boot_id()
    known_boot, _, known_offset = (tx.listing.fact("clock") or "").partition(" ")
    if boot and known_boot == boot:
        return int(known_offset)
    tx.listing.set_fact("clock", f"{boot} {offset}")
    return offset
