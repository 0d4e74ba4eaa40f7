"""Hints over sockets between notifiers that share a folder."""

import asyncio
import os
import pickle
import socket
from pathlib import Path

import msgspec
import pytest

from bus.hearing import PATIENCE_S, READY, Heard, in_a_loop, sockets, started, turn
from paceline.bus.datagrams import Mailbox, pack, tell_once
from paceline.bus.local import LocalNotifier
from paceline.bus.protocol import Hint


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bus"


def test_a_stalled_loop_holds_few_hints_however_many_are_told() -> None:
    async def scene() -> None:
        with started() as (notifier, heard):
            for job in range(20_000):
                notifier.tell([Hint("ended", (job,)), Hint("cancel", (job % 7,))])
            assert len(notifier._held) <= 1_001
            await turn()
            assert heard.calls == [(Hint("ended"), Hint("cancel", (0, 1, 2, 3, 4, 5, 6)))]

    in_a_loop(scene)


def test_starting_and_stopping_twice_or_out_of_order_is_fine(folder: Path) -> None:
    async def scene() -> None:
        notifier, heard = LocalNotifier(folder), Heard()
        notifier.listen(heard)
        notifier.stop()
        notifier.tell([READY])
        for _ in range(2):
            notifier.start()
            notifier.start()
            assert (notifier.reach, notifier.reason, len(sockets(folder))) == ("host", "", 1)
            notifier.tell([READY])
            await turn()
            assert notifier._mailbox is not None
            number = notifier._mailbox.socket.fileno()
            notifier.stop()
            notifier.stop()
            assert not asyncio.get_running_loop().remove_reader(number)
            assert (notifier.reach, notifier.reason, sockets(folder)) == ("process", "stopped", [])
        notifier.tell([READY])
        await turn()
        assert heard.calls == [(READY,), (READY,)]

    in_a_loop(scene)


def test_a_notifier_whose_loop_was_closed_stays_quiet_and_can_be_stopped(folder: Path) -> None:
    notifier = LocalNotifier(folder)
    notifier.listen(lambda _: None)

    async def forgetful() -> None:
        notifier.start()

    in_a_loop(forgetful)
    notifier.tell([READY])
    notifier.stop()
    assert sockets(folder) == []


def test_a_notifier_left_behind_by_one_loop_can_be_started_on_another(folder: Path) -> None:
    notifier = LocalNotifier(folder)

    async def forgetful() -> None:
        notifier.start()
        notifier.listen(lambda _: None)
        notifier.tell([READY])

    async def scene() -> None:
        heard = Heard()
        notifier.listen(heard)
        notifier.start()
        assert (notifier.reach, len(sockets(folder))) == ("host", 1)
        notifier.tell([READY])
        await heard.until(READY)
        tell_once(folder, [Hint("nodes")])
        await heard.until(Hint("nodes"))
        notifier.stop()

    in_a_loop(forgetful)
    in_a_loop(scene)


def test_a_newcomer_is_told_even_when_the_folder_shows_no_new_time(folder: Path) -> None:
    async def scene() -> None:
        with started(folder) as (one, _):
            one.tell([READY])
            before = os.stat(folder)
            with started(folder) as (_other, by_other):
                os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
                one.tell([Hint("nodes", (3,))])
                await by_other.until(Hint("nodes", (3,)))

    in_a_loop(scene)


def test_a_program_without_a_loop_tells_everybody_once(folder: Path) -> None:
    async def scene() -> None:
        with started(folder) as (_, by_one), started(folder) as (_, by_other):
            assert await asyncio.to_thread(tell_once, folder, [Hint("cancel", (4,))]) == 2
            await by_one.until(Hint("cancel", (4,)))
            await by_other.until(Hint("cancel", (4,)))

    in_a_loop(scene)


def test_telling_once_where_nobody_can_listen_tells_nobody(folder: Path, tmp_path: Path) -> None:
    assert tell_once(folder, [READY]) == 0
    assert tell_once(tmp_path / "nul\0byte", [READY]) == 0
    folder.mkdir(mode=0o700)
    assert tell_once(folder, [READY]) == 0
    Mailbox(folder).socket.close()
    assert tell_once(folder, [READY]) == 0


def test_the_sockets_of_the_dead_are_cleared_away_and_nothing_else(folder: Path) -> None:
    async def scene() -> None:
        with started(folder) as (one, _), started(folder) as (_, by_other):
            living = sockets(folder)
            Mailbox(folder).socket.close()
            for name in ("notes.txt", "1-00000000.sock.bak", "x.sock"):
                (folder / name).touch()
            assert len(sockets(folder)) == 6
            one.tell([READY])
            await by_other.until(READY)
            assert sockets(folder) == sorted([*living, "notes.txt", "1-00000000.sock.bak", "x.sock"])

    in_a_loop(scene)


def test_telling_goes_on_when_the_folder_is_gone(folder: Path) -> None:
    async def scene() -> None:
        with started(folder) as (one, by_one), started(folder):
            remove(folder)
            one.tell([READY])
            one.tell([READY])
            await turn()
            assert READY in by_one.hints

    in_a_loop(scene)


GARBAGE = {
    "nothing": b"",
    "text": b"ready",
    "an unknown topic": msgspec.msgpack.encode([("burn", [1])]),
    "ids that are not numbers": msgspec.msgpack.encode([("ended", ["1"])]),
    "a field too many": msgspec.msgpack.encode([("ended", [1], 2)]),
    "half a hint": pack([Hint("ended", (1, 2, 3))])[:-1],
    "a pickle": pickle.dumps([("ended", (1,))]),
    "a hint and more": pack([READY]) + b"more",
}


@pytest.mark.parametrize("datagram", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_ignored_and_counted_and_the_next_hint_arrives(folder: Path, datagram: bytes) -> None:
    async def scene() -> None:
        with started(folder) as (notifier, heard), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(datagram, str(folder / sockets(folder)[0]))
            assert tell_once(folder, [READY]) == 1
            await heard.until(READY)
            assert (heard.hints, notifier.ignored) == ([READY], 1)

    in_a_loop(scene)


def test_what_is_owed_is_paid_soon_without_another_tell(folder: Path) -> None:
    async def scene() -> None:
        loop, caught_up = asyncio.get_running_loop(), asyncio.Event()
        with started(folder) as (notifier, _):
            slow = Mailbox(folder)
            for job in range(1, 100):
                notifier.tell([Hint("ended", (job,))])
            first, _ = slow.read()
            assert first
            assert Hint("ended") not in first

            def read_on() -> None:
                if Hint("ended") in slow.read()[0]:
                    caught_up.set()

            loop.add_reader(slow.socket, read_on)
            async with asyncio.timeout(PATIENCE_S):
                await caught_up.wait()
            loop.remove_reader(slow.socket)
            slow.withdraw()
            slow.socket.close()

    in_a_loop(scene)
