"""How the rig's processes come to the server, and how the way is cut: by a proxy for each, or between made-up hosts.

A proxy works everywhere: it is silent while its link is cut, and afterwards it goes on, or has forgotten everybody.
With root and `ip` there are real links: the server and two hosts have network namespaces of their own, joined by veth
pairs that nothing else can reach.
"""

import asyncio
import ctypes
import os
import random
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from psycopg.conninfo import conninfo_to_dict

CHUNK = 65_536
FORGETS = 0.4
"""The share of cuts after which the old connections are gone, as when a router between has restarted."""
PORT = 5432
CLONE_NEWNET = 0x40000000
HOMES = {"east": ("submitter", "node0"), "west": ("node1", "node2")}
NETS = {"east": "10.213.77.0", "west": "10.213.77.4"}


class Links:
    """Everybody comes to the server directly, and nothing can be cut."""

    by = ""
    names: Sequence[str] = ()
    """What can be cut."""

    async def open(self, url: str, roles: Sequence[str]) -> None:
        """Makes the ways to a database for these roles."""
        self._url = url

    async def close(self) -> None:
        """Nothing that was made is left."""

    def url(self, role: str) -> str:
        """Where the database is, for a role."""
        return self._url

    def command(self, role: str) -> list[str]:
        """What stands before the command of a role."""
        return []

    def roles(self, name: str) -> list[str]:
        """Who is behind a link."""
        return [name]

    async def cut(self, name: str) -> None:
        """Nothing passes any more."""

    async def heal(self, name: str, chance: random.Random) -> None:
        """Everything passes again."""


class Proxy:
    """One link: a socket in a folder of its own, behind it the server's."""

    def __init__(self, folder: Path, upstream: dict[str, Any]) -> None:
        self._folder = folder
        self._upstream = upstream
        self._open = asyncio.Event()
        self._open.set()
        self._passing: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listens."""
        self._folder.mkdir(parents=True)
        self._server = await asyncio.start_unix_server(self._accept, self._folder / f".s.PGSQL.{PORT}")

    def close(self) -> None:
        """Ends it and everything that passes through it."""
        self._server.close()
        self.forget()

    def cut(self) -> None:
        """Silence."""
        self._open.clear()

    def heal(self) -> None:
        """What was held up goes on."""
        self._open.set()

    def forget(self) -> None:
        """Both ends of every connection are told that it is gone."""
        for writer in self._writers:
            writer.transport.abort()
        for task in self._passing:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._open.wait()
            upstream_reader, upstream = await self._connect()
        except OSError:
            writer.close()
            self._writers.discard(writer)
            return
        self._writers.add(upstream)
        for one, other in ((reader, upstream), (upstream_reader, writer)):
            task = asyncio.create_task(self._pass(one, other))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._upstream.get("host", "localhost"), self._upstream.get("port", PORT)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
        await self._open.wait()
        writer.close()
        self._writers.discard(writer)


class Proxies(Links):
    """A proxy for each process."""

    by = "proxy"

    def __init__(self, where: Path) -> None:
        self._where = where
        self._proxies: dict[str, Proxy] = {}

    async def open(self, url: str, roles: Sequence[str]) -> None:
        """A proxy for each role."""
        self._url = url
        self.names = roles
        for role in roles:
            self._proxies[role] = Proxy(self._where / role, conninfo_to_dict(url))
            await self._proxies[role].start()

    async def close(self) -> None:
        """Ends the proxies."""
        for proxy in self._proxies.values():
            proxy.close()

    def url(self, role: str) -> str:
        """The same database behind the role's own socket."""
        parts = urlsplit(self._url)
        who = parts.netloc.rpartition("@")[0]
        netloc = f"{who}@" if who else ""
        return f"postgresql://{netloc}{parts.path}?host={quote(str(self._where / role), safe='')}&port={PORT}"

    async def cut(self, name: str) -> None:
        """The role's proxy falls silent."""
        self._proxies[name].cut()

    async def heal(self, name: str, chance: random.Random) -> None:
        """It goes on; now and then it has forgotten every connection."""
        if chance.random() < FORGETS:
            self._proxies[name].forget()
        self._proxies[name].heal()


