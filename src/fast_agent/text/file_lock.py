"""File lock: what keeps two processes from one thing at a time."""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, flock
from time import monotonic, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PAUSE = 0.005


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
