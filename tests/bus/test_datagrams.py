"""Sockets in one folder, what travels between them, and whom to believe; no event loop."""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.bus.datagrams import Mailbox, Neighbours, new_socket, pack, sent_by_this_user, unpack
from paceline.bus.packing import MOST_IDS_SENT
from paceline.bus.protocol import Hint, Topic, merged

READY = Hint("ready")
TOPICS: list[Topic] = ["ready", "ended", "nodes", "cancel"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bus = tmp_path / "bus"
    bus.mkdir(mode=0o700)
    return bus


@pytest.fixture
def speaker() -> Iterator[socket.socket]:
    with new_socket() as fresh:
        yield fresh


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


def test_a_debt_to_the_dead_is_forgotten(folder: Path, speaker: socket.socket) -> None:
    dying = Mailbox(folder)
    others = Neighbours(folder, speaker)
    assert sum(others.send([READY]) for _ in range(100)) == 1
    assert others.pay()
    dying.socket.close()
    assert not others.pay()
    assert os.listdir(folder) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the sender of a datagram")
def test_only_this_user_is_believed() -> None:
    def note(user: int, kind: int = socket.SCM_CREDENTIALS) -> tuple[int, int, bytes]:
        return socket.SOL_SOCKET, kind, struct.pack("iII", 1, user, 0)

    assert sent_by_this_user([note(os.getuid())])
    assert not sent_by_this_user([note(os.getuid() + 1)])
    assert not sent_by_this_user([note(os.getuid(), kind=socket.SCM_RIGHTS)])
    assert not sent_by_this_user([])
