"""Stream: Markdown that arrives in pieces, drawn block by block as each is finished.

The text is cut into finished source, which is drawn once and never parsed again, and a pending
rest. All top-level blocks but the last are finished. Within the last one, lines of code, items of a
list and rows of a table are finished as soon as nothing that follows can change them. In the end
the rows are those of drawing the whole text at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.tui.drawing.markdown import (
    CODE_CONTEXT,
    CODE_STEP,
    TABLE_ROWS,
    MarkdownRenderer,
    language_of,
    parse,
)

if TYPE_CHECKING:
    from fast_agent.tui.drawing.markdown import Block
    from fast_agent.tui.drawing.theme import Theme

LONG_PARAGRAPH: Final = 2_000
"""From this many characters on a paragraph is cut at the ends of its sentences."""
_LAZY_SIZE: Final = 16_384
_LAZY_SHARE: Final = 8
_SENTENCE_END: Final = re.compile(r"[.!?][\"')\]]*[ \n]+(?=[^\W\d_])")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_KINDS: Final = frozenset({"bullet_list_open", "ordered_list_open"})


class MarkdownStream:
    """Draws text as it arrives.

    Args:
        columns: The width of prose.
        theme: The styles.
        wraps: Whether paragraphs are wrapped.

    Attributes:
        pending: The source that is not drawn yet.
    """

    def __init__(self, columns: int, theme: Theme, *, wraps: bool = True) -> None:
        self._renderer = MarkdownRenderer(columns, theme, wraps)
        self._env: dict[str, object] = {}
        self.pending = ""
        self._parsed = 0
        self._drew = False
        self._fence: _OpenFence | None = None
        self._number: int | None = None
        self._table: _OpenTable | None = None
        self._joins = False
        self._ended = False

    @property
    def columns(self) -> int:
        """The width of prose."""
        return self._renderer.columns

    @columns.setter
    def columns(self, columns: int) -> None:
        self._renderer.columns = columns

    def feed(self, text: str) -> list[str]:
        """Take a piece; returns the rows that are finished now."""
        self.pending += text
        if "\n" not in text and len(self.pending) < LONG_PARAGRAPH:
            return []
        grown = len(self.pending) - self._parsed
        if self._parsed > _LAZY_SIZE and grown < self._parsed // _LAZY_SHARE:
            return []  # a huge block without an inner border would be parsed at each line
        return self._advance()

    def finish(self) -> list[str]:
        """End the text; returns the rows that are left."""
        self._ended = True
        lines: list[str] = []
        while self.pending:
            before = self.pending
            lines += self._advance()
            if self.pending == before:
                break
        self.pending = ""
        return lines

    def _advance(self) -> list[str]:
        lines: list[str] = []
        while True:
            drawn, more = self._step()
            lines += drawn
            if not more:
                self._parsed = len(self.pending)
                return lines

    def _step(self) -> tuple[list[str], bool]:
        """Draw what is finished; returns the rows, and whether there may be more."""
        if self._fence is not None:
            return self._more_code(self._fence)
        if self._table is not None:
            return self._more_rows(self._table)
        whole = self.pending if self._ended else self.pending[: self.pending.rfind("\n") + 1]
        blocks = parse(whole, self._env)
        if not blocks:
            return self._long_paragraph(None) if not whole else ([], False)
        source = self.pending.splitlines(keepends=True)
        last = len(blocks) - 1
        lines: list[str] = []
        for block in blocks[: last + self._is_closed(blocks[last])]:
            lines += self._draw(block)
        if self._is_closed(blocks[last]):
            self._drop(source, blocks[last].end)
            return lines, False
        block = blocks[last]
        self._drop(source, block.first)
        return self._draw_unfinished(block, lines)

    def _is_closed(self, block: Block) -> bool:
        """Whether nothing that follows can change a block."""
        if self._ended:
            return True
        token = block.tokens[0]
        if block.kind == "heading_open":
            return token.markup.startswith("#")
        return block.kind == "hr"

    def _draw_unfinished(self, block: Block, lines: list[str]) -> tuple[list[str], bool]:
        """Draw what is finished inside of the last block, whose source is what is pending."""
        match block.kind:
            case "fence":
                self._fence = _OpenFence(block.tokens[0].markup, language_of(block.tokens[0].info))
                self._fence.indent = len(self.pending) - len(self.pending.lstrip(" "))
                self.pending = self.pending.partition("\n")[2]
                return lines, True
            case "bullet_list_open" | "ordered_list_open":
                return lines + self._items(block), False
            case "table_open" if block.end - block.first >= TABLE_ROWS + 2:
                lines += self._open_table(block)
                return lines, True
            case "paragraph_open":
                more, again = self._long_paragraph(block)
                return lines + more, again
            case _:
                return lines, False

    def _separator(self) -> list[str]:
        """Return the blank row before a block; none before the first and before a continued one."""
        blank = [""] if self._drew and not self._joins else []
        self._drew, self._joins = True, False
        return blank

    def _draw(self, block: Block) -> list[str]:
        if block.kind == "paragraph_open":
            return self._draw_paragraph(block.tokens[1].content)
        goes_on = self._number is not None and block.kind in _LIST_KINDS
        rows = self._renderer.block(block, first_number=self._number if goes_on else None)
        self._joins = self._joins and goes_on
        self._number = None
        return [*self._separator(), *rows] if rows else []

    def _draw_paragraph(self, text: str) -> list[str]:
        self._number = None
        lines = self._separator()
        for piece in cut_paragraph(text):
            lines += self._prose(piece)
        return lines

    def _prose(self, text: str) -> list[str]:
        (block, *_) = parse(text, self._env) or [None]
        return [] if block is None else self._renderer.block(block)

    def _drop(self, source: list[str], line: int) -> None:
        self.pending = "".join(source[line:])

    def _items(self, block: Block) -> list[str]:
        """Draw the items of the outermost list but the last."""
        starts = [
            token.map[0]
            for token in block.tokens
            if token.type == "list_item_open" and token.level == 1 and token.map is not None
        ]
        if len(starts) < 2:
            return []
        source = self.pending.splitlines(keepends=True)
        cut = starts[-1] - block.first
        (done,) = parse("".join(source[:cut]), self._env)[:1]
        number = self._number
        if number is None:
            begun = done.tokens[0].attrGet("start")
            number = int(begun) if begun is not None else 1
        lines = [*self._separator(), *self._renderer.block(done, first_number=number)]
        self._number = number + len(starts) - 1
        self._joins = True
        self._drop(source, cut)
        return lines

    def _long_paragraph(self, block: Block | None) -> tuple[list[str], bool]:
        """Draw the first sentences of a paragraph that has become long."""
        text = self.pending.lstrip("\n")
        if len(text) < LONG_PARAGRAPH or (block is None and not _is_prose(text)):
            return [], False
        head, rest = _cut(text)
        if not rest:
            return [], False
        lines = [*self._separator(), *self._prose(head)]
        self.pending, self._joins, self._number = rest, True, None
        return lines, True

    def _more_code(self, fence: _OpenFence) -> tuple[list[str], bool]:
        *whole, rest = self.pending.split("\n")
        if self._ended and rest:
            whole, rest = [*whole, rest], ""
        closed = next((at for at, line in enumerate(whole) if fence.closes(line)), None)
        ready = whole[:closed]
        if closed is None and not self._ended:
            ready = ready[: len(ready) - len(ready) % CODE_STEP]
        lines: list[str] = self._separator() if ready and not fence.drew else []
        fence.drew = fence.drew or bool(ready)
        for start in range(0, len(ready), CODE_STEP):
            step = [fence.unindented(line) for line in ready[start : start + CODE_STEP]]
            lines += self._renderer.code(step, fence.language, fence.before)
            fence.before = [*fence.before, *step][-CODE_CONTEXT:]
        if closed is not None:
            self._fence = None
            self.pending = "\n".join([*whole[closed + 1 :], rest])
            return lines, True
        self.pending = "\n".join([*whole[len(ready) :], rest])
        return lines, False

    def _open_table(self, block: Block) -> list[str]:
        """Draw the rows that set the widths of a table."""
        source = self.pending.splitlines(keepends=True)
        head = source[: TABLE_ROWS + 2]
        (first,) = parse("".join(head), self._env)[:1]
        lines = [*self._separator(), *self._renderer.block(first)]
        self._table = _OpenTable("".join(head))
        self._drop(source, len(head))
        del block
        return lines

    def _more_rows(self, table: _OpenTable) -> tuple[list[str], bool]:
        """Draw further rows in the widths of the first ones."""
        whole = self.pending if self._ended else self.pending[: self.pending.rfind("\n") + 1]
        source = whole.splitlines(keepends=True)
        blocks = parse(table.head + whole, self._env)
        rows = blocks[0].end - (TABLE_ROWS + 2)
        lines: list[str] = []
        if rows > 0:
            drawn = self._renderer.block(blocks[0])
            before = len(self._renderer.block(parse(table.head, self._env)[0]))
            lines = drawn[before:]
            self._drop(self.pending.splitlines(keepends=True), rows)
        if rows < len(source) or self._ended:
            self._table = None
            return lines, bool(self.pending)
        return lines, False


class _OpenFence:
    """A block of code whose end has not come."""

    def __init__(self, markup: str, language: str) -> None:
        self._markup = markup
        self.language = language
        self.indent = 0
        self.before: list[str] = []
        self.drew = False

    def closes(self, line: str) -> bool:
        found = _FENCE.match(line)
        return (
            found is not None
            and found[1][0] == self._markup[0]
            and len(found[1]) >= len(self._markup)
            and not line[found.end() :].strip(" \t")
        )

    def unindented(self, line: str) -> str:
        blanks = len(line) - len(line.lstrip(" "))
        return line[min(blanks, self.indent) :]


class _OpenTable:
    """A table whose widths are set."""

    def __init__(self, head: str) -> None:
        self.head = head


def cut_paragraph(text: str) -> list[str]:
    """Cut a paragraph into the pieces a stream would draw it in."""
    pieces: list[str] = []
    while len(text) >= LONG_PARAGRAPH:
        head, text = _cut(text)
        if not text:
            return [*pieces, head]
        pieces.append(head)
    return [*pieces, text] if text else pieces


def _cut(text: str) -> tuple[str, str]:
    """Cut text behind the last sentence of its first characters that ends outside of a span."""
    for found in reversed(list(_SENTENCE_END.finditer(text, 0, LONG_PARAGRAPH))):
        head = text[: found.end()]
        if not any(head.count(sign) % 2 for sign in "`*_~") and head.count("[") == head.count("]"):
            return head.rstrip(), text[found.end() :]
    return text, ""


def _is_prose(text: str) -> bool:
    """Whether a line that is not whole yet can only be a paragraph."""
    return text[0].isalpha()
