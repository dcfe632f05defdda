"""Card files: which files may be cards, and which of a directory are."""

from __future__ import annotations

import os
import re
from collections import deque

from fast_agent.text.frozen import frozen
from fast_agent.text.source import SourceError, read_source

CARD_SUFFIXES = (".md", ".markdown", ".yaml", ".yml")
"""The suffixes of card files, in lower case."""

TEST_SUFFIXES = (".test.yaml", ".test.yml")
"""How the names of files end that hold the tests of cards, in lower case."""

MAX_SEARCHED = 200
"""Entries checked below a directory without cards, to find where cards are; bounds the time."""

CARD_KEY = re.compile(r"""^["']?(?:type|name|instruction)["']?\s*:""", re.MULTILINE)
"""A line with a key that every card has one of."""

_CONFIGURATION = re.compile(
    r"(?:fastagent\.config|fast-agent|.*\.secrets)\.ya?ml", re.IGNORECASE | re.DOTALL
)


@frozen
class Candidate:
    """A file that may be a card.

    Args:
        path: Where it is.
        shown: Its path as the user named it.
        named: Whether the user named the file itself, not its directory.
    """

    path: str
    shown: str
    named: bool


@frozen
class SkippedPath:
    """An entry of a directory that is not loaded from there.

    Args:
        path: Its path as the user named it.
        reason: Why it is not loaded.
    """

    path: str
    reason: str


@frozen
class OtherEntries:
    """What a directory contains in addition to files that may be cards.

    Args:
        directories: Directories below it, at any depth, that hold files which look like cards.
        files: Files in it whose names are not those of cards.
    """

    directories: tuple[SkippedPath, ...] = ()
    files: tuple[SkippedPath, ...] = ()


def is_markdown(name: str) -> bool:
    """Whether a file name has a suffix of Markdown cards."""
    return name.lower().endswith((".md", ".markdown"))


def is_configuration(name: str) -> bool:
    """Whether a file name is that of a configuration or secrets file."""
    return _CONFIGURATION.fullmatch(name) is not None


def is_test_file(name: str) -> bool:
    """Whether a file name is that of the tests of a card."""
    return name.lower().endswith(TEST_SUFFIXES)


def is_skill(name: str) -> bool:
    """Whether a file name is that of a skill."""
    return name.lower() == "skill.md" and name.startswith("SKILL")


def stem(name: str) -> str:
    """Return a file name without its suffix: the name of a card without a `name`."""
    return os.path.splitext(name)[0]  # noqa: PTH122 - names of addresses come here too


def list_directory(path: str, shown: str) -> list[Candidate]:
    """List the files of a directory that may be cards, sorted by name.

    Hidden files, directories, configuration files, tests and files of other kinds are left out; a
    pipe or a dead link called like a card is not, so that reading it reports what is wrong.

    Args:
        path: The directory.
        shown: Its path as the user named it.

    Returns:
        The files.

    Raises:
        OSError: The directory cannot be read.
    """
    found: list[Candidate] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if is_candidate(entry):
                name = entry.name
                found.append(Candidate(entry.path, os.path.join(shown, name), named=False))  # noqa: PTH118 - shown as written
    found.sort(key=_by_name)
    return found


def is_candidate(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a directory may be a card, by its name and kind."""
    return has_card_name(entry.name) and not _is_directory(entry)


def has_card_name(name: str) -> bool:
    """Whether a file of this name in a directory would be taken for a card."""
    if name.startswith(".") or not name.lower().endswith(CARD_SUFFIXES):
        return False
    return not is_configuration(name) and not is_test_file(name)


def other_entries(path: str, shown: str) -> OtherEntries:
    """List what a directory contains in addition to card files, to explain why it has no cards.

    Hidden entries are left out, links to directories are not followed.

    Args:
        path: The directory.
        shown: Its path as the user named it.
    """
    files = [
        SkippedPath(os.path.join(shown, entry.name), _why_not(entry.name))  # noqa: PTH118
        for entry in _entries(path)
        if not entry.name.startswith(".") and not is_candidate(entry) and not _is_directory(entry)
    ]
    directories: list[SkippedPath] = []
    waiting = deque([(path, shown)])
    searched = 0
    while waiting:
        at, named = waiting.popleft()
        found = 0
        for entry in _entries(at):
            searched += 1
            if searched > MAX_SEARCHED:
                return OtherEntries(tuple(directories), tuple(files))
            inner = os.path.join(named, entry.name)  # noqa: PTH118 - shown as written
            if _is_searched(entry):
                waiting.append((entry.path, inner))
            elif at != path and is_candidate(entry) and _looks_like_card(entry.path):
                found += 1
        if found:
            count = "a file that looks like a card" if found == 1 else f"{found} files like cards"
            directories.append(SkippedPath(named, f"a directory below, with {count}"))
    return OtherEntries(tuple(directories), tuple(files))


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=_entry_name)
    except OSError:  # not ours to read, or deleted since it was listed
        return []


def _entry_name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _is_searched(entry: os.DirEntry[str]) -> bool:
    own = entry.name == ".fast-agent"
    if (entry.name.startswith(".") and not own) or entry.name == "node_modules":
        return False
    return entry.is_dir(follow_symlinks=False)


def _looks_like_card(path: str) -> bool:
    try:
        text = read_source(path).text
    except SourceError:
        return False
    if is_skill(os.path.basename(path)):  # noqa: PTH119 - names only
        return False
    if is_markdown(path):
        return text.startswith("---\n") and CARD_KEY.search(text) is not None
    return CARD_KEY.search(text) is not None


def _why_not(name: str) -> str:
    if is_configuration(name):
        return "a configuration file"
    if is_test_file(name):
        return "tests of a card"
    suffix = os.path.splitext(name)[1]  # noqa: PTH122 - a name, not a path
    has = f"`{suffix}` is not a suffix of cards" if suffix else "it has no suffix"
    return f"{has}; they end in {', '.join(CARD_SUFFIXES)}"


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _by_name(candidate: Candidate) -> str:
    return candidate.path
