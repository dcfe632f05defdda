"""Reading and writing files that untrusted text names: regular, bounded, below a directory.

A file is written so that readers see the old or the new text, and writers come one at a time.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from fast_agent.errors import FastAgentError, os_reason

_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not hang the open
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


class RefusedFileError(FastAgentError):
    """A file was not read.

    Args:
        reason: Why, in words that can follow the file's name: `does not exist`.
        missing: There is no such file; False for every other reason.
    """

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


class FileStamp(NamedTuple):
    """Identifies the state of a file without reading it; a tuple, as it is hot."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Take the stamp out of what `stat` gave."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )


class FileBytes(NamedTuple):
    """A file's bytes and the state they were read in."""

    data: bytes
    stamp: FileStamp


def read_confined(root: Path, name: str, limit: int) -> FileBytes:
    """Read a regular file below `root` without ever leaving it.

    Each part of the path is opened relative to the directory before it and no link is followed, so
    that a link put there between a check and the read cannot lead elsewhere. `root` itself may be a
    link.

    Args:
        root: The directory to stay in.
        name: A relative path with `/` between its parts.
        limit: Most bytes the file may hold.

    Returns:
        Its bytes and stamp.

    Raises:
        RefusedFileError: The name is absolute or has a `..`, a part is a link, or the file is
            missing, no regular file, too large or unreadable.
    """
    parts = confined_parts(name)
    try:
        directory = os.open(root, _DIRECTORY)
    except OSError as error:
        raise _refusal(error) from error
    return read_below(directory, parts, limit)


