"""Draft: the text in the editor, saved next to the prompts so that a crash does not lose it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY: Final = "drafts"
_MAX_LENGTH: Final = 256 << 10


class Draft:
    """The draft of one process; those of ended processes are offered to the next.

    Args:
        directory: Where drafts are kept; it need not exist.
        workspace: The directory the conversation is about.
        process: The process that writes it.
    """

    def __init__(self, directory: Path, workspace: str, process: int) -> None:
        self._directory = directory
        digest = hashlib.sha256(workspace.encode("utf-8", "replace")).hexdigest()[:16]
        self._pattern = f"{digest}-*.txt"
        self._path = directory / f"{digest}-{process}.txt"
        self._kept = ""

    def is_kept(self, text: str) -> bool:
        """Whether this text was saved last."""
        return text == self._kept

    def keep(self, text: str) -> None:
        """Save the draft; an empty one, or one that is very long, removes the saved one."""
        self._kept = text
        with suppress(OSError):  # a full disk must not end a conversation
            if not text.strip() or len(text) > _MAX_LENGTH:
                self._path.unlink(missing_ok=True)
                return
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
            fresh.replace(self._path)

    def take_left(self) -> str:
        """Return the newest draft that an ended process left here, and forget it."""
        left: list[tuple[float, Path]] = []
        with suppress(OSError):
            for path in self._directory.glob(self._pattern):
                process = path.stem.rpartition("-")[2]
                if process.isdecimal() and not _is_alive(int(process)):
                    left.append((path.stat().st_mtime, path))
        for _, path in sorted(left, reverse=True):
            with suppress(OSError, UnicodeDecodeError):
                text = path.read_bytes().decode("utf-8")
                path.unlink()
                return text
        return ""


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
