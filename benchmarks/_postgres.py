"""What `--store` names: SQLite files, a Postgres of our own that syncs every commit, or one that is there."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _measure import REPOSITORY, Files, folder, url

sys.path.append(str(REPOSITORY / "tests"))  # the tests have what starts a server, and it is one thing

from postgres_server import PrivateServer, database_on

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
OWN, PREFIXES = "postgres", ("postgresql://", "postgres://")
SHOWN = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections")


def add_store(parser: argparse.ArgumentParser) -> None:
    """`--store` with the default of every benchmark: a SQLite file."""
    parser.add_argument(
        "--store", type=_store, default="sqlite", metavar="sqlite|postgres|postgresql://…",
        help="where jobs are kept; `postgres` starts a server of its own (default: %(default)s)",
    )  # fmt: skip


def _store(said: str) -> str:
    if said not in ("sqlite", OWN) and not said.startswith(PREFIXES):
        raise argparse.ArgumentTypeError(f"{said!r} is not sqlite, postgres or postgresql://…")
    return said


class Databases:
    """Databases on one server; each run gets one of its own."""

    def __init__(self, server: str, until: ExitStack) -> None:
        self._server = server
        self._until = until

    def fresh(self) -> str:
        """The URL of a new, empty database, which is dropped when the server is left."""
        return self._until.enter_context(database_on(self._server))


@contextmanager
def databases(store: str) -> Iterator[Databases]:
    """On a server of our own for `postgres`, its data on the disk of the repository; or on the one named."""
    with ExitStack() as until:
        if store == OWN:
            where = until.enter_context(folder())
            where.chmod(0o711)  # under root the server runs as somebody else, who must come through here
            store = until.enter_context(PrivateServer(DURABLE, where)).url
        yield Databases(store, until)


@contextmanager
def stores(store: str, where: Path) -> Iterator[Callable[[], str]]:
    """Names a new, empty store each time it is asked; files are made in the folder."""
    if store == "sqlite":
        files = Files(where)
        yield lambda: url(files.fresh())
    else:
        with databases(store) as found:
            yield found.fresh


def kind(store: str) -> str:
    """The store in one word, without user and host."""
    return "sqlite" if store == "sqlite" else "postgres"


def figures(url: str) -> dict[str, str]:
    """What must be known of the server to read the figures; nothing of a file."""
    if not url.startswith(PREFIXES):
        return {}
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute("select name, setting from pg_settings where name = any(%s)", (list(SHOWN),))
        return dict(rows.fetchall())
