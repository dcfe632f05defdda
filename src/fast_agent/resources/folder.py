"""A folder whose files are served: resolved once, walked within bounds, read without links.

Everything is opened relative to the open directory above it, and no link is followed, so whatever
is swapped in between a look and a read leads to a refusal, never out of the folder.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.config.home import is_never_served
from fast_agent.errors import os_reason
from fast_agent.resources.problem import TooLarge
from fast_agent.resources.resource import DEFAULT_LIMITS
from fast_agent.text.safe_file import (
    FileBytes,
    FileStamp,
    RefusedFileError,
    confined_parts,
    open_folder,
    open_root,
    read_below,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fast_agent.resources.resource import Limits

_UNNAMEABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\\\\]")
_RECENT_NS = 50_000_000
_UNSURE = -1


class Entry(NamedTuple):
    """A regular file: its path below the folder, as the disk spells it, and its state."""

    path: str
    stamp: FileStamp


class SkippedEntry(NamedTuple):
    """Something in the tree that is not served, and why, in words that follow its path."""

    path: str
    reason: str


class Tree(NamedTuple):
    """What a walk found, each sorted by path; `folders` leaves out the folder itself."""

    files: Sequence[Entry]
    folders: Sequence[str]
    skipped: Sequence[SkippedEntry]


class Folder:
    """A folder on disk.

    Args:
        root: Where it is. It may be a link, which is resolved now and not again.
        name: What messages call it, since they must not hold its path.

    Raises:
        RefusedFileError: It is missing, no directory, or unreadable.
    """

    def __init__(self, root: Path | str, name: str = "the folder") -> None:
        self.path = os.path.realpath(root)
        self.name = name
        os.close(open_root(self.path))

    def read(self, path: str, limit: int) -> FileBytes:
        """Read a file.

        Args:
            path: Relative, with `/` between its parts. Take it from a snapshot of `walk`, not from
                a request.
            limit: Most bytes.

        Returns:
            Its bytes, and a stamp that equals `stamp(path)` while the file is the same. A file
            changed a moment ago gets a stamp that equals nothing: the clock of the file system may
            not distinguish its next change.

        Raises:
            RefusedFileError: It is missing, a link, no regular file, too large or unreadable.
        """
        parts = confined_parts(path)
        found = read_below(open_root(self.path), parts, limit)
        from time import time_ns

        if time_ns() - found.stamp.mtime_ns < _RECENT_NS:
            return FileBytes(found.data, found.stamp._replace(mtime_ns=_UNSURE))
        return found

    def stamp(self, path: str) -> FileStamp | None:
        """Look at a file's state, without reading it.

        A folder on the way may be a link here; a stamp that equals one of `read` or `walk` is of
        the same file all the same.

        Returns:
            The stamp; None where there is no regular file.
        """
        try:
            status = os.lstat(f"{self.path}/{path}")
        except (OSError, ValueError):
            return None
        return FileStamp.of(status) if _is_regular(status.st_mode) else None

    def walk(
        self,
        limits: Limits = DEFAULT_LIMITS,
        below: str = "",
        skip: Callable[[str], bool] = is_never_served,
    ) -> Tree:
        """Find every file.

        Args:
            limits: `tree_files` bounds files and folders together, `tree_depth` the nesting.
            below: A folder to start in, relative; paths stay relative to the whole.
            skip: Decides which names are skipped silently.

        Returns:
            Files and folders, and what was left out with its reason: links, special files, names
            that no URI can hold, names that are equal in composed form, folders nested too deep.

        Raises:
            TooLarge: There is more than `tree_files`.
            RefusedFileError: The folder is gone or cannot be read.
        """
        walk = _Walk(self.name, limits, skip)
        directory = open_root(self.path)
        try:
            for part in confined_parts(below) if below else ():
                inner = open_folder(part, directory)
                os.close(directory)
                directory = inner
            walk.enter(directory, below and f"{below}/", 1)
        except OSError as error:
            raise RefusedFileError(f"cannot be listed: {os_reason(error)}") from error
        finally:
            os.close(directory)
        return Tree(sorted(walk.files), sorted(walk.folders), sorted(walk.skipped))


class _Walk:
    """One walk, under way."""

    def __init__(self, name: str, limits: Limits, skip: Callable[[str], bool]) -> None:
        self.files: list[Entry] = []
        self.folders: list[str] = []
        self.skipped: list[SkippedEntry] = []
        self._name = name
        self._limits = limits
        self._skip = skip

    def enter(self, directory: int, prefix: str, depth: int) -> None:
        with os.scandir(directory) as found:
            entries = sorted(found, key=_name_of)
        taken = {entry.name for entry in entries if entry.name.isascii()}
        for entry in entries:
            name = entry.name
            if self._skip(name):
                continue
            path = prefix + name
            if _UNNAMEABLE.search(name):
                shown = ascii(path)[1:-1]
                self.skipped.append(SkippedEntry(shown, "has a name that no URI can hold"))
            elif not _new_name(name, taken):
                self.skipped.append(
                    SkippedEntry(
                        path, "has the same name as another file, spelled with other code points"
                    )
                )
            else:
                self._take(entry, directory, path, depth)

    def _take(self, entry: os.DirEntry[str], directory: int, path: str, depth: int) -> None:
        if len(self.files) + len(self.folders) >= self._limits.tree_files:
            raise TooLarge(
                self._name,
                len(self.files) + len(self.folders) + 1,
                self._limits.tree_files,
                unit="files and folders",
                samples=[file.path for file in self.files[:3]],
            )
        if entry.is_symlink():
            self.skipped.append(SkippedEntry(path, "is a link; links are not followed"))
        elif entry.is_dir(follow_symlinks=False):
            self._descend(entry.name, directory, path, depth)
        else:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                return  # gone since the folder was listed
            if _is_regular(status.st_mode):
                self.files.append(Entry(path, FileStamp.of(status)))
            else:
                self.skipped.append(SkippedEntry(path, "is not a regular file"))

    def _descend(self, name: str, directory: int, path: str, depth: int) -> None:
        if depth > self._limits.tree_depth:
            reason = f"is nested deeper than {self._limits.tree_depth} folders"
            self.skipped.append(SkippedEntry(path, reason))
            return
        try:
            inner = open_folder(name, directory)
        except RefusedFileError as refusal:
            if not refusal.missing:
                self.skipped.append(SkippedEntry(path, refusal.message))
            return
        self.folders.append(path)
        try:
            self.enter(inner, f"{path}/", depth + 1)
        except OSError as error:
            self.skipped.append(SkippedEntry(path, f"cannot be listed: {os_reason(error)}"))
        finally:
            os.close(inner)


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def _new_name(name: str, taken: set[str]) -> bool:
    """Note a name in composed form; False where a neighbour has the same."""
    if name.isascii():
        return True
    from unicodedata import normalize

    key = normalize("NFC", name)
    if key in taken:
        return False
    taken.add(key)
    return True


def _is_regular(mode: int) -> bool:
    return mode & 0o170000 == 0o100000
