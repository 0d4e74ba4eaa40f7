"""Telling a process from a later one with the same id, and the living from the dead."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.core.problem import Problem
from paceline.workers import identity
from paceline.workers.identity import ProcessIdentity, current, of, state_of, state_seen_here

PATIENCE_S = 30
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel for what only Linux tells")


@contextmanager
def child(code: str = "import sys; print('up', flush=True); sys.stdin.read()") -> Iterator[subprocess.Popen[str]]:
    """A process that lives until it is killed or its standard input is closed."""
    arguments = [sys.executable, "-S", "-E", "-c", code]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def known(pid: int) -> ProcessIdentity:
    found = of(pid)
    assert found is not None
    return found


@pytest.fixture(params=["proc", "psutil"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux reads /proc; the way of the other platforms works here as well."""
    if request.param == "psutil":
        monkeypatch.setattr(identity, "_LOOKS", {})
    elif sys.platform != "linux":
        pytest.skip("there is no /proc")


@pytest.mark.usefixtures("each_way")
def test_this_process_is_alive_under_its_own_name() -> None:
    assert state_of(current()) == "alive"
    assert current() == of(os.getpid()) == current()


@pytest.mark.usefixtures("each_way")
def test_a_child_is_alive_until_it_is_killed_and_dead_before_anybody_has_waited_for_it() -> None:
    with child() as process:
        name = known(process.pid)
        assert state_of(name) == "alive"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert (state_of(name), of(process.pid)) == ("dead", None)
        process.wait(PATIENCE_S)
        assert (state_of(name), of(process.pid)) == ("dead", None)


@pytest.mark.usefixtures("each_way")
def test_a_process_id_that_came_back_for_somebody_else_is_dead() -> None:
    mine = current()
    assert state_of(replace(mine, started=mine.started - 10_000_000)) == "dead"
    assert state_of(replace(mine, started=mine.started + 10_000_000)) == "dead"


@on_linux
def test_one_tick_of_difference_in_the_start_time_is_another_process() -> None:
    assert state_of(replace(current(), started=current().started + 1)) == "dead"


@pytest.mark.usefixtures("each_way")
def test_two_processes_have_two_names() -> None:
    with child() as one, child() as other:
        assert len({known(one.pid), known(other.pid), current()}) == 3


def test_nothing_is_known_of_a_process_of_another_boot_which_may_be_one_of_another_host() -> None:
    there = str(replace(current(), boot="00000000-0000-0000-0000-000000000000"))
    assert (state_seen_here(there), state_seen_here(str(current())), state_seen_here("p1")) == (
        "unknown", "alive", "unknown",
    )  # fmt: skip


def test_a_process_of_an_earlier_boot_is_dead_whatever_runs_under_its_id() -> None:
    assert state_of(replace(current(), boot="00000000-0000-0000-0000-000000000000")) == "dead"


@pytest.mark.parametrize("unclear", [{"boot": ""}, {"namespace": "1"}, {"namespace": ""}, {"started": 0}], ids=str)
@on_linux
def test_what_the_identity_does_not_say_is_not_guessed(unclear: dict[str, str | int]) -> None:
    mine = current()
    parts = {"boot": mine.boot, "namespace": mine.namespace, "pid": mine.pid, "started": mine.started, **unclear}
    text = "{boot}/{namespace}/{pid}/{started}".format(**parts)
    assert state_of(ProcessIdentity.parse(text)) == "unknown"


def test_without_any_way_to_look_nobody_is_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_LOOKS", {})
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert state_of(current()) == "unknown"
    assert (current().pid, current().started) == (os.getpid(), 0)
    assert of(os.getpid()) is None


@on_linux
def test_a_process_that_proc_hides_is_not_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    with child() as process:
        name = known(process.pid)
        monkeypatch.setattr(Path, "read_text", hidden)
        assert state_of(name) == "unknown"
        process.kill()
        process.wait(PATIENCE_S)
        assert state_of(name) == "dead"


def hidden(*_: object, **__: object) -> str:
    raise FileNotFoundError


@on_linux
def test_a_proc_that_counts_in_another_namespace_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = current()
    monkeypatch.setattr(os, "readlink", lambda _: "1")
    assert state_of(name) == "unknown"


@on_linux
def test_a_name_with_brackets_and_blanks_does_not_confuse() -> None:
    rename = "open('/proc/self/comm', 'w').write(') Z 1 (x')\n"
    with child(f"import sys\n{rename}print('up', flush=True); sys.stdin.read()") as process:
        assert state_of(known(process.pid)) == "alive"


@on_linux
def test_a_process_lives_on_in_its_threads_when_the_first_has_ended() -> None:
    """The first thread leaves without ending the process, and the kernel shows it as a zombie."""
    code = """
import ctypes, os, threading
def work():
    main.join(0)
    while open(f'/proc/{os.getpid()}/stat').read().rpartition(')')[2].split()[0] != 'Z': pass
    os.write(1, b'up\\n')
    os.read(0, 1)
    os._exit(0)
main = threading.main_thread()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    with child(code) as process:
        assert state_of(known(process.pid)) == "alive"
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert of(process.pid) is None


@pytest.mark.usefixtures("each_way")
def test_an_identity_survives_being_written_down() -> None:
    assert ProcessIdentity.parse(str(current())) == current()
    bare = ProcessIdentity(boot="", namespace="", pid=1, started=0)
    assert ProcessIdentity.parse(str(bare)) == bare


@pytest.mark.parametrize(
    "text",
    ["", "b/n/1", "b/n/1/2/3", "b/n/0/2", "b/n/-1/2", "b/n/x/2", "b/n/1/", "b/n/٣/2", "b/n/9999999999/2", "b/n/1/2\n"],
)
def test_text_that_names_no_process_is_refused(text: str) -> None:
    with pytest.raises(Problem) as refused:
        ProcessIdentity.parse(text)
    assert refused.value.code == "bad_process_identity"


@pytest.mark.usefixtures("each_way")
def test_any_thread_gives_the_same_name() -> None:
    names: list[ProcessIdentity] = []
    thread = threading.Thread(target=lambda: names.append(current()))
    thread.start()
    thread.join()
    assert names == [current()]
