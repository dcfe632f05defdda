"""Listing, finding and searching the files of a workspace."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from anyio import CapacityLimiter, EndOfStream, move_on_after
from anyio.to_thread import run_sync

from fast_agent.errors import ToolError, os_reason
from fast_agent.tools.files.tree import open_below, walk
from fast_agent.tools.shell.process_group import ProcessGroup
from fast_agent.trust.origin import names_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.files.workspace import Place

MAX_ENTRIES: Final = 1000
"""Most names of a directory, or files of a glob, that are listed at once."""
SEARCH_SECONDS: Final = 60.0
"""Longest run of a search."""
_MAX_OUTPUT: Final = 8 * 1024 * 1024
_GRACE_SECONDS: Final = 1.0
_SOURCE: Final = Path(__file__).parents[3]
_PROGRAM: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from fast_agent.tools.files.tree import main
sys.exit(main(sys.argv[2]))
"""


async def list_directory(place: Place) -> str:
    """List a directory: its names, those of directories with `/`, files with their size.

    Raises:
        ToolError: It is not a directory, or cannot be read.
    """
    return await run_sync(_listed, place)


def _listed(place: Place) -> str:
    try:
        directory = open_below(str(place.root), "/".join(place.parts))
    except OSError as error:
        reason = os_reason(error)
        raise ToolError(f"`{place.name}` cannot be listed: {reason}") from error
    try:
        with os.scandir(directory) as entries:
            lines = sorted(map(_entry, entries))
    finally:
        os.close(directory)
    if not lines:
        return "(empty)"
    left = len(lines) - MAX_ENTRIES
    shown = lines[:MAX_ENTRIES]
    return "\n".join([*shown, f"[{left:,} more]"] if left > 0 else shown)


def _entry(entry: os.DirEntry[str]) -> str:
    name = _printable(entry.name)
    if entry.is_symlink():
        return f"{name} (link)"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    return f"{name} ({entry.stat(follow_symlinks=False).st_size:,} bytes)"


async def find_files(place: Place, pattern: str, *, everything: bool) -> str:
    """Find files whose paths fit a glob, sorted by path.

    Args:
        place: The directory to look in; the pattern is relative to it.
        pattern: The glob.
        everything: Whether hidden and ignored directories are looked into, too.

    Raises:
        ToolError: The pattern is wrong.
    """
    names = await run_sync(_found, place, pattern, everything, limiter=_walks())
    if not names:
        return "no file fits"
    left = len(names) - MAX_ENTRIES
    shown = names[:MAX_ENTRIES]
    return "\n".join([*shown, f"[{left:,} more; narrow the pattern]"] if left > 0 else shown)


def _walks() -> CapacityLimiter:
    """Bound the walks at a time: each reads a whole tree."""
    return CapacityLimiter(2)


def _found(place: Place, pattern: str, everything: bool) -> list[str]:
    start = "/".join(place.parts)
    try:
        folders = walk(str(place.path), "", everything=everything, glob=pattern)
        paths = [f"{folder.path}/{name}" if folder.path else name
                 for folder in folders for name in folder.files]  # fmt: skip
    except re.error as error:
        raise ToolError(f"`pattern` is not a glob: {error}") from error
    return sorted(_printable(f"{start}/{path}" if start else path) for path in paths)


async def search_files(place: Place, query: JsonObject, *, most: int) -> str:
    """Search the files of a directory, or one file, for a regular expression.

    The search is a separate process, so that it can be ended whatever the pattern.

    Args:
        place: Where to search.
        query: `pattern`, `ignore_case`, `context`, `only`, `everything` and `glob`, as
            `tree.main` reads them.
        most: Most lines that are shown.

    Returns:
        Lines of matches below the paths of their files, sorted by path. Files named as secrets are
        are left out.

    Raises:
        ToolError: The pattern is wrong, or the search took too long.
    """
    job = json.dumps({**query, "root": str(place.root), "start": "/".join(place.parts)})
    data, is_whole, code = await _output(job)
    text = data.decode("utf-8", "replace")
    if code == 2:
        raise ToolError(text.strip().splitlines()[0] if text.strip() else "the search failed")
    lines = text.splitlines() if is_whole else text.splitlines()[:-1]
    by_file = _by_file(lines, with_secrets=place.is_secret)
    if not by_file:
        return "no match" if is_whole else f"no match within {SEARCH_SECONDS:g} s"
    return _shown(by_file, most, is_whole=is_whole)


async def _output(job: str) -> tuple[bytes, bool, int]:
    """Run the search; return its output, whether it is whole, and the exit code."""
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_SOURCE), job]
    group = await ProcessGroup.start(command, cwd=_SOURCE, env={}, grace_seconds=_GRACE_SECONDS)
    found, is_whole, code = bytearray(), False, 0
    try:
        stream = group.process.stdout
        with move_on_after(SEARCH_SECONDS):
            while stream is not None and len(found) < _MAX_OUTPUT:
                try:
                    found += await stream.receive(1 << 18)
                except EndOfStream:
                    code = await group.process.wait()
                    is_whole = True
                    break
    finally:
        await group.close()
    return bytes(found), is_whole, code


def _by_file(lines: Sequence[str], *, with_secrets: bool) -> dict[str, list[str]]:
    """Sort the lines of a search by file, without files named as secrets are."""
    found: dict[str, list[str]] = {}
    file = ""
    for line in lines:
        if line == "--":
            if file in found:
                found[file].append(line)
            continue
        file, _, rest = line.partition("\0")
        if with_secrets or not names_secret(PurePath(file)):
            found.setdefault(file, []).append(rest)
    return found


def _shown(by_file: dict[str, list[str]], most: int, *, is_whole: bool) -> str:
    lines = list(_rows(by_file))
    left = len(lines) - most
    shown = lines[:most]
    if left > 0:
        shown.append(f"[{left:,} more lines; narrow the search or raise `limit`]")
    if not is_whole:
        shown.append("[the search was stopped before it finished]")
    return "\n".join(shown)


def _rows(by_file: dict[str, list[str]]) -> Iterator[str]:
    for file in sorted(by_file):
        shown = _printable(file)
        for rest in by_file[file]:
            if rest == "--":
                yield rest
            elif not rest:
                yield shown
            else:
                number, sign = _number(rest)
                yield f"{shown}{sign}{number}{rest[len(number) :]}"


def _number(rest: str) -> tuple[str, str]:
    """Take the line number apart from what follows; the sign says whether it is a match."""
    digits = re.match(r"\d*", rest)
    number = digits[0] if digits else ""
    return number, rest[len(number) : len(number) + 1] or ":"


def _printable(name: str) -> str:
    """Show a name that is not UTF-8, or holds what would break its line."""
    plain = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return (
        plain
        if plain.isprintable()
        else "".join(one if one.isprintable() else repr(one)[1:-1] for one in plain)
    )
