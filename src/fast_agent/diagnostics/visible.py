"""Untrusted text made safe to print: what cannot be seen is shown as its code point."""

from __future__ import annotations

import unicodedata

_PLAIN_FORMAT = frozenset("\u200c\u200d")  # joiners that ordinary words and emoji are made with
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_TAB_STOP = 4


def visible(text: str) -> str:
    """Show control, bidirectional and zero-width characters as `<U+202E>`, on one line.

    Args:
        text: Any text, also one that was written to deceive a terminal.

    Returns:
        Text in which every character prints as itself.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join([_shown(character) for character in text])


def cells(text: str) -> int:
    """Count the terminal columns of a text that `visible` made."""
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
    for character in line:
        if character == "\t":
            width = _TAB_STOP - column % _TAB_STOP
            shown = " " * width
        else:
            shown = _shown(character)
            width = _width(shown) if len(shown) == 1 else len(shown)
        laid.append((shown, width))
        column += width
    return laid


def _shown(character: str) -> str:
    if character in _PLAIN_FORMAT or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"<U+{ord(character):04X}>"


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
