"""Markdown as rows of a terminal.

Code has no indent, border or background, so that what is selected is what was written. Its long
lines are left to the terminal. Prose is wrapped at words. Lists are drawn tight, so that an item
can be drawn before the next one is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fast_agent.text.visible import visible
from fast_agent.tui.drawing.rows import LINK_END, link, plain, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from pygments.lexer import Lexer

    from fast_agent.tui.drawing.rows import Style
    from fast_agent.tui.drawing.theme import Theme

CODE_STEP: Final = 8
"""How many lines of code are highlighted at once."""
CODE_CONTEXT: Final = 24
"""How many lines before them are given to the highlighter, for strings of several lines."""
TABLE_ROWS: Final = 20
"""The rows that set the widths of a table; cells of further rows are wrapped."""
_MIN_CELL: Final = 3
_MAX_CODE_LINE: Final = 2_000
_ADDRESS: Final = re.compile(r"(?:https?://|mailto:)[!-~]{1,2000}")
"""Addresses that a terminal may be given to open."""
_HOST: Final = re.compile(r"\b(?:[\w-]+\.)+[^\W\d_]{2,}\b")


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the parser: CommonMark with tables and strikethrough."""
    from markdown_it import MarkdownIt

    class Parser(MarkdownIt):
        """Leaves addresses as they are written: they are shown, and never followed."""

        def normalizeLink(self, url: str) -> str:  # noqa: N802 (the library's name)
            return url

        def validateLink(self, url: str) -> bool:  # noqa: N802
            del url
            return True

    made = Parser("commonmark", {"html": True}).enable(["table", "strikethrough"])
    # A ruler fills its table of rules at its first use, and a thread that parses at the same time
    # finds it half full. So each is used here, before any thread has the parser.
    for ruler in (made.core.ruler, made.block.ruler, made.inline.ruler, made.inline.ruler2):
        ruler.getRules("")
    return made


@dataclass(slots=True)
class Block:
    """A top-level block of a text, as tokens.

    Args:
        tokens: Its tokens, from its opening to its closing one.
        first: The first line of its source, from 0.
        end: The line behind its last one.
    """

    tokens: Sequence[Token]
    first: int
    end: int

    @property
    def kind(self) -> str:
        """The type of its first token."""
        return self.tokens[0].type


def parse(source: str, env: dict[str, object]) -> list[Block]:
    """Cut a text into its top-level blocks.

    Args:
        source: The text.
        env: What the parser keeps of link definitions; further ones are added.
    """
    blocks: list[Block] = []
    tokens = parser().parse(source, env)
    start = 0
    for place, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            first, end = tokens[start].map or (0, 0)
            blocks.append(Block(tokens[start : place + 1], first, end))
            start = place + 1
    return blocks


