"""Where a store on Postgres is: its URL, taken apart into what libpq knows and what only we know."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from paceline.errors import UsageError

PREFIXES = ("postgresql://", "postgres://")
OWN = {"schema": "paceline", "prepare": "on"}
"""Parameters of the URL that are ours, with what holds when they are not given."""
_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Place:
    """One store in one schema of one database."""

    conninfo: str
    schema: str
    prepare: bool
    """Statements are prepared once per connection; a pooler before 1.21 cannot have that."""

    @property
    def shown(self) -> str:
        """The place as people may see it: without the password."""
        parts = urlsplit(self.conninfo)
        front, at, host = parts.netloc.rpartition("@")
        user = front.partition(":")[0]
        netloc = f"{user}:***@{host}" if ":" in front else f"{user}{at}{host}"
        return urlunsplit(parts._replace(netloc=netloc, query=_without_password(parts.query)))


def names_postgres(url: str) -> bool:
    """The URL is of this kind, well formed or not."""
    return url.startswith(PREFIXES)


def place_of(url: str) -> Place:
    """The parts of a URL; libpq judges its own when it connects."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    own = {**OWN, **{name: value for name, value in given if name in OWN}}
    _refuse_unless(own["prepare"] in ("on", "off"), "prepare", own["prepare"], "on, off")
    schema = own["schema"]
    fits = schema.replace("_", "a").isalnum() and schema.isascii() and schema == schema.lower()
    fits = fits and not schema[:1].isdigit() and not schema.startswith("pg_") and len(schema) <= _LONGEST_NAME
    _refuse_unless(fits, "schema", schema, "lower-case letters, digits and _, at most 63, no digit first, not pg_…")
    rest = urlencode([(name, value) for name, value in given if name not in OWN], quote_via=quote)
    return Place(urlunsplit(parts._replace(query=rest)), schema, own["prepare"] == "on")


def _refuse_unless(fits: bool, name: str, found: str, allowed: str) -> None:
    if not fits:
        raise UsageError(
            code="bad_store", what=f"the store's URL says {name}= in a way that cannot be", found=found[:100],
            allowed=allowed,
        )  # fmt: skip


def _without_password(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, "***" if "password" in name else value) for name, value in pairs], safe="*/")
