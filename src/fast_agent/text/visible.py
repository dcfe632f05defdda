"""Untrusted text made safe to print: a character that cannot be seen is shown as its code point."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS: Final = frozenset("\u200c\u200d")
# Categories a joiner may follow: emoji, and letters and signs of scripts that are written with it.
_JOINED: Final = frozenset({"So", "Sk", "Mn", "Mc", "Lo"})
_KEYCAPS: Final = frozenset("0123456789#*")
_AS_TEXT_OR_EMOJI: Final = frozenset("\ufe0e\ufe0f")
# Letters and marks without a visible shape; their category does not reveal it.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0"
)
_PLAIN_LINE: Final = re.compile(r"[\x20-\x7e]*\Z")
_PLAIN_LINES: Final = re.compile(r"[\t\n\x20-\x7e]*\Z")
_TAB_STOP: Final = 4


def visible(text: str) -> str:
    """Show control, bidirectional and zero-width characters as `<U+202E>`, on one line.

    Args:
        text: Any text, also one that was written to deceive a terminal.

    Returns:
        Text in which every character prints as itself.
    """
    return text if _PLAIN_LINE.match(text) else _all_shown(text, "", kept="")


def visible_lines(text: str, before: str = "") -> str:
    """Show what `visible` shows, and leave line feeds and tabs as they are.

    Each character is judged alone and by the one before it, so that a text may come in pieces
    cut anywhere: an escape sequence has no start.

    Args:
        text: Any text.
        before: The character that was printed before it; empty at the start of a line.

    Returns:
        Text that moves the cursor of a terminal by line feeds and tabs alone.
    """
    return text if _PLAIN_LINES.match(text) else _all_shown(text, before, kept="\n\t")


def cells(text: str) -> int:
    """Count the terminal columns of a string that `visible` made."""
    return len(text) if text.isascii() else sum(map(_width, text))


def glyphs(line: str) -> list[tuple[str, int]]:
    """Lay a source line out for a terminal.

    Args:
        line: One line, without its end.

    Returns:
        For each character what to print for it and how many terminal columns that takes;
        a tab becomes the spaces up to the next stop.
    """
    laid: list[tuple[str, int]] = []
    column = 0
    before = ""
    for character in line:
        if character == "\t":
            width = _TAB_STOP - column % _TAB_STOP
            shown = " " * width
        else:
            shown = _shown(character, before)
            width = _width(shown) if len(shown) == 1 else len(shown)
        laid.append((shown, width))
        column += width
        before = character
    return laid


def _all_shown(text: str, before: str, *, kept: str) -> str:
    pieces: list[str] = []
    for character in text:
        pieces.append(character if character in kept else _shown(character, before))
        before = character
    return "".join(pieces)


def _shown(character: str, before: str) -> str:
    return f"<U+{ord(character):04X}>" if _is_hidden(character, before) else character


def _is_hidden(character: str, before: str) -> bool:
    """Whether a character does not show, or could hide something behind the one before it."""
    if " " <= character <= "~":
        return False
    if character in _JOINERS:
        return before.isascii() or not _joins(before)
    if _is_selector(character):
        if before.isascii():
            return before not in _KEYCAPS or character not in _AS_TEXT_OR_EMOJI
        return _is_hidden(before, "")
    if character in _BLANK or "\U000e0000" <= character <= "\U000e0fff":
        return True
    return unicodedata.category(character) in _HIDDEN


def _joins(character: str) -> bool:
    """Whether a joiner behind a character has work to do; behind an ideograph it has none."""
    category = unicodedata.category(character)
    return category in _JOINED and not (category == "Lo" and _width(character) == 2)


def _is_selector(character: str) -> bool:
    """Whether a character selects a form of the one before it; many in a row can carry text."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