class Namespaces(Links):
    """Two hosts, each with a link of its own to the server's; a cut takes a host's link down."""

    by = "namespaces"
    names = ("east", "west")

    def __init__(self) -> None:
        self._name = f"paceline-{secrets.token_hex(3)}"
        self.carry: Executor
        """Whatever this runs, and starts, is where the server is."""

    @contextmanager
    def made(self) -> Iterator[None]:
        """The namespaces, for as long as the rig lasts."""
        with ExitStack() as until:
            self._add("server", until)
            for host, net in NETS.items():
                self._add(host, until)
                _ip("link", "add", host, "netns", self._ns("server"), "type", "veth",
                    "peer", "name", "uplink", "netns", self._ns(host))  # fmt: skip
                _ip("-n", self._ns("server"), "address", "add", f"{_address(net, 1)}/30", "dev", host)
                _ip("-n", self._ns("server"), "link", "set", host, "up")
                _ip("-n", self._ns(host), "address", "add", f"{_address(net, 2)}/30", "dev", "uplink")
                _ip("-n", self._ns(host), "link", "set", "dev", "uplink", "up")
            self.carry = until.enter_context(ThreadPoolExecutor(1, initializer=_enter, initargs=(self._ns("server"),)))
            yield

    def settings(self, where: Path) -> dict[str, str]:
        """What the server must be told: where it listens, and that whoever can reach it there is one of us."""
        rules = where / "hosts.conf"
        rules.write_text("local all all trust\nhost all all 10.213.77.0/29 trust\n")
        rules.chmod(0o644)
        return {"listen_addresses": ",".join(_address(net, 1) for net in NETS.values()), "hba_file": str(rules)}

    def url(self, role: str) -> str:
        """The server's address on the link of the role's host."""
        parts = urlsplit(self._url)
        return f"postgresql://postgres@{_address(NETS[self._home(role)], 1)}:{PORT}{parts.path}"

    def command(self, role: str) -> list[str]:
        """A process of that host."""
        return ["ip", "netns", "exec", self._ns(self._home(role))]

    def roles(self, name: str) -> list[str]:
        """Who lives on a host."""
        return list(HOMES[name])

    async def cut(self, name: str) -> None:
        """The host's link goes down."""
        await asyncio.to_thread(_ip, "-n", self._ns(name), "link", "set", "dev", "uplink", "down")

    async def heal(self, name: str, chance: random.Random) -> None:
        """And up again: connections that were not given up go on."""
        await asyncio.to_thread(_ip, "-n", self._ns(name), "link", "set", "dev", "uplink", "up")

    def _home(self, role: str) -> str:
        return next(host for host, roles in HOMES.items() if role in roles)

    def _add(self, part: str, until: ExitStack) -> None:
        _ip("netns", "add", self._ns(part))
        until.callback(_ip, "netns", "delete", self._ns(part))
        _ip("-n", self._ns(part), "link", "set", "lo", "up")

    def _ns(self, part: str) -> str:
        return f"{self._name}-{part}"


def why_no_namespaces() -> str:
    """Why this machine has no network namespaces for us; empty when it has."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "that takes root and iproute2"
    name = f"paceline-{secrets.token_hex(3)}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
    except RuntimeError as error:
        return str(error)
    return ""


def _address(net: str, place: int) -> str:
    """The server has the first address of a link's net, the host the second."""
    front, _, last = net.rpartition(".")
    return f"{front}.{int(last) + place}"


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _enter(namespace: str) -> None:
    """This thread, and whatever it starts, lives in the namespace from now on; other threads do not."""
    with Path("/run/netns", namespace).open() as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
