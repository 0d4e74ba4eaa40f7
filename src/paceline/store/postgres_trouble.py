"""What an error of Postgres means to the person who meets it, and which ones are worth another try."""

import psycopg

from paceline.errors import StoreError
from paceline.store.connection import TryAgain
from paceline.store.postgres_place import Place
from paceline.store.trouble import BUSY, CLOSED, CONSTRAINT, FULL, UNKNOWN, Meaning

UNREACHABLE = Meaning(
    "store_unreachable", "the database cannot be reached", "check that the server runs and that host and port are right"
)
REFUSED = Meaning(
    "store_refused",
    "the server does not let us in",
    "check user, password and pg_hba.conf, and that the database exists",
)
NOT_ALLOWED = Meaning(
    "store_not_allowed",
    "the database user may not do this",
    "grant create on the database, or all rights on the schema",
)
WRITES_NOTHING = Meaning(
    "store_readonly",
    "the server takes no writes: it is a standby, or was told to read only",
    "name the primary, or set default_transaction_read_only off",
)
BAD_URL = Meaning(
    "store_bad_url",
    "the driver does not understand the store's URL",
    "look at the parameters behind the ?; beside schema and prepare they are those of libpq",
)
OTHER_TABLES = Meaning(
    "store_foreign",
    "the schema does not hold the tables of a store",
    "restore a backup, or name another schema: ?schema=name",
)
TOO_SLOW = Meaning(
    "store_timeout", "a statement took too long and was ended", "look for long transactions: `paceline doctor`"
)
CROWDED = Meaning(
    "store_too_many_connections", "the server takes no more connections",
    "raise max_connections, or put PgBouncer before it",
)  # fmt: skip

_MEANINGS: tuple[tuple[str, Meaning], ...] = (
    ("28", REFUSED), ("3D", REFUSED), ("42501", NOT_ALLOWED), ("25006", WRITES_NOTHING), ("53100", FULL),
    ("53300", CROWDED), ("57014", TOO_SLOW), ("55P03", BUSY), ("23", CONSTRAINT), ("08", UNREACHABLE),
    ("57P", UNREACHABLE), ("42703", OTHER_TABLES), ("42P01", OTHER_TABLES),
)  # fmt: skip
"""By the first characters of the SQLSTATE."""

RACES = ("40001", "40P01", "23505", "55P03", "26000")
"""Serialisation, deadlock, a row that somebody else has just inserted, a lock that was held too long, and a prepared
statement that an error before it had prevented."""
LOST = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04")
"""The connection is gone or going: shutdown, crash, start-up, killed, idle for too long."""


def ends_session(error: Exception) -> bool:
    """The server said it as its last word: what was under way may have happened or not."""
    return (getattr(error, "sqlstate", None) or "").startswith(LOST)


def explain(error: Exception, place: Place, lost: bool) -> StoreError | TryAgain:
    """The error in the common form, or that nothing was committed and another try may go well."""
    state = getattr(error, "sqlstate", None) or ""
    if lost or ends_session(error):
        return TryAgain(complaint(UNREACHABLE, place, said(error)), race=False)
    told = complaint(meaning_of(error), place, said(error))
    return TryAgain(told, race=True) if state in RACES else told


def meaning_of(error: Exception) -> Meaning:
    """What kind of trouble it is."""
    state = getattr(error, "sqlstate", None) or ""
    for start, meaning in _MEANINGS:
        if state.startswith(start):
            return meaning
    if isinstance(error, psycopg.OperationalError) and not state:
        return _of_connecting(str(error))
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return BAD_URL
    if isinstance(error, psycopg.InterfaceError):
        return CLOSED
    return UNKNOWN


def complaint(meaning: Meaning, place: Place, found: str) -> StoreError:
    """One kind of trouble, where it is and what was found."""
    return StoreError(code=meaning.code, what=meaning.what, where=place.shown, found=found, todo=meaning.todo)


def said(error: Exception) -> str:
    """The server's or libpq's words in one line."""
    state = getattr(error, "sqlstate", None)
    words = " ".join(str(error).split())[:300]
    return f"{words} ({state})" if state else words


def _of_connecting(words: str) -> Meaning:
    """A refused start of a session has no SQLSTATE in libpq; its words do."""
    if any(word in words for word in ("authentication", "no password", "pg_hba", "does not exist")):
        return REFUSED
    return CROWDED if "too many" in words or "remaining connection slots" in words else UNREACHABLE
