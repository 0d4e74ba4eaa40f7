"""How far hints go, and that they stay in the process when the way to others is not safe or not there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bus.hearing import READY, in_a_loop, sockets, started, turn
from paceline.bus.datagrams import tell_once
from paceline.bus.protocol import Notifier


def test_a_folder_reaches_the_whole_host_and_no_folder_the_process(tmp_path: Path) -> None:
    async def scene() -> None:
        with started() as (alone, _), started(tmp_path / "bus") as (open_to_all, _):
            known: list[Notifier] = [alone, open_to_all]
            reaches = [(notifier.reach, notifier.reason) for notifier in known]
            assert reaches == [("process", "no folder was given"), ("host", "")]

    in_a_loop(scene)


def symlinked(folder: Path) -> None:
    folder.with_name("elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.with_name("elsewhere"))


def open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o750)


def somebody_elses(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    try:
        os.chown(folder, os.geteuid() + 1, -1)
    except PermissionError:
        pytest.skip("only root can give a folder away")


def absent(_: Path) -> None:
    """There is nothing, and it cannot be made."""


UNSAFE: dict[str, Callable[[Path], None]] = {
    "is a symbolic link": symlinked,
    "is not a folder": Path.touch,
    "is open to others (mode 750, needed 700)": open_to_others,
    "belongs to user": somebody_elses,
    "cannot look at": absent,
    "embedded null": absent,
}


@pytest.mark.parametrize("reason", UNSAFE)
def test_a_folder_that_is_not_ours_alone_is_not_used_and_the_reason_is_told(tmp_path: Path, reason: str) -> None:
    folder = tmp_path / {"cannot look at": "missing/bus", "embedded null": "b\0us"}.get(reason, "bus")
    UNSAFE[reason](folder)

    async def scene() -> None:
        with started(folder) as (notifier, heard):
            assert notifier.reach == "process"
            assert reason in notifier.reason
            assert str(folder) in notifier.reason
            notifier.tell([READY])
            await turn()
            assert heard.calls == [(READY,)]

    in_a_loop(scene)
    assert tell_once(folder, [READY]) == 0


def test_a_path_too_long_for_a_socket_reaches_the_process_only(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)

    async def scene() -> None:
        with started(folder) as (notifier, heard):
            assert notifier.reach == "process"
            assert "too long" in notifier.reason
            notifier.tell([READY])
            await turn()
            assert heard.calls == [(READY,)]
            assert sockets(folder) == []

    in_a_loop(scene)
    assert tell_once(folder, [READY]) == 0


@pytest.mark.parametrize("length", range(100, 112))
def test_near_the_longest_path_who_says_host_can_really_be_told(tmp_path: Path, length: int) -> None:
    own = len(f"/{os.getpid()}-01234567.sock")
    folder = tmp_path / ("x" * (length - own - len(f"{tmp_path}/")))

    async def scene() -> None:
        with started(folder) as (notifier, _):
            assert tell_once(folder, [READY]) == (1 if notifier.reach == "host" else 0)

    in_a_loop(scene)


def test_a_socket_that_cannot_be_shown_to_others_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bus"

    def refuse(*_: str) -> None:
        raise PermissionError("no new names here")

    async def scene() -> None:
        monkeypatch.setattr(os, "rename", refuse)
        with started(folder) as (notifier, _):
            assert notifier.reach == "process"
            assert "no new names here" in notifier.reason
            assert sockets(folder) == []

    in_a_loop(scene)


def test_a_platform_without_such_sockets_reaches_the_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bus"
    monkeypatch.setattr("paceline.bus.local.SUPPORTED", False)

    async def scene() -> None:
        with started(folder) as (notifier, heard):
            assert (notifier.reach, notifier.reason) == ("process", "this platform has no Unix sockets")
            notifier.tell([READY])
            await turn()
            assert heard.calls == [(READY,)]

    in_a_loop(scene)
    assert tell_once(folder, [READY]) == 0
