"""Rows of a terminal: text with this program's own styles, measured, wrapped and clipped.

A row is a string without line ends. Its only escapes are those of `Style`, each style ended before
the next begins, and those of `link`. Text of others goes through `shown` first.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from wcwidth import wcwidth

from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

RESET: Final = "\x1b[0m"
_ESCAPE: Final = r"\x1b\[[0-9;]*m|\x1b\]8;;[!-~]*\x1b\\"
_ESCAPES: Final = re.compile(_ESCAPE)
_PIECES: Final = re.compile(f"({_ESCAPE})")
_LINK: Final = "\x1b]8;;"
LINK_END: Final = f"{_LINK}\x1b\\"
_JOINED: Final = re.compile("[\u200c\u200d\ufe0e\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
TAB_STOP: Final = 4


class Style:
    """How a piece of text is drawn: `style("text")`.

    Args:
        codes: SGR parameters, such as `1;36`; empty draws text as it is.
    """

    __slots__ = ("codes",)

    def __init__(self, codes: str) -> None:
        self.codes = codes

    def __call__(self, text: str) -> str:
        """Draw a string that has no styles."""
        return f"\x1b[{self.codes}m{text}{RESET}" if self.codes and text else text

    def over(self, row: str) -> str:
        """Draw a row that has its own styles; this one continues after each of them."""
        if not self.codes or not row:
            return row
        begin = f"\x1b[{self.codes}m"
        return f"{begin}{row.replace(RESET, RESET + begin)}{RESET}"


PLAIN: Final = Style("")


def link(address: str) -> str:
    """Return what starts a link to an address of printable ASCII; `LINK_END` ends it."""
    return f"{_LINK}{address}\x1b\\"


def shown(text: str) -> str:
    """Return untrusted text on one line: what a terminal would obey is shown as code points."""
    return visible(text.expandtabs(TAB_STOP) if "\t" in text else text)


@lru_cache(maxsize=4096)
def _character_width(character: str) -> int:
    return max(0, wcwidth(character))


def width(row: str) -> int:
    """Count the columns of a row."""
    text = plain(row)
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def is_measured(row: str) -> bool:
    """Whether every terminal draws a row as wide as `width` says; joined emoji differ."""
    return row.isascii() or not _JOINED.search(row)


def plain(row: str) -> str:
    """Return a row without its styles and links."""
    return _ESCAPES.sub("", row) if "\x1b" in row else row


def height(row: str, columns: int) -> int:
    """Count the screen rows a row takes."""
    return max(1, -(-width(row) // columns))


def clip(row: str, columns: int, mark: str = "…") -> str:
    """Return a row of at most `columns` columns, with `mark` where something was cut off."""
    if width(row) <= columns:
        return row
    if columns <= 0:
        return ""
    left = columns - width(mark)
    kept: list[str] = []
    styled = linked = False
    for piece in _PIECES.split(row):
        if piece.startswith("\x1b"):
            kept.append(piece)
            if piece.startswith(_LINK):
                linked = piece != LINK_END
            else:
                styled = piece != RESET
            continue
        for character in piece:
            left -= _character_width(character)
            if left < 0:
                ends = (RESET if styled else "") + (LINK_END if linked else "")
                return "".join(kept) + mark + ends
            kept.append(character)
    return row


def wrap(row: str, columns: int, indent: str = "") -> list[str]:
    """Wrap a row at blanks; a word wider than the row is broken.

    Args:
        row: The row; a style or link that continues over a break is ended and started again.
        columns: The width.
        indent: Prefix of every further row.

    Returns:
        At least one row; blanks at a break are dropped.
    """
    if width(row) <= columns:
        return [row]
    letters = list(_letters(row))
    lines: list[str] = []
    start = 0
    while start < len(letters):
        room = max(1, columns - width(indent)) if lines else max(1, columns)
        end, following = _break(letters, start, room)
        lines.append((indent if lines else "") + _joined(letters[start:end]))
        start = following
    return lines


_Look: TypeAlias = tuple[str, str]
"""What starts the style and the link of a character; empty without one."""


def _letters(row: str) -> Iterator[tuple[str, _Look]]:
    """Yield the characters of a row, each with its style and its link."""
    style = linked = ""
    for piece in _PIECES.split(row):
        if piece.startswith(_LINK):
            linked = "" if piece == LINK_END else piece
        elif piece.startswith("\x1b"):
            style = "" if piece == RESET else piece
        else:
            for character in piece:
                yield character, (style, linked)


def _break(letters: list[tuple[str, _Look]], start: int, room: int) -> tuple[int, int]:
    """Find where a row ends, and where the next one starts."""
    used, blank = 0, None
    for place in range(start, len(letters)):
        character = letters[place][0]
        if character == " ":
            blank = place
        used += _character_width(character)
        if used > room:
            break
    else:
        return len(letters), len(letters)
    end = following = start if blank is None else blank
    while end > start and letters[end - 1][0] == " ":
        end -= 1
    while following < len(letters) and letters[following][0] == " ":
        following += 1
    if end == start:  # one word, or blanks alone before it, wider than the row
        end = max(place, start + 1)
        return end, end
    return end, following


def _joined(letters: list[tuple[str, _Look]]) -> str:
    pieces: list[str] = []
    for (style, linked), run in groupby(letters, key=itemgetter(1)):
        text = "".join(character for character, _ in run)
        drawn = f"{style}{text}{RESET}" if style else text
        pieces.append(f"{linked}{drawn}{LINK_END}" if linked else drawn)
    return "".join(pieces)
