"""The workspace of file tools: paths that models name, kept below one directory."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError, open_root, read_below, write_confined
from fast_agent.trust.origin import names_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FILE_BYTES: Final = 32 * 1024 * 1024
"""Largest file that is read or written."""


@frozen
class Place:
    """A path below a directory, past all links.

    Args:
        root: The directory, absolute and without links.
        parts: The path below it; empty for the directory itself.
    """

    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.root.joinpath(*self.parts)

    @property
    def name(self) -> str:
        """The path as tools show it."""
        return "/".join(self.parts) or "."

    @property
    def is_secret(self) -> bool:
        """Whether it is named as files with secrets are."""
        return names_secret(PurePath(*self.parts))


class Workspace:
    """The directory an agent may read, search and edit.

    A path that leads elsewhere is refused, by `..`, by a link, or by a link that is put there while
    a file is opened.

    Args:
        directory: The directory; relative paths start there.
        readable: Directories that may be read as well, such as those of skills.
    """

    def __init__(self, directory: Path, readable: Sequence[str] = ()) -> None:
        self.root = Path(os.path.realpath(directory))
        self._readable = tuple([Path(os.path.realpath(one)) for one in readable])

    def resolve(self, path: str, *, writes: bool = False) -> Place:
        """Return what a path means.

        Args:
            path: Absolute, or relative to the workspace.
            writes: Whether it is to be written.

        Raises:
            ToolError: It leads out of the workspace.
        """
        if "\0" in path:
            raise ToolError("a path cannot hold a NUL character")
        try:
            real = Path(os.path.realpath(self.root / path))
        except OSError as error:  # a link on the way was replaced while it was read
            raise ToolError(f"`{path}` cannot be read: {os_reason(error)}") from error
        for root in (self.root, *(() if writes else self._readable)):
            if real.is_relative_to(root):
                return Place(root, real.relative_to(root).parts)
        raise ToolError(
            f"`{path}` is outside the workspace", hint="name a path below the working directory"
        )

    def read(self, place: Place) -> bytes:
        """Read a file.

        Raises:
            ToolError: There is no such file, or it cannot be read.
        """
        if not place.parts:
            raise ToolError(f"`{place.name}` is a directory", hint="`list_dir` lists it")
        try:
            directory = open_root(str(place.root))
            return read_below(directory, place.parts, MAX_FILE_BYTES).data
        except RefusedFileError as error:
            hint = "`list_dir` lists it" if error.message == "is a directory" else None
            if error.missing:
                hint = _near(place)
            raise ToolError(f"`{place.name}` {error.message}", hint=hint) from error

    def write(self, place: Place, data: bytes) -> None:
        """Write a file, at once; directories on the way are made.

        Raises:
            ToolError: It cannot be written.
        """
        if not place.parts:
            raise ToolError(f"`{place.name}` is a directory")
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"the file would hold more than {MAX_FILE_BYTES:,} bytes")
        try:
            write_confined(str(place.root), place.parts, data)
        except RefusedFileError as error:
            raise ToolError(f"`{place.name}` {error.message}") from error


def _near(place: Place) -> str:
    """Return which file may have been meant."""
    from fast_agent.text.wording import closest

    parent = place.path.parent
    try:
        names = sorted([one.name for one in parent.iterdir()])[:2000]
    except OSError:
        return "`glob` finds files by their names"
    near = closest(place.parts[-1], names)
    if near is None:
        return "`glob` finds files by their names"
    return f"did you mean `{'/'.join((*place.parts[:-1], near))}`?"