def open_root(path: str) -> int:
    """Open a directory that was resolved before and must not have become a link since.

    Args:
        path: Absolute, without links when it was resolved.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        RefusedFileError: It is gone, a link now, or no directory.
    """
    try:
        return os.open(path, _DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _refusal(error) from error


def open_folder(name: str, directory: int) -> int:
    """Open a directory inside an open one; a link is refused.

    Args:
        name: One name, without `/`.
        directory: The open directory's descriptor, which stays open.

    Returns:
        A descriptor, which the caller closes.

    Raises:
        RefusedFileError: It is gone, a link, no directory, or unreadable.
    """
    return _open_at(name, directory, _DIRECTORY)


def read_below(directory: int, parts: tuple[str, ...], limit: int) -> FileBytes:
    """Read a regular file below an open directory, which is closed in any case.

    Args:
        directory: Descriptor of the directory.
        parts: The path as returned by `confined_parts`.
        limit: Most bytes the file may hold.

    Returns:
        Its bytes and stamp.

    Raises:
        RefusedFileError: As for `read_confined`.
    """
    *folders, last = parts
    try:
        for folder in folders:
            inner = _open_at(folder, directory, _DIRECTORY)
            os.close(directory)
            directory = inner
        descriptor = _open_at(last, directory, _FILE)
    finally:
        os.close(directory)
    return _read_regular(descriptor, limit)


def write_confined(root: str, parts: tuple[str, ...], data: bytes) -> None:
    """Write a file below `root` without ever leaving it; what is there is replaced at once.

    Directories that are missing are made. No link is followed, and a file with several names keeps
    its old content under the others.

    Args:
        root: The directory to stay in, absolute, without links when it was resolved.
        parts: The path as returned by `confined_parts`.
        data: The whole new content.

    Raises:
        RefusedFileError: A part is a link or no directory, or the file cannot be written.
    """
    *folders, last = parts
    directory = open_root(root)
    try:
        for folder in folders:
            inner = _made_at(folder, directory)
            os.close(directory)
            directory = inner
        _replace_at(last, directory, data)
    except OSError as error:
        reason = os_reason(error)
        raise RefusedFileError(f"cannot be written: {reason}") from error
    finally:
        os.close(directory)


def _made_at(name: str, directory: int) -> int:
    """Open a directory inside an open one; make it where it is missing."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    return _open_at(name, directory, _DIRECTORY)


def _replace_at(name: str, directory: int, data: bytes) -> None:
    mode = None
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFileError("is not a regular file")
        if not os.access(name, os.W_OK, dir_fd=directory):
            raise RefusedFileError("may not be written by this user")
        mode = stat.S_IMODE(status.st_mode) & 0o777
    temporary = f".{os.urandom(16).hex()}.tmp"
    descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def confined_parts(name: str) -> tuple[str, ...]:
    """Split a relative path into its parts.

    Args:
        name: A path with `/` between its parts; `.` and empty parts are skipped.

    Returns:
        At least one part.

    Raises:
        RefusedFileError: The path is absolute, holds `..` or a control character, or names nothing.
    """
    if name.startswith(("/", "~")):
        raise RefusedFileError("is an absolute path")
    if not name.isprintable() and any(ord(one) < 32 or ord(one) == 127 for one in name):
        raise RefusedFileError("holds a control character")
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if ".." in parts:
        raise RefusedFileError("leads out of its directory with `..`")
    if not parts:
        raise RefusedFileError("names no file")
    return parts


def _open_at(name: str, directory: int, flags: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    except OSError as error:
        if _is_link(name, directory):
            raise RefusedFileError(f"goes through the link `{name}`") from error
        raise _refusal(error) from error


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _read_regular(descriptor: int, limit: int) -> FileBytes:
    """Read a whole open file and close it."""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise RefusedFileError("is a directory")
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFileError("is not a regular file")
        blocks: list[bytes] = []
        room = limit + 1  # one more than allowed: the file may grow while it is read
        # Room for what is there and one byte more, so that a small file takes one short read.
        ask = min(status.st_size + 1, room)
        while ask > 0 and (block := os.read(descriptor, ask)):
            blocks.append(block)
            room -= len(block)
            whole = len(block) < ask and limit + 1 - room >= status.st_size
            ask = 0 if whole else min(room, _BLOCK)
    except OSError as error:
        raise _refusal(error) from error
    finally:
        os.close(descriptor)
    if room <= 0:
        raise RefusedFileError(f"holds more than {limit} bytes")
    return FileBytes(b"".join(blocks), FileStamp.of(status))


def _refusal(error: OSError) -> RefusedFileError:
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return RefusedFileError("does not exist", missing=True)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return RefusedFileError("may not be read by this user")
    if error.errno == errno.ENAMETOOLONG:
        return RefusedFileError("has a name that is too long")
    return RefusedFileError(f"cannot be read: {os_reason(error)}")


_PAUSE = 0.005


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to a file next to `path`, sync it to disk, then replace `path` with it.

    A link is followed: the file it leads to is replaced, not the link. An existing file keeps its
    permissions; a new one is for its owner only.

    Args:
        path: The file to write.
        data: Its whole new content.

    Raises:
        OSError: The directory is missing, full or not writable; the old file is then as it was.
    """
    from tempfile import mkstemp

    target = path.resolve()
    try:
        mode: int | None = target.stat().st_mode & 0o777
    except FileNotFoundError:
        mode = None
    descriptor, name = mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_to_disk(target.parent)


def sync_to_disk(path: Path) -> None:
    """Write what the system holds of a file or a directory to the disk itself.

    Raises:
        OSError: It is missing, or cannot be written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folded_name(name: str) -> str:
    """Return a name as file systems see it that know no case and no forms of letters."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def leads_away(path: Path) -> bool:
    """Return whether a path is a link that ends outside the directory it is in."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(path.parent))


class FileLock:
    """A lock on a separate file, which the system releases when its holder ends in any way.

    The file is not removed with the lock: a waiting process and one that creates the file again
    would then hold two locks.

    Args:
        path: The file; made where it is missing.

    Raises:
        OSError: It cannot be made.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, *, wait: float = 0.0) -> bool:
        """Take the lock.

        Args:
            wait: How long to try, in seconds; 0 tries once.

        Returns:
            Whether it was taken; False where another process, or another lock of this one, has it.

        Raises:
            OSError: The file cannot be opened.
        """
        from fcntl import LOCK_EX, LOCK_NB, flock  # files are also read where there is none

        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        last = monotonic() + wait
        while True:
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                if monotonic() >= last:
                    os.close(descriptor)
                    return False
                sleep(_PAUSE)
            except BaseException:
                os.close(descriptor)
                raise
            else:
                break
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor
        return True

    def holder(self) -> int | None:
        """Return the number of the process that took the lock last, or None if it is unknown."""
        try:
            return int(self._path.read_bytes()[:20])
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Release the lock; safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