@dataclass(slots=True)
class MarkdownRenderer:
    """Draws blocks.

    Args:
        columns: The width of prose.
        theme: The styles.
        wraps: Whether paragraphs are wrapped; else that is left to the terminal.
    """

    columns: int
    theme: Theme
    wraps: bool = True
    _lexers: dict[str, Lexer | None] = field(default_factory=dict["str", "Lexer | None"])

    def render(self, source: str) -> list[str]:
        """Draw a whole text."""
        lines: list[str] = []
        for block in parse(source, {}):
            rows = self.block(block)
            lines += [""] if lines and rows else []
            lines += rows
        return lines

    def block(self, block: Block, *, first_number: int | None = None) -> list[str]:
        """Draw a block.

        Args:
            block: The block.
            first_number: The number of the first item of a list that continues; None is its own.
        """
        return list(self._blocks(block.tokens, self.columns, first_number))

    def code(self, lines: Sequence[str], language: str, before: Sequence[str] = ()) -> list[str]:
        """Highlight lines of code.

        Args:
            lines: The lines.
            language: Its name in the text; may be empty.
            before: Lines before them, for the highlighter alone.
        """
        shown = [_code_line(line) for line in lines]
        lexer = self._lexer(language) if self.theme.color else None
        if lexer is None or any(len(line) > _MAX_CODE_LINE for line in shown):
            return shown
        context = [_code_line(line) for line in before[-CODE_CONTEXT:]]
        drawn: list[str] = [""]
        for kind, text in lexer.get_tokens("\n".join([*context, *shown]) + "\n"):
            style = self.theme.token(kind)
            head, *rest = text.split("\n")
            drawn[-1] += style(head)
            drawn += [style(piece) for piece in rest]
        found = drawn[len(context) : len(context) + len(shown)]
        # A lexer may drop or change what it does not know; the text comes first.
        same = len(found) == len(shown) and all(
            plain(one) == line for one, line in zip(found, shown, strict=True)
        )
        return found if same else shown

    def _lexer(self, language: str) -> Lexer | None:
        if language not in self._lexers:
            from pygments.lexers import (
                get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType]
            )
            from pygments.util import ClassNotFound

            try:
                lexer = get_lexer_by_name(language, stripnl=False) if language else None
            except ClassNotFound:
                lexer = None
            self._lexers[language] = lexer
        return self._lexers[language]

    def _blocks(
        self, tokens: Sequence[Token], columns: int, first_number: int | None = None
    ) -> Iterator[str]:
        """Draw blocks that follow each other, with a blank row between paragraphs."""
        place = 0
        is_tight = True  # nothing is above the first
        while place < len(tokens):
            end = _end_of(tokens, place)
            lines = self._block(tokens[place : end + 1], columns, first_number)
            if lines:
                if not is_tight and not tokens[place].hidden:
                    yield ""
                yield from lines
                is_tight = tokens[place].hidden
            place = end + 1

    def _block(self, tokens: Sequence[Token], columns: int, first_number: int | None) -> list[str]:
        token = tokens[0]
        match token.type:
            case "heading_open":
                style = self.theme.heading if token.tag in {"h1", "h2"} else self.theme.strong
                sign = f"{'#' * int(token.tag[1])} "
                rows = self._paragraph(tokens[1], columns - len(sign), style)
                return [style(sign if index == 0 else "  ") + row
                        for index, row in enumerate(rows)]  # fmt: skip
            case "paragraph_open":
                return self._paragraph(tokens[1], columns)
            case "fence" | "code_block":
                return self._code(token)
            case "bullet_list_open" | "ordered_list_open":
                return list(self._list(tokens, columns, first_number))
            case "blockquote_open":
                bar = self.theme.dim(f"{self.theme.sign('bar')} ")
                inner = self._blocks(tokens[1:-1], max(10, columns - 2))
                return [bar + self.theme.quote.over(row) for row in inner]
            case "table_open":
                return self.table(tokens)
            case "hr" if not self.theme.is_spoken:
                return [self.theme.dim(self.theme.sign("rule") * columns)]
            case "html_block":
                lines = visible_rows(token.content.rstrip("\n"))
                return [row for line in lines for row in wrap(line, columns)]
            case _:
                return []

    def _paragraph(self, token: Token, columns: int, style: Style | None = None) -> list[str]:
        lines = self._inline(token, style)
        if not self.wraps:
            return list(lines)
        return [row for line in lines for row in wrap(line, max(1, columns))]

    def _code(self, token: Token) -> list[str]:
        if not token.content:
            return []
        lines = token.content.removesuffix("\n").split("\n")
        language = language_of(token.info)
        drawn: list[str] = []
        for start in range(0, len(lines), CODE_STEP):
            drawn += self.code(lines[start : start + CODE_STEP], language, lines[:start])
        return drawn

    def _list(
        self, tokens: Sequence[Token], columns: int, first_number: int | None
    ) -> Iterator[str]:
        ordered = tokens[0].type == "ordered_list_open"
        start = tokens[0].attrGet("start")
        number = first_number
        if number is None:
            number = int(start) if start is not None else 1
        place = 1
        while place < len(tokens) - 1:
            end = _end_of(tokens, place)
            marker = f"{number}. " if ordered else f"{self.theme.sign('bullet')} "
            number += 1
            inner = list(self._blocks(tokens[place + 1 : end], max(10, columns - len(marker))))
            for index, row in enumerate(inner or [""]):
                head = self.theme.dim(marker) if index == 0 else " " * len(marker)
                yield head + row if row or index == 0 else ""
            place = end + 1

    def table(self, tokens: Sequence[Token]) -> list[str]:
        """Draw a table; one with too many columns for the width becomes records."""
        rows = [[" ".join(self._inline(cell, None)) for cell in row] for row in _cells(tokens)]
        header, *body = rows
        if self.theme.is_spoken:
            return [row for cells in body for row in wrap(_sentence(header, cells), self.columns)]
        sides = [_side(token) for token in tokens if token.type == "th_open"]
        widths = self.table_widths(rows[: TABLE_ROWS + 1])
        if widths is None:
            return list(self._records(header, body))
        ruled = "  ".join(self.theme.sign("rule") * one for one in widths)
        lines = self.table_row([self.theme.strong.over(cell) for cell in header], widths, sides)
        lines.append(self.theme.dim(ruled))
        for row in body:
            lines += self.table_row(row, widths, sides)
        return lines

    def table_widths(self, rows: Sequence[Sequence[str]]) -> list[int] | None:
        """Fit columns into the width by shrinking the widest; None where that is not enough."""
        widths = [max(1, *(width(row[at]) for row in rows)) for at in range(len(rows[0]))]
        room = self.columns - 2 * (len(widths) - 1)
        if len(widths) * _MIN_CELL > room or (len(widths) > 6 and sum(widths) > room):
            return None
        while sum(widths) > room:
            widest = max(widths)
            at = widths.index(widest)
            over = sum(widths) - room
            second = max((one for one in widths if one < widest), default=_MIN_CELL)
            widths[at] = max(_MIN_CELL, second, widest - over) if widest > second else widest - 1
        return widths

    def table_row(
        self, row: Sequence[str], widths: Sequence[int], sides: Sequence[str]
    ) -> list[str]:
        """Draw a row, each cell wrapped to its width and at its side of the column."""
        cells = [wrap(cell, one) for cell, one in zip(row, widths, strict=True)]
        most = max(len(cell) for cell in cells)
        lines: list[str] = []
        for index in range(most):
            parts = [cell[index] if index < len(cell) else "" for cell in cells]
            padded = [
                _at_side(part, one - width(part), side)
                for part, one, side in zip(parts, widths, sides, strict=True)
            ]
            lines.append("  ".join(padded).rstrip(" "))
        return lines

    def _records(self, header: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
        for number, row in enumerate(body):
            if number:
                yield ""
            for name, cell in zip(header, row, strict=True):
                yield from wrap(f"{self.theme.strong.over(name)}: {cell}", self.columns, "  ")

    def _inline(self, token: Token, style: Style | None) -> list[str]:
        """Draw running text; each item is a line up to a hard break."""
        return _RunningText(self.theme, style).lines_of(token)


class _RunningText:
    """Running text being drawn."""

    def __init__(self, theme: Theme, style: Style | None) -> None:
        self._theme = theme
        self._lines = [""]
        self._styles: list[Style] = [] if style is None else [style]
        self._links: list[tuple[str, int]] = []
        self._opened = ""
        self._openings = {
            "strong_open": theme.strong,
            "em_open": theme.emphasis,
            "s_open": theme.struck,
        }

    def lines_of(self, token: Token) -> list[str]:
        for child in token.children or ():
            self._draw(child)
        return self._lines

    def _draw(self, child: Token) -> None:
        match child.type:
            case "code_inline":
                self._lines[-1] += self._theme.code(visible(child.content))
            case "softbreak":
                self._add(" ")
            case "hardbreak":
                self._lines[-1] += LINK_END if self._opened else ""
                self._lines.append(self._opened)
            case "strong_open" | "em_open" | "s_open":
                self._styles.append(self._openings[child.type])
            case "strong_close" | "em_close" | "s_close":
                self._styles.pop()
            case "link_open":
                address = str(child.attrGet("href") or "")
                self._links.append((address, len(self._plain_text())))
                self._opened = link(address) if self._theme.links and _opens(address) else ""
                self._lines[-1] += self._opened
                self._styles.append(self._theme.link)
            case "link_close":
                self._close_link()
            case "image":
                self._add(f"[image: {visible(child.content)}]")
                self._add_dim(f" ({visible(str(child.attrGet('src') or ''))})")
            case _:
                self._add(visible(child.content))

    def _close_link(self) -> None:
        """Show the address of a link behind it, where nothing else says where it leads."""
        self._styles.pop()
        address, since = self._links.pop()
        said = self._plain_text()[since:]
        is_open, self._opened = bool(self._opened), ""
        if is_open:
            self._lines[-1] += LINK_END
        known = {said, f"mailto:{said}"}
        if visible(address) not in known and not (is_open and _agrees(said, address)):
            self._add_dim(f" ({visible(address)})")

    def _plain_text(self) -> str:
        return plain("\n".join(self._lines))

    def _add(self, text: str) -> None:
        for style in self._styles:
            text = style.over(text)
        self._lines[-1] += text

    def _add_dim(self, text: str) -> None:
        self._lines[-1] += self._theme.dim(text)


def _opens(address: str) -> bool:
    """Whether a terminal may be given an address: one of the web or of mail, that hides no host."""
    try:
        return bool(_ADDRESS.fullmatch(address)) and urlsplit(address).username is None
    except ValueError:
        return False


def _agrees(said: str, address: str) -> bool:
    """Whether the text of a link names no other host than that of its address."""
    host = urlsplit(address).hostname or address.rpartition("@")[2]
    return all(one.casefold() == host.casefold() for one in _HOST.findall(said))


def language_of(info: str) -> str:
    """Return the name of a language from what stands behind a fence."""
    words = info.split(maxsplit=1)
    return words[0].lower().strip("{}.") if words else ""


def visible_rows(text: str) -> list[str]:
    """Return the lines of a text, each visible."""
    return [visible(line.expandtabs(4)) for line in text.split("\n")]


def _code_line(line: str) -> str:
    return "\t".join(visible(piece) for piece in line.split("\t"))


def _end_of(tokens: Sequence[Token], place: int) -> int:
    """Return the place of the token that closes the block opened at a place."""
    depth = 0
    for at in range(place, len(tokens)):
        depth += tokens[at].nesting
        if depth <= 0:
            return at
    return len(tokens) - 1


def _sentence(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row of a table as it is read aloud; empty cells are left out."""
    pairs = zip(header, cells, strict=True)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell) + "."


def _side(token: Token) -> str:
    """Return the side that the row below the header of a table asks for: left, right or center."""
    return str(token.attrGet("style") or "").rpartition(":")[2]


def _at_side(text: str, blanks: int, side: str) -> str:
    before = {"right": blanks, "center": blanks // 2}.get(side, 0)
    return " " * before + text + " " * (blanks - before)


def _cells(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the inline tokens of each row of a table."""
    row: list[Token] = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type == "inline":
            row.append(token)
        elif token.type == "tr_close":
            yield row
