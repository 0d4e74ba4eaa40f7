"""A store and the host around it: limits, other users, forks, processes that stand still or die at a bad moment."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE_S = 60
NOBODY = 65_534
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux tells who holds a lock")

START = """
import asyncio, fcntl, os, resource, signal, sys, threading
from pathlib import Path
from paceline.clock import SystemClock
from paceline.core.problem import Problem
from paceline.store import sqlite
from paceline.store.doors import sqlite_store

path = Path(sys.argv[1])

def opened():
    return sqlite_store(path, SystemClock(0))

def write(store, value="x"):
    store.execute(lambda tx: tx.listing.set_fact("fact", value))

def code_of(action):
    try:
        action()
    except Problem as problem:
        return problem.code
    return "fine"
"""


def run(path: Path, code: str) -> list[str]:
    """The lines that a program prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-c", START + code, str(path)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


@contextmanager
def beside(path: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """A program that runs meanwhile, until its standard input is closed; it has said `ready`."""
    arguments = [sys.executable, "-c", START + code, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of a user who may not do everything; programs become that user once they are loaded."""
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        monkeypatch.setattr(f"{__name__}.START", START + f"os.setgid({NOBODY}); os.setuid({NOBODY})\n")
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def test_without_free_descriptors_the_error_says_so_with_the_limit_and_work_goes_on(path: Path) -> None:
    lines = run(path, """
store = opened()
resource.setrlimit(resource.RLIMIT_NOFILE, (30, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
hoard = []
try:
    while True:
        hoard.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
path = path.with_name("other.db")
for _ in range(12):
    try:
        opened().close()
        print("fine")
    except Problem as problem:
        print(problem.code, "limit of 30" in problem.found)
    write(store)
    os.close(hoard.pop())
""")  # fmt: skip
    refusals = lines.count("store_too_many_files True")
    assert refusals >= 3
    assert lines == ["store_too_many_files True"] * refusals + ["fine"] * (12 - refusals)


def test_a_limit_on_the_size_of_files_is_a_full_disk_until_it_is_lifted(path: Path) -> None:
    assert run(path, """
store = opened()
store.start()
write(store)
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

limit(os.path.getsize(f"{path}-wal"))
print(code_of(lambda: write(store, "lost")))

async def both():
    units = [store.enqueue(lambda tx: tx.listing.set_fact("fact", "lost")) for _ in range(2)]
    return [answer.code for answer in await asyncio.gather(*units, return_exceptions=True)]

print(*asyncio.run(both()))
print(store.look(lambda tx: tx.listing.fact("fact")))
limit(resource.RLIM_INFINITY)
write(store, "kept")
store.close()
print(opened().execute(lambda tx: tx.listing.fact("fact")))
""") == ["store_full", "store_full store_full", "x", "kept"]  # fmt: skip


def test_a_store_that_cannot_be_made_for_want_of_space_can_be_made_later(path: Path) -> None:
    assert run(path, """
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
print(code_of(opened))
print(sorted(os.listdir(path.parent)))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(code_of(opened))
""") == ["store_full", "['work.db.lock']", "fine"]  # fmt: skip


def test_a_forked_child_is_refused_at_every_door_and_its_parent_goes_on(path: Path) -> None:
    assert run(path, """
store = opened()
store.start()
write(store)
inside, go_on = threading.Event(), threading.Event()

def slow(tx):
    inside.set()
    go_on.wait()
    tx.listing.set_fact("fact", "of the parent")

async def child():
    for door in (store.transact, store.read):
        try:
            await door(lambda tx: tx.now)
        except Problem as problem:
            print(problem.code)

writer = threading.Thread(target=store.execute, args=(slow,))
writer.start()
inside.wait()
pid = os.fork()
if not pid:
    print(code_of(lambda: write(store, "of the child")), code_of(lambda: store.look(lambda tx: tx.now)))
    asyncio.run(child())
    store.close()
    sys.stdout.flush()
    os._exit(0)
os.waitpid(pid, 0)
go_on.set()
writer.join()
print(store.look(lambda tx: tx.listing.fact("fact")))
store.close()
""") == ["store_after_fork store_after_fork", "store_after_fork", "store_after_fork", "of the parent"]  # fmt: skip


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_store_that_may_not_be_written_says_whose_it_is_and_who_we_are(ordinary: Path, what: str) -> None:
    path = ordinary / "work.db"
    lines = run(path, f"""
store = opened()
write(store)
store.close()
for name in ("work.db-wal", "work.db-shm", "work.db.lock") if {what == "folder"} else ():
    (path.parent / name).unlink()
os.chmod(path if {what == "file"} else path.parent, {0o400 if what == "file" else 0o500})
try:
    write(opened())
except Problem as problem:
    print(problem.code, problem.found)
""")  # fmt: skip
    assert len(lines) == 1
    assert lines[0].startswith(("store_readonly", "store_cannot_open"))
    assert f"mode {0o400 if what == 'file' else 0o500:04o}" in lines[0]
    assert "we are user" in lines[0]


def test_nothing_is_made_in_a_folder_that_may_not_be_written(ordinary: Path) -> None:
    ordinary.chmod(0o500)
    assert run(ordinary / "work.db", "print(code_of(opened))") == ["store_readonly"]
    assert list(ordinary.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_a_store_that_root_has_made_is_refused_to_others_with_the_command_that_helps(ordinary: Path) -> None:
    path = ordinary / "work.db"
    path.write_bytes(b"something")
    assert run(path, """
try:
    opened()
except Problem as problem:
    print(problem.code, problem.todo)
""") == [f"store_not_ours run as that user, or chown it: sudo chown {NOBODY} {path}"]  # fmt: skip


HOLDS_ITS_TURN = """
def hold(tx):
    print("ready", flush=True)
    sys.stdin.read()

opened().execute(hold)
"""
HOLDS_THE_DATABASE = """
import apsw
other = apsw.Connection(str(path))
other.execute("begin immediate")
print("ready", flush=True)
sys.stdin.read()
"""


@on_linux
@pytest.mark.parametrize("holds", [HOLDS_ITS_TURN, HOLDS_THE_DATABASE], ids=["its turn", "the database"])
def test_who_keeps_a_store_busy_is_named(path: Path, holds: str) -> None:
    run(path, "opened()")
    with beside(path, holds) as holder:
        lines = run(path, """
sqlite.TURN_SECONDS, sqlite.BUSY_MILLISECONDS = 0.05, 50
try:
    write(opened())
except Problem as problem:
    print(problem.code, problem.found)
""")  # fmt: skip
        assert lines[0].startswith("store_busy")
        assert f"held by process {holder.pid} (" in lines[0]


def test_a_turn_ends_with_the_process_that_held_it(path: Path) -> None:
    run(path, "opened()")
    with beside(path, HOLDS_ITS_TURN) as holder:
        waiting = subprocess.Popen(
            [sys.executable, "-c", START + "store = opened()\nwrite(store)\nprint('written')", str(path)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        holder.kill()
        assert waiting.communicate(timeout=PATIENCE_S)[0] == "written\n"


def test_several_processes_that_make_one_store_at_once_make_one(path: Path) -> None:
    code = (
        START
        + """
def mark(tx):
    if tx.listing.fact("id") is None:
        tx.listing.set_fact("id", str(os.getpid()))
    return tx.listing.fact("id")

sys.stdin.read()
print(opened().execute(mark))
"""
    )
    arguments = [sys.executable, "-c", code, str(path)]
    programs = [subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for program in programs:
        assert program.stdin is not None
        program.stdin.close()
        program.stdin = None
    answers = {program.communicate(timeout=PATIENCE_S)[0] for program in programs}
    assert len(answers) == 1
    assert answers.pop().strip().isdigit()
    assert not list(path.parent.glob("*.new"))


def test_an_interrupt_in_the_middle_of_a_unit_undoes_it(path: Path) -> None:
    assert run(path, """
store = opened()
write(store, "before")

def interrupted(tx):
    tx.listing.set_fact("fact", "half")
    signal.raise_signal(signal.SIGINT)

try:
    store.execute(interrupted)
except KeyboardInterrupt:
    print("interrupted")
print(store.execute(lambda tx: tx.listing.fact("fact")))
""") == ["interrupted", "before"]  # fmt: skip
