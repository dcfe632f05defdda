"""Card files: which files may be cards, and which of a directory are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

CARD_SUFFIXES = (".md", ".markdown", ".yaml", ".yml")
"""The suffixes of card files, in lower case."""

TEST_SUFFIXES = (".test.yaml", ".test.yml")
"""How the names of files end that hold the tests of cards, in lower case."""

_CONFIGURATION = re.compile(
    r"(?:fastagent\.config|fast-agent|.*\.secrets)\.ya?ml", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
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


def is_markdown(name: str) -> bool:
    """Whether a file name has a suffix of Markdown cards."""
    return name.lower().endswith((".md", ".markdown"))


def is_yaml(name: str) -> bool:
    """Whether a file name has a suffix of YAML cards."""
    return name.lower().endswith((".yaml", ".yml"))


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
    """Give a file name without its suffix: what a card without a `name` is called."""
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


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _by_name(candidate: Candidate) -> str:
    return candidate.path
