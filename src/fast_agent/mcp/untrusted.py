"""Text and addresses that servers provide, made fit to be shown to a user."""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

NAME_LIMIT = 200
REPORT_LIMIT = 500
DESCRIPTION_LIMIT = 16_000
INSTRUCTIONS_LIMIT = 32_000

_CUT = "…"


def one_line(text: str, limit: int = REPORT_LIMIT) -> str:
    """Make a single line for a message: white space folded, controls dropped, bounded."""
    # Bounded first, so that a huge text costs little; folding only makes it shorter.
    shown = " ".join(_plain(text[: 4 * limit]).split())
    return shown if len(shown) <= limit and len(text) <= 4 * limit else shown[: limit - 1] + _CUT


def block(text: str, limit: int) -> str:
    """Bound a longer text and drop its controls, line breaks and tabs kept."""
    shown = _plain(text[:limit])
    return shown if len(text) <= limit else shown + _CUT


def opens_safely(url: str) -> bool:
    """Whether an address may be shown to a person to open: `http` or `https`, without tricks."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    hidden = parts.username is not None or not url.isprintable() or " " in url
    return parts.scheme in ("http", "https") and bool(host) and not hidden


def _plain(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Cf")
    )
