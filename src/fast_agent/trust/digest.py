"""Digests of the files a found set would run or read, without regard to time and size."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING

from fast_agent.text.source import SourceError, read_source
from fast_agent.trust.programs import ABSENT, MAX_BYTES, MAX_FILES, python_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.trust.origin import Root

_BLOCK = 1 << 20


def text_digest(text: str) -> str:
    """Return the digest of a text as it was read: without a byte order mark, ends as line feeds."""
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
        while block := opened.read(_BLOCK):
            whole.update(block)
    return f"sha256:{whole.hexdigest()}"


def code_digests(folder: Path, root: Root) -> Mapping[str, str] | None:
    """Return the digests of the Python files that code of a directory may import.

    Args:
        folder: The directory.
        root: The root of the set, which names them.

    Returns:
        By path as approvals name it; None where there are more than a person could have read.
    """
    digests: dict[str, str] = {}
    left = MAX_BYTES
    for file in python_files(folder):
        if len(digests) >= MAX_FILES:
            return None
        try:
            text = read_source(file).text
        except SourceError as error:
            digests[root.name(file)] = f"unreadable: {error.message}"
            continue
        left -= len(text)
        if left < 0:
            return None
        digests[root.name(file)] = text_digest(text)
    return digests


def tree_digests(folder: Path, root: Root) -> Mapping[str, str] | None:
    """Return the digests of all files below a directory; links are not followed.

    Args:
        folder: The directory.
        root: The root of the set, which names them.

    Returns:
        By path as approvals name it; None where there are more than a person could have read.
    """
    digests: dict[str, str] = {}
    left = MAX_BYTES
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            file = folder.__class__(place, name)
            try:
                size = file.lstat().st_size
            except OSError:
                continue
            left -= size
            digest = None if left < 0 or len(digests) >= MAX_FILES else file_digest(file)
            if digest is None:
                return None
            digests[root.name(file)] = digest
    return digests
