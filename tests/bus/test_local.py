"""Hints within one process, and over sockets between notifiers that share a folder."""

import asyncio
import os
import pickle
import socket
import struct
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.bus.datagrams import MOST_IDS_SENT, Mailbox, Neighbours, new_socket, pack, sent_by_this_user, unpack
from paceline.bus.local import LocalNotifier, tell_once
from paceline.bus.protocol import Hint, Notifier, Topic, merged

READY = Hint("ready")
TOPICS: list[Topic] = ["ready", "ended", "nodes", "cancel"]
PATIENCE_S = 10


class Heard:
    """A listener that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Hint, ...]] = []
        self.threads: set[int] = set()
        self._changed = asyncio.Event()

    def __call__(self, hints: tuple[Hint, ...]) -> None:
        self.calls.append(hints)
        self.threads.add(threading.get_ident())
        self._changed.set()

    @property
    def hints(self) -> list[Hint]:
        return [hint for call in self.calls for hint in call]

    async def until(self, hint: Hint) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while hint not in self.hints:
                self._changed.clear()
                await self._changed.wait()


@contextmanager
def started(folder: Path | None = None) -> Iterator[tuple[LocalNotifier, Heard]]:
    notifier, heard = LocalNotifier(folder), Heard()
    notifier.listen(heard)
    notifier.start()
    try:
        yield notifier, heard
    finally:
        notifier.stop()


async def turn() -> None:
    """Lets everything that is planned for the loop's next turns happen."""
    for _ in range(3):
        await asyncio.sleep(0)


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


def sockets(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bus"


@pytest.fixture
def speaker() -> Iterator[socket.socket]:
    with new_socket() as fresh:
        yield fresh


def test_a_hint_reaches_every_listener_of_the_process() -> None:
    async def scene() -> None:
        with started() as (notifier, heard):
            also = Heard()
            notifier.listen(also)
            notifier.tell([Hint("ended", (1, 2))])
            assert heard.calls == []
            await turn()
            assert heard.calls == also.calls == [(Hint("ended", (1, 2)),)]

    in_a_loop(scene)


def test_many_tells_between_two_turns_become_one_call() -> None:
    async def scene() -> None:
        with started() as (notifier, heard):
            for job in range(100):
                notifier.tell([Hint("ended", (job,)), READY])
            await turn()
            assert heard.calls == [(Hint("ended", tuple(range(100))), READY)]

    in_a_loop(scene)


def test_a_stalled_loop_holds_few_hints_however_many_are_told() -> None:
    async def scene() -> None:
        with started() as (notifier, heard):
            for job in range(20_000):
                notifier.tell([Hint("ended", (job,)), Hint("cancel", (job % 7,))])
            assert len(notifier._held) <= 1_001
            await turn()
            assert heard.calls == [(Hint("ended"), Hint("cancel", (0, 1, 2, 3, 4, 5, 6)))]

    in_a_loop(scene)


def test_telling_from_another_thread_calls_back_on_the_loop() -> None:
    async def scene() -> None:
        with started() as (notifier, heard):
            teller = threading.Thread(target=notifier.tell, args=([Hint("cancel", (9,))],))
            teller.start()
            await heard.until(Hint("cancel", (9,)))
            teller.join()
            assert heard.threads == {threading.get_ident()}

    asyncio.run(scene(), debug=True)  # which refuses what is not safe between threads


def test_who_has_unsubscribed_hears_nothing_even_of_the_delivery_under_way() -> None:
    async def scene() -> None:
        notifier, late = LocalNotifier(), Heard()
        notifier.listen(lambda _: unsubscribe())
        unsubscribe = notifier.listen(late)
        notifier.start()
        notifier.tell([READY])
        await turn()
        unsubscribe()
        notifier.stop()
        assert late.calls == []

    in_a_loop(scene)


def test_a_listener_that_fails_is_reported_and_silences_nobody() -> None:
    async def scene() -> None:
        reports: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report["exception"]))
        notifier, heard = LocalNotifier(), Heard()
        failure = RuntimeError("a listener's own fault")

        def fail(_: tuple[Hint, ...]) -> None:
            raise failure

        notifier.listen(fail)
        notifier.listen(heard)
        notifier.start()
        notifier.tell([READY])
        await turn()
        notifier.stop()
        assert (heard.calls, reports) == ([(READY,)], [failure])

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
            notifier.stop()
            notifier.stop()
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


def test_a_folder_reaches_the_whole_host_and_no_folder_the_process() -> None:
    async def scene() -> None:
        with started() as (notifier, _):
            known: Notifier = notifier
            assert (known.reach, known.reason) == ("process", "no folder was given")

    in_a_loop(scene)


