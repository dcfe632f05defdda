"""Digests of the files a found set would run or read, without regard to time and size."""

from __future__ import annotations

import os
import re
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from fast_agent.text.source import SourceError, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from fast_agent.trust.origin import Root

MAX_FILES: Final = 1_000
"""Maximum number of files one effect may cover: more cannot have been read."""

MAX_BYTES: Final = 64 << 20
"""Maximum size of all files one effect covers, in bytes."""

ABSENT: Final = "absent"
"""Digest of a file that is not there: creating it later changes what is done."""

PRESENT: Final = "present"
"""Digest of a file that only has to be there, or not."""

_BLOCK: Final = 1 << 20

_MODULES: Final = frozenset({".py", ".pyc", ".pyd", ".so"})
"""How the files end that Python imports."""

_ENDS: Final = tuple(_MODULES)

_CACHE: Final = "__pycache__"

_UNCHECKED: Final = b"\x01\0\0\0"
"""The flags of compiled code that Python runs without looking at its source."""

_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:from[ \t]+[^\s#]+[ \t]+)?import\b(?:[ \t]*\([^)]{,4000}\)|[^#\n;]*)"
    rb"|(?:import_module|__import__)\([^)]{,200}",
    re.MULTILINE,
)
_WORD: Final = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*")


def text_digest(text: str) -> str:
    """Return the digest of a text as read: without a byte order mark, line ends as line feeds."""
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def source_digest(file: Path) -> str:
    """Return the digest of the text of a file; of one that cannot be read, the reason."""
    try:
        return text_digest(read_source(file).text)
    except SourceError as error:
        return ABSENT if error.reason == "missing" else f"unreadable: {error.message}"


def file_digest(file: Path, limit: int = MAX_BYTES) -> str | None:
    """Return the digest of the bytes of a file.

    Args:
        file: The file.
        limit: Maximum size in bytes.

    Returns:
        `ABSENT` where there is none, None where it is larger.
    """
    try:
        # A pipe must not hang the open.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"unreadable: {error.strerror}"
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return "unreadable: not a regular file"
        if found.st_size > limit:
            return None
        whole = sha256()
        try:
            while block := opened.read(_BLOCK):
                whole.update(block)
        except OSError as error:
            return f"unreadable: {error.strerror}"
    return f"sha256:{whole.hexdigest()}"


def code_digests(folder: Path, root: Root) -> Mapping[str, str] | None:
    """Return the digests of the Python files that code of a directory may import.

    Args:
        folder: The directory.
        root: The root of the set, which names them.

    Returns:
        By path as approvals name it; None where there are more than a user could have read.
    """
    return _bounded(python_files(folder), root, _source_of)


def tree_digests(folder: Path, root: Root) -> Mapping[str, str] | None:
    """Return the digests of all files below a directory; links are not followed.

    Args:
        folder: The directory.
        root: The root of the set, which names them.

    Returns:
        By path as approvals name it; None where there are more than a user could have read.
    """
    return _bounded(_files_below(folder), root, _bytes_of)


def python_files(folder: Path) -> Iterator[Path]:
    """Yield the Python files a script in `folder` may import: its own, and those of packages."""
    waiting = [folder]
    while waiting:
        try:
            entries = sorted(waiting.pop().iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.suffix == ".py":
                yield entry
            elif (entry / "__init__.py").is_file():
                waiting.append(entry)


def importable_files(folder: Path, first: Path | None = None) -> Iterator[Path]:
    """Yield the files a Python program may import from the directory it starts in.

    In contrast to the functions of cards, a program imports modules without a source, and
    directories without `__init__.py`. Such a directory counts if a file before it imports its name:
    tests and data beside a program may change.

    Args:
        folder: The directory.
        first: A package in it; then other modules, too, count only if a file imports them.
    """
    waiting, later = [folder], []
    if first is not None:
        waiting, later = [first], [one for one in _entries(folder) if one != first]
    words, seen = {_CACHE.encode()}, set[str]()
    while waiting:
        sources: list[Path] = []
        while waiting:
            place = waiting.pop()
            real = os.path.realpath(place)
            if real in seen:  # links may lead in circles
                continue
            seen.add(real)
            for entry in [place] if place.suffix in _MODULES else _entries(place):
                if entry.suffix in _MODULES:
                    yield entry
                    sources.append(entry)
                else:
                    (waiting if _is_package(entry) else later).append(entry)
        if later:
            for source in sources:
                words.update(_words_of(source))
        named = [one for one in later if os.fsencode(one.name.partition(".")[0]) in words]
        waiting, later = named, [one for one in later if one not in named]


def module_names(folder: Path) -> Iterator[Path]:
    """Yield what takes the name of a module in a directory: a file, or the start of a package."""
    for entry in _entries(folder):
        if entry.suffix in _MODULES:
            yield entry
        elif _is_package(entry):
            yield entry / "__init__.py"


def _is_package(folder: Path) -> bool:
    """Return whether a directory is a package of Python, which others of its name give way to."""
    try:
        names = [one.name for one in folder.iterdir()]
    except OSError:
        return False
    return any(name.startswith("__init__.") and name.endswith(_ENDS) for name in names)


def _entries(folder: Path) -> list[Path]:
    """List the modules in a directory, directories that may be some, and unchecked code."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    found = [
        one
        for one in entries
        if one.suffix in _MODULES or (one.name.isidentifier() and one.is_dir())
    ]
    if folder.name == _CACHE:
        return [one for one in found if one.suffix == ".pyc" and _is_unchecked(one)]
    return found


def _is_unchecked(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(8)[4:] == _UNCHECKED
    except OSError:
        return False


def _words_of(source: Path) -> list[bytes]:
    if source.suffix != ".py":
        return []
    try:
        imports = _IMPORT.findall(source.read_bytes())
    except OSError:
        return []
    return [word for one in imports for word in _WORD.findall(one)]


def _bounded(
    files: Iterable[Path], root: Root, digest_of: Callable[[Path, int], tuple[str, int] | None]
) -> Mapping[str, str] | None:
    """Digest files until there are more, or larger ones, than a user could have read.

    Args:
        files: The files.
        root: Names them.
        digest_of: Returns the digest and the size of one, given how much is left; None where it is
            larger.
    """
    digests: dict[str, str] = {}
    left = MAX_BYTES
    for file in files:
        found = None if len(digests) >= MAX_FILES else digest_of(file, left)
        if found is None:
            return None
        digests[root.name(file)] = found[0]
        left -= found[1]
    return digests


def _source_of(file: Path, left: int) -> tuple[str, int] | None:
    try:
        text = read_source(file).text
    except SourceError as error:
        return f"unreadable: {error.message}", 0
    return (text_digest(text), len(text)) if len(text) <= left else None


def _bytes_of(file: Path, left: int) -> tuple[str, int] | None:
    digest = file_digest(file, left)
    try:
        size = file.stat().st_size
    except OSError:
        size = 0
    return None if digest is None else (digest, size)


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (folder.__class__(place, name) for name in sorted(names))
