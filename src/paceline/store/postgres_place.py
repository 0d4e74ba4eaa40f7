"""Where a store on Postgres is: its URL, taken apart into what libpq knows and what only we know."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from paceline.errors import UsageError

PREFIXES = ("postgresql://", "postgres://")
OWN = {"schema": "paceline", "prepare": "on"}
"""Parameters of the URL that are ours, with what holds when they are not given."""
HARMLESS = {
    "host", "hostaddr", "port", "dbname", "user", "schema", "prepare", "sslmode", "sslrootcert", "connect_timeout",
    "application_name", "options", "target_session_attrs", "channel_binding", "gssencmode", "keepalives",
}  # fmt: skip
_LONGEST_NAME = 63
_PARAMETER = re.compile(r"[a-z_]+")
_BAD_CODE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Place:
    """One store in one schema of one database."""

    conninfo: str
    schema: str
    prepare: bool
    """Statements are prepared once per connection; a pooler before 1.21 cannot have that."""

    @property
    def shown(self) -> str:
        """The place as people may see it: without the password, and with the schema where it is not the usual one."""
        parts = urlsplit(self.conninfo)
        front, at, host = parts.netloc.rpartition("@")
        user = front.partition(":")[0]
        netloc = f"{user}:***@{host}" if ":" in front else f"{user}{at}{host}"
        own = "" if self.schema == OWN["schema"] else f"schema={self.schema}"
        query = "&".join(part for part in (_without_password(parts.query), own) if part)
        return _joined(parts._replace(netloc=netloc, query=query))

    @property
    def kept(self) -> str:
        """What may be written into a file of settings: the whole place, and no password."""
        own = {"schema": self.schema, "prepare": "on" if self.prepare else "off"}
        said = "&".join(f"{name}={value}" for name, value in own.items() if value != OWN[name])
        return self.open + (f"{'&' if '?' in self.open else '?'}{said}" if said else "")

    @property
    def open(self) -> str:
        """What other programs may be given: as libpq takes it, and without any password."""
        parts = urlsplit(self.conninfo)
        front, at, host = parts.netloc.rpartition("@")
        netloc = f"{front.partition(':')[0]}{at}{host}"
        pairs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if "password" not in pair[0]]
        return _joined(parts._replace(netloc=netloc, query=urlencode(pairs, quote_via=quote)))


def names_postgres(url: str) -> bool:
    """The URL is of this kind, well formed or not."""
    return url.startswith(PREFIXES)


def place_of(url: str) -> Place:
    """The parts of a URL; libpq judges its own when it connects."""
    parts, given = _split(url)
    own = {**OWN, **{name: value for name, value in given if name in OWN}}
    _refuse_unless(own["prepare"] in ("on", "off"), "prepare", own["prepare"], "on, off")
    schema = own["schema"]
    fits = schema.replace("_", "a").isalnum() and schema.isascii() and schema == schema.lower()
    fits = fits and not schema[:1].isdigit() and not schema.startswith("pg_") and len(schema) <= _LONGEST_NAME
    _refuse_unless(fits, "schema", schema, "lower-case letters, digits and _, at most 63, no digit first, not pg_…")
    rest = urlencode([(name, value) for name, value in given if name not in OWN], quote_via=quote)
    return Place(_joined(parts._replace(query=rest)), schema, own["prepare"] == "on")


def _split(url: str) -> tuple[SplitResult, list[tuple[str, str]]]:
    """A URL and its parameters; what a password may have torn apart is refused, and nothing of it is shown."""
    try:
        parts: SplitResult | None = urlsplit(url)
    except ValueError:  # an address in brackets that is none
        parts = None
    given = parse_qsl(parts.query, keep_blank_values=True) if parts is not None else []
    torn = (
        parts is None
        or parts.netloc.count("@") > 1
        or "@" in parts.path
        or parts.fragment
        or _BAD_CODE.search(url)
        or not url.isprintable()
    )
    if parts is None or torn or not all(_PARAMETER.fullmatch(name) for name, _ in given):
        raise UsageError(
            code="bad_store", what="the store's URL cannot be taken apart",
            allowed="postgresql://user:password@host:port/database?schema=name",
            todo="write % / ? # @ : in a user's name or password as %25 %2F %3F %23 %40 %3A",
        )  # fmt: skip
    return parts, given


def _joined(parts: SplitResult) -> str:
    """The URL again; the slashes stay where no host is named."""
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")


def _refuse_unless(fits: bool, name: str, found: str, allowed: str) -> None:
    if not fits:
        raise UsageError(
            code="bad_store", what=f"the store's URL says {name}= in a way that cannot be", found=found[:100],
            allowed=allowed,
        )  # fmt: skip


def _without_password(query: str) -> str:
    """Only what is known to be no secret is shown: a misspelt parameter may be one."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value if name in HARMLESS else "***") for name, value in pairs], safe="*/")
