"""Workspace files: what `@` offers, by letters in their order, without what Git ignores."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from fast_agent.commands.completion import MAX_COMPLETIONS
from fast_agent.text.wording import is_subsequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

MAX_FILES: Final = 200_000
_MAX_ENTRIES: Final = 5_000
_MAX_RANKED: Final = 2_000
_STALE_SECONDS: Final = 10.0


class FileIndex:
    """The files of a tree, in one string, which one expression searches.

    Args:
        paths: Their paths relative to the top; others than printable ones are left out.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [one for one in islice(paths, MAX_FILES) if one.isprintable()]
        # Lower-casing may change how long a text is; then the path is searched as it is.
        lower = (low if len(low := one.lower()) == len(one) else one for one in self._paths)
        self._text = "\n".join(lower)
        self._original = "\n".join(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def completions(self, typed: str) -> list[str]:
        """Return the files that have some letters in their order, the nearest first."""
        letters = typed.lower()
        if not letters:
            return []
        found = dict.fromkeys(self._matches(f"[^\n]*{re.escape(letters)}[^\n]*"))
        if len(found) < MAX_COMPLETIONS:
            gaps = "".join(f"[^{re.escape(one)}\n]*{re.escape(one)}" for one in letters)
            found.update(dict.fromkeys(self._matches(f"{gaps}[^\n]*")))

        def rank(path: str) -> tuple[bool, bool, int, str]:
            name = path.rpartition("/")[2].lower()
            return not name.startswith(letters), letters not in name, len(path), path

        return sorted(found, key=rank)[:MAX_COMPLETIONS]

    def _matches(self, source: str) -> Iterator[str]:
        pattern = re.compile(f"^{source}", re.MULTILINE)
        for match in islice(pattern.finditer(self._text), _MAX_RANKED):
            yield self._original[match.start() : match.end()]


class WorkspaceFiles:
    """The files that `@` offers.

    Args:
        directory: The top.
        clock: A clock that only goes forward, in seconds.

    Attributes:
        is_reading: Whether `read` is being called or due.
    """

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._clock = clock
        self._index = FileIndex(())
        self._read_at: float | None = None
        self.is_reading = False

    @property
    def is_read(self) -> bool:
        """Whether the tree was read."""
        return self._read_at is not None

    @property
    def is_stale(self) -> bool:
        """Whether the tree is to be read, again after a while."""
        if self.is_reading or os.name != "posix":
            return False
        return self._read_at is None or self._clock() - self._read_at > _STALE_SECONDS

    def read(self) -> None:
        """Read the tree; takes a second for 100,000 files, so call it from a worker thread."""
        from fast_agent.tools.files.tree import walk

        try:
            folders = walk(str(self._directory.resolve()), "", everything=False)
            self._index = FileIndex(
                f"{folder.path}/{name}" if folder.path else name
                for folder in folders
                for name in folder.files
            )
        finally:
            self._read_at = self._clock()
            self.is_reading = False

    def completions(self, typed: str) -> list[str]:
        """Return the files and directories that continue a path, or have its letters in order."""
        listed = list(_listed(typed, self._directory))
        folder, _, name = typed.rpartition("/")
        starting = [
            one for one in listed if one[len(folder) :].lstrip("/").lower().startswith(name.lower())
        ]
        found = dict.fromkeys([*starting, *self._index.completions(typed), *listed])
        return list(found)[:MAX_COMPLETIONS]


def _listed(typed: str, workspace: Path) -> Iterator[str]:
    """Yield the entries of one directory that continue a path."""
    folder, slash, name = typed.rpartition("/")
    if "\0" in typed:
        return
    entries = _entries(workspace / os.path.expanduser(f"{folder}{slash}" or "."))  # noqa: PTH111
    if os.name == "posix" and not typed.startswith(("/", "~", "..")):
        from fast_agent.tools.files.tree import not_ignored

        entries = not_ignored(str(workspace.resolve()), folder, entries)
    lower = name.lower()
    fitting = [
        one + ("/" if is_directory else "")
        for one, is_directory in entries
        if one.startswith(".") == name.startswith(".") and is_subsequence(lower, one.lower())
    ]
    for one in sorted(fitting, key=lambda one: (not one.lower().startswith(lower), one)):
        yield f"{folder}{slash}{one}"


def _entries(place: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(place) as entries:
            return [
                (entry.name, entry.is_dir())
                for entry in islice(entries, _MAX_ENTRIES)
                if entry.name.isprintable()
            ]
    except OSError:
        return []
