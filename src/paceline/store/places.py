"""Where a store may live: on a disk of this host, in a folder and in files that are ours alone."""

import os
import re
import stat
from pathlib import Path

from paceline.config import FOLDER
from paceline.errors import StoreError, UsageError
from paceline.store.trouble import explained

MOUNTS = Path("/proc/self/mountinfo")
BESIDE = ("-wal", "-shm", "-journal", ".lock")
"""What stands beside a database file and belongs to it."""

_KINDS_OF_NETWORK = """
    nfs nfs4 cifs smb3 smbfs ncpfs afs 9p drvfs ceph lustre gpfs beegfs glusterfs ocfs2 gfs2 davfs prl_fs vboxsf vmhgfs
    osxfs fakeowner fuse.sshfs fuse.glusterfs fuse.ceph fuse.s3fs fuse.gcsfuse fuse.rclone fuse.davfs fuse.vmhgfs-fuse
    fuse.grpcfuse fuse.osxfs fuse.juicefs fuse.curlftpfs
"""
NETWORK = frozenset(_KINDS_OF_NETWORK.split())
"""Several hosts, or a host and its guest, see these files without sharing the memory that a write-ahead log needs."""


def file_system_of(mountinfo: str, path: str) -> str:
    """The type of file system a path is on, from the text of /proc/self/mountinfo; empty when it does not say."""
    longest, kind = "", ""
    for line in mountinfo.splitlines():
        front, _, back = line.partition(" - ")
        words = front.split(" ")
        if len(words) < 6 or not back:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), words[4])
        inside = point == "/" or path == point or path.startswith(f"{point}/")
        if inside and len(point) >= len(longest):  # of two mounts on one point the later one is seen
            longest, kind = point, back.split(" ")[0]
    return "" if longest == "/" and kind == "9p" else kind  # a sandbox serves its own root that way, to nobody else


def make_folder(folder: Path) -> None:
    """Our own folder, for its owner alone whatever the umask; git does not see what is in it."""
    with explained(folder):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            return
        folder.chmod(0o700)
        note = folder / ".gitignore"
        create_file(note)
        note.write_text("*\n", encoding="utf-8")


def create_file(path: Path) -> None:
    """A new, empty file for its owner alone whatever the umask; never an existing one."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(file, 0o600)
    finally:
        os.close(file)


def check_folder(folder: Path) -> None:
    """Refuses a folder in which others could put files in place of ours, or whose files other hosts see."""
    with explained(folder):
        try:
            status = os.lstat(folder) if folder.name == FOLDER else os.stat(folder)
        except FileNotFoundError:
            status = None
        if status is None or not stat.S_ISDIR(status.st_mode):
            raise no_folder(folder, "" if status is None else _kind(status.st_mode))
        if status.st_uid not in (os.geteuid(), 0) or (folder.name == FOLDER and status.st_uid != os.geteuid()):
            raise _not_ours(folder, status.st_uid)
        _check_mode(folder, status.st_mode)
    _refuse_network(folder)


def check_file(path: Path) -> None:
    """Refuses a database that is not a plain file of ours with something in it, and the same beside it."""
    with explained(path):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            raise no_store(path) from None
        _check_plain(path, status)
        if status.st_size == 0:
            raise StoreError(
                code="store_empty", what="the file is empty; a store never is", where=str(path), found="0 bytes",
                todo="restore a backup; if there was never anything in it, remove it and a new store is made",
            )  # fmt: skip
        for ending in BESIDE:
            beside = path.with_name(path.name + ending)
            try:
                _check_plain(beside, os.lstat(beside))
            except FileNotFoundError:
                continue


def remains_of(path: Path) -> list[str]:
    """Files beside a missing database that still hold work written to it."""
    names = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
    return [str(name) for name in names if os.path.lexists(name) and os.lstat(name).st_size]


def no_store(where: object) -> UsageError:
    """Nothing stands at that place."""
    return UsageError(
        code="no_store", what="there is no store here yet", where=str(where),
        todo="`paceline init` makes one, or name another with --store",
    )  # fmt: skip


def no_folder(folder: Path, found: str) -> UsageError:
    """The folder of a store does not exist, or is something else."""
    return UsageError(
        code="no_folder", what="the folder of the store does not exist", where=str(folder), found=found,
        todo=f"mkdir -p {folder}",
    )  # fmt: skip


def _check_plain(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(
            code="store_not_a_file", what="a store is a plain file", where=str(path), found=_kind(status.st_mode),
            todo="name the file itself",
        )  # fmt: skip
    if status.st_uid != os.geteuid():
        raise _not_ours(path, status.st_uid)
    if status.st_mode & 0o022:
        raise _open_to_others(path, status.st_mode, "chmod go-w")


def _check_mode(folder: Path, mode: int) -> None:
    """Our own folder is closed to others; one that somebody chose must only keep strangers from replacing files."""
    if folder.name == FOLDER:
        if mode & 0o022:
            raise _open_to_others(folder, mode, "look at what is in it, then chmod 700")
        if mode & 0o077:
            folder.chmod(0o700)
    elif mode & 0o002 and not mode & stat.S_ISVTX:
        raise _open_to_others(folder, mode, "chmod o-w")


def _refuse_network(folder: Path) -> None:
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system_of(mounts, os.path.realpath(folder))
    if kind in NETWORK:
        raise StoreError(
            code="store_network", what="SQLite cannot keep its promises on a network file system", where=str(folder),
            found=kind, allowed="a disk of this host",
            todo="put the store on a local disk, or use Postgres when several hosts share it",
        )  # fmt: skip


def _not_ours(path: Path, owner: int) -> StoreError:
    return StoreError(
        code="store_not_ours", what="this belongs to another user", where=str(path), found=f"user {owner}",
        allowed=f"user {os.geteuid()}", todo=f"run as that user, or chown it: sudo chown {os.geteuid()} {path}",
    )  # fmt: skip


def _open_to_others(path: Path, mode: int, todo: str) -> StoreError:
    return StoreError(
        code="store_unsafe", what="others may write here, and so change what is done in your name", where=str(path),
        found=f"mode {mode & 0o7777:04o}", todo=f"{todo} {path}",
    )  # fmt: skip


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFREG: "a file"}
    return kinds.get(stat.S_IFMT(mode), "a device, socket or pipe")
