"""Writing a file so that readers see the old or the new text, and writers come one at a time."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from time import monotonic, sleep

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
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
