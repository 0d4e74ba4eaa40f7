"""Where a store may live, from texts and modes: file systems, owners, links; and who holds a lock."""

import os
import stat
from pathlib import Path

import pytest

from paceline.core.problem import Problem
from paceline.errors import StoreError
from paceline.store import places
from paceline.store.holders import holders, locked_by
from paceline.store.places import NETWORK, check_file, check_folder, create_file, file_system_of, make_folder
from paceline.store.turn import Turn

MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/root rw
40 27 0:40 / /home rw,nosuid shared:9 - nfs4 server:/home rw,vers=4.2
41 40 254:1 / /home/local rw - xfs /dev/vdb rw
42 27 0:42 / /mnt/two\040words rw - cifs //server/share rw
43 27 0:43 / /data rw - ext4 /dev/vdc rw
44 27 0:44 / /data rw - fuse.sshfs me@host:/ rw
a line that says nothing
"""
FOUND = {
    "/": "ext4",
    "/home": "nfs4",
    "/home/ada/project": "nfs4",
    "/home/local/project": "xfs",
    "/homestead": "ext4",
    "/mnt/two words/x": "cifs",
    "/mnt/two": "ext4",
    "/data/deep/down": "fuse.sshfs",
    "/proc/self": "proc",
}


@pytest.mark.parametrize(("path", "kind"), FOUND.items())
def test_the_closest_mount_that_is_seen_says_what_a_path_is_on(path: str, kind: str) -> None:
    assert file_system_of(MOUNTS, path) == kind


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert file_system_of("", "/home") == ""
    assert file_system_of("1 2 3\n", "/home") == ""


def test_a_sandbox_may_serve_its_own_root_as_it_likes_but_not_other_folders() -> None:
    mounts = "1 0 0:1 / / rw - 9p none rw\n2 1 0:2 / /mnt/c rw - 9p drvfs rw\n"
    assert file_system_of(mounts, "/work") == ""
    assert file_system_of(mounts, "/mnt/c/work") == "9p"


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_a_network_file_system_is_refused_with_advice(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 root rw\n2 1 0:2 / {tmp_path} rw - {kind} somewhere rw\n")
    monkeypatch.setattr(places, "MOUNTS", mounts)
    with pytest.raises(StoreError) as error:
        check_folder(tmp_path)
    assert (error.value.code, error.value.found) == ("store_network", kind)
    assert "Postgres" in error.value.todo


def test_a_folder_reached_by_a_link_is_judged_by_where_it_really_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"2 1 0:2 / {tmp_path / 'far'} rw - nfs server:/ rw\n")
    monkeypatch.setattr(places, "MOUNTS", mounts)
    with pytest.raises(StoreError):
        check_folder(tmp_path / "near")
    monkeypatch.setattr(places, "MOUNTS", tmp_path / "missing")
    check_folder(tmp_path / "near")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_what_we_make_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_folder(tmp_path / ".paceline")
        make_folder(tmp_path / ".paceline")
        create_file(tmp_path / "file")
        Turn(tmp_path / "lock").close()
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (".paceline", "file", "lock")}
    assert modes == {".paceline": 0o700, "file": 0o600, "lock": 0o600}
    assert (tmp_path / ".paceline" / ".gitignore").read_text() == "*\n"
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file")


def test_our_own_folder_is_closed_when_others_could_only_look_and_refused_when_they_could_write(tmp_path: Path) -> None:
    folder = tmp_path / ".paceline"
    folder.mkdir()
    folder.chmod(0o755)
    check_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for mode in (0o770, 0o702):
        folder.chmod(mode)
        with pytest.raises(StoreError) as error:
            check_folder(folder)
        assert error.value.code == "store_unsafe"


def test_a_folder_that_somebody_chose_may_be_shared_but_not_by_everybody(tmp_path: Path) -> None:
    for mode in (0o700, 0o755, 0o775, 0o1777):
        tmp_path.chmod(mode)
        check_folder(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError) as error:
        check_folder(tmp_path)
    assert error.value.code == "store_unsafe"
    tmp_path.chmod(0o700)


def test_our_own_folder_is_never_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".paceline").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Problem) as error:
        check_folder(tmp_path / ".paceline")
    assert (error.value.code, error.value.found) == ("no_folder", "a symbolic link")


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ours belongs to others all of a sudden."""
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + 4_711)


@pytest.mark.usefixtures("somebody_else")
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    folder, file = tmp_path / ".paceline", tmp_path / "work.db"
    folder.mkdir()
    file.write_bytes(b"something")
    for check, name in ((check_folder, folder), (check_file, file)):
        with pytest.raises(StoreError) as error:
            check(name)
        assert error.value.code == "store_not_ours"


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal", ".lock"])
@pytest.mark.parametrize("what", ["link", "folder", "pipe", "open to others"])
def test_the_file_and_what_stands_beside_it_are_plain_files_of_ours(tmp_path: Path, ending: str, what: str) -> None:
    path, name = tmp_path / "work.db", tmp_path / f"work.db{ending}"
    path.write_bytes(b"something")
    path.chmod(0o600)
    check_file(path)
    name.unlink(missing_ok=True)
    if what == "link":
        name.symlink_to(tmp_path / "elsewhere")
    elif what == "folder":
        name.mkdir()
    elif what == "pipe":
        os.mkfifo(name)
    else:
        name.write_bytes(b"something")
        name.chmod(0o620)
    with pytest.raises(StoreError) as error:
        check_file(path)
    assert error.value.code == ("store_unsafe" if what == "open to others" else "store_not_a_file")
    assert error.value.where == str(name)


LOCKS = """\
1: POSIX  ADVISORY  WRITE 17826 fe:00:2179313 120 120
2: POSIX  ADVISORY  READ 17827 fe:00:2179313 124 124
2: -> POSIX  ADVISORY  WRITE 17828 fe:00:2179313 120 120
3: FLOCK  ADVISORY  WRITE 17829 fe:00:2179295 0 EOF
4: FLOCK  ADVISORY  WRITE -1 fe:00:2179295 0 EOF
5: FLOCK  ADVISORY  WRITE 17830 fe:01:2179295 0 EOF
nonsense
"""


def test_who_holds_a_lock_is_read_from_the_kernels_table() -> None:
    device = os.makedev(0xFE, 0)
    assert locked_by(LOCKS, {(device, 2179313)}) == {17826}
    assert locked_by(LOCKS, {(device, 2179295), (device, 1)}) == {17829}
    assert locked_by("", {(device, 1)}) == set()


def test_nobody_is_named_who_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.store.holders.LOCKS", tmp_path / "missing")
    assert holders(tmp_path / "work.db") == ""


def test_a_turn_is_handed_on_and_waiting_for_it_has_an_end(tmp_path: Path) -> None:
    mine, yours = Turn(tmp_path / "lock"), Turn(tmp_path / "lock")
    assert mine.take(30)
    assert not yours.take(0.01)
    assert not yours.take(0.01)
    mine.give()
    assert yours.take(30)
    assert not mine.take(0.01)
    yours.give()
    yours.give()
    assert mine.take(30)
    mine.close()
    assert yours.take(30)
    yours.close()
