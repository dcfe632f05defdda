"""Frames of the terminal as text and as SVG pictures, made from the cells of a screen."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyte.screens import Char
    from tests.tui.terminal_world import Screen

_CELL_WIDTH, _ROW_HEIGHT, _EDGE = 8.4, 18, 12
_FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_PAPER, _INK = "#1e1e2e", "#d9dce6"
_COLOURS: Final = {
    "black": "#6c7086", "red": "#f38ba8", "green": "#a6e3a1", "brown": "#f9e2af",
    "blue": "#89b4fa", "magenta": "#cba6f7", "cyan": "#94e2d5", "white": "#d9dce6",
}  # fmt: skip
_DURATION: Final = re.compile(r"\b[0-9]+(\.[0-9])? s\b")


_DIRECTORY: Final = re.compile(r" in /\S+")


def _fixed(text: str) -> str:
    """Replace durations and the directory of the test, which differ in every run."""
    return _DIRECTORY.sub(" in ~/desk", _DURATION.sub("0.1 s", text))


def frame_text(screen: Screen) -> str:
    """Return the rows of a screen without blanks behind them, with what differs in a run fixed."""
    rows = ["".join(char.data for char in row).rstrip() for row in _rows(screen)]
    return _fixed("\n".join(rows).rstrip() + "\n")


def frame_svg(screen: Screen) -> str:
    """Draw the rows of a screen that hold text."""
    rows = list(_rows(screen))
    count = len(frame_text(screen).split("\n")) - 1
    width = screen.columns * _CELL_WIDTH + 2 * _EDGE
    height = count * _ROW_HEIGHT + 2 * _EDGE
    texts = [text for at, row in enumerate(rows[:count]) for text in _row_svg(row, at)]
    # Attributes, not a style sheet: its rules would win over the colour and weight of a run.
    ink = f'fill="{_INK}" font-family="{_FONTS}" font-size="14" xml:space="preserve"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}">',
            f'  <rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>',
            f"  <g {ink}>",
            *texts,
            "  </g>",
            "</svg>\n",
        ]
    )


def _rows(screen: Screen) -> Iterator[list[Char]]:
    for row in range(screen.lines):
        yield [screen.buffer[row][column] for column in range(screen.columns)]


def _row_svg(row: list[Char], at: int) -> Iterator[str]:
    y = _EDGE + (at + 0.75) * _ROW_HEIGHT
    column = 0
    for style, run in groupby(row, _style):
        text = "".join(char.data for char in run)
        shown = _fixed(text).rstrip()
        if text.strip():
            x = _EDGE + column * _CELL_WIDTH
            length = len(shown) * _CELL_WIDTH
            place = f'x="{x:g}" y="{y:g}" textLength="{length:g}"'
            yield f"    <text {place}{style}>{escape(shown)}</text>"
        column += len(text)


def _style(char: Char) -> str:
    colour = _COLOURS.get(char.fg.removeprefix("bright"), f"#{char.fg}")
    fill = "" if char.fg == "default" else f' fill="{colour}"'
    return fill + (' font-weight="bold"' if char.bold else "")