def test_notifiers_that_share_a_folder_hear_each_other_and_themselves_once(folder: Path) -> None:
    async def scene() -> None:
        with started(folder) as (one, by_one), started(folder) as (other, by_other):
            one.tell([Hint("ended", (1,))])
            other.tell([Hint("cancel", (2,))])
            await by_one.until(Hint("cancel", (2,)))
            await by_other.until(Hint("ended", (1,)))
            assert sorted(by_one.hints) == sorted(by_other.hints) == [Hint("cancel", (2,)), Hint("ended", (1,))]
            assert mode_of(folder) == 0o700

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


@given(st.binary(max_size=200))
def test_any_bytes_are_hints_or_nothing(datagram: bytes) -> None:
    told = unpack(datagram)
    assert told is None or all(hint.topic in TOPICS for hint in told)


some_hints = st.lists(
    st.builds(Hint, st.sampled_from(TOPICS), st.lists(st.integers(0, 50), max_size=5).map(tuple)), max_size=12
)


@given(some_hints, st.integers(1, 8))
def test_merging_gives_one_hint_a_topic_and_loses_an_id_only_by_saying_look_for_yourself(
    hints: list[Hint], most: int
) -> None:
    together = merged(hints, most)
    assert [hint.topic for hint in together] == list(dict.fromkeys(hint.topic for hint in hints))
    for topic, ids in together:
        told = [hint.ids for hint in hints if hint.topic == topic]
        every = list(dict.fromkeys(one for some in told for one in some))
        look_for_yourself = not all(told) or len(every) > most
        assert list(ids) == ([] if look_for_yourself else every)


@given(some_hints)
def test_a_datagram_carries_what_was_told(hints: list[Hint]) -> None:
    assert unpack(pack(hints)) == list(merged(hints, MOST_IDS_SENT))


def test_what_does_not_fit_into_a_datagram_becomes_a_hint_without_ids() -> None:
    many = tuple(range(2**62, 2**62 + MOST_IDS_SENT))
    assert unpack(pack([Hint(topic, many) for topic in TOPICS])) == [Hint(topic, many) for topic in TOPICS]
    assert len(pack([Hint(topic, many) for topic in TOPICS])) < 32_768
    assert unpack(pack([Hint("ended", (*many, 1))])) == [Hint("ended")]
    assert unpack(pack([Hint("ended", (2**70,)), READY])) == [Hint("ended"), READY]


def test_who_reads_slowly_is_told_to_look_for_itself(folder: Path, speaker: socket.socket) -> None:
    folder.mkdir(mode=0o700)
    slow = Mailbox(folder)
    others = Neighbours(folder, speaker)
    jobs = list(range(1, 100))
    newly_owed = [others.send([Hint("ended", (job,))]) for job in jobs]
    told, _ = slow.read()
    assert told == [Hint("ended", (job,)) for job in jobs[: len(told)]]
    assert 0 < len(told) < len(jobs)
    assert newly_owed == [job == len(told) + 1 for job in jobs]
    assert not others.send([READY])
    assert slow.read() == ([], 0)
    assert not others.pay()
    assert slow.read() == ([Hint("ended"), READY], 0)
    assert not others.send([READY])
    assert slow.read() == ([READY], 0)
    slow.withdraw()
    slow.socket.close()


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


def test_a_debt_to_the_dead_is_forgotten(folder: Path, speaker: socket.socket) -> None:
    folder.mkdir(mode=0o700)
    dying = Mailbox(folder)
    others = Neighbours(folder, speaker)
    assert sum(others.send([READY]) for _ in range(100)) == 1
    assert others.pay()
    dying.socket.close()
    assert not others.pay()
    assert sockets(folder) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the sender of a datagram")
def test_only_this_user_is_believed() -> None:
    def note(user: int, kind: int = socket.SCM_CREDENTIALS) -> tuple[int, int, bytes]:
        return socket.SOL_SOCKET, kind, struct.pack("iII", 1, user, 0)

    assert sent_by_this_user([note(os.getuid())])
    assert not sent_by_this_user([note(os.getuid() + 1)])
    assert not sent_by_this_user([note(os.getuid(), kind=socket.SCM_RIGHTS)])
    assert not sent_by_this_user([])


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
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.bus.local.SUPPORTED", False)

    async def scene() -> None:
        with started(folder) as (notifier, heard):
            assert (notifier.reach, notifier.reason) == ("process", "this platform has no Unix sockets")
            notifier.tell([READY])
            await turn()
            assert heard.calls == [(READY,)]

    in_a_loop(scene)
    assert tell_once(folder, [READY]) == 0
