"""Writing a file so that a reader sees the old or the new text, never a part of it."""

from __future__ import annotations

import os
from pathlib import Path


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
