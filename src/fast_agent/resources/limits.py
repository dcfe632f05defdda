"""How much a resource, an answer and a client may take, and how many tokens a string may be."""

from __future__ import annotations

from typing import NamedTuple

CHARACTERS_PER_TOKEN = 4


class Limits(NamedTuple):
    """Bounds that fail loudly; nothing is ever cut to fit.

    Args:
        file_bytes: Most bytes of one file.
        answer_bytes: Most bytes of one answer's bodies.
        parts: Most parts of a multipart answer.
        page: Most entries of one page of a list.
        completions: Most values of one completion; MCP allows a hundred.
        tree_files: Most files one root or skill may hold before walking it stops.
        tree_depth: Most folders below each other.
        session_subscriptions: Most URIs one client may follow.
        subscriptions: Most URIs all clients may follow together.
        listens: Most `subscriptions/listen` streams one client may hold open.
    """

    file_bytes: int = 1 << 20
    answer_bytes: int = 4 << 20
    parts: int = 200
    page: int = 2048
    completions: int = 100
    tree_files: int = 100_000
    tree_depth: int = 16
    session_subscriptions: int = 1000
    subscriptions: int = 10_000
    listens: int = 64


DEFAULT_LIMITS = Limits()


def estimate(characters: int) -> int:
    """Estimate the tokens of a string with this many characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
