"""What a stream draws in the end is what drawing the whole text at once gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fast_agent.tui.drawing.markdown import CODE_STEP, TABLE_ROWS, MarkdownRenderer, parser
from fast_agent.tui.drawing.rows import plain
from fast_agent.tui.drawing.stream import LONG_PARAGRAPH, MarkdownStream
from fast_agent.tui.drawing.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Iterable

THEME = Theme()
ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

BLOCKS = (
    "# Heading\n",
    "## Another *one* ##\n",
    "Set\nin two lines\n===\n",
    "Under\n---\n",
    "A paragraph of a few words, `code` and **strong *both***, with a [link](http://a.example).\n",
    "Two lines\nof prose  \nwith a hard break\\\nor two.\n",
    "- one\n- two\n  - inner\n  - more\n- three\n",
    "* loose\n\n* items\n\n  with a paragraph\n",
    "1. first\n1. second\n1. third\n",
    "7) seven\n8) eight\n",
    "- a\n - b\n  - c\n",
    "> quoted\n> lines\n\n> others\n",
    "> - a list\n>   in it\nlazy\n",
    "```python\ndef f(x):\n    return 'a'\n\n\nprint(f(1))\n```\n",
    "~~~\nplain\n```\n~~~\n",
    "```\n" + "".join(f"line {number}\n" for number in range(3 * CODE_STEP)) + "```\n",
    "   ```js\n   let a\n     indented\n   ```\n",
    "```unclosed\n```` no end\n",
    "    indented code\n\n    more\n",
    "| a | b |\n|---|---|\n| 1 | two words |\n| `x` | |\n",
    "| n | text |\n|---|---|\n"
    + "".join(f"| {number} | row {'x' * (number % 40)} |\n" for number in range(TABLE_ROWS + 9)),
    "***\n",
    "<div>\nhtml\n</div>\n",
    "A [ref] of before.\n",
    "- [ ] a task\n- ```\n  code in an item\n  ```\n- end\n",
    "\u6f22\u5b57\u304b\u306a and \U0001f469 wide\n",
)


def whole(text: str, columns: int) -> list[str]:
    return MarkdownRenderer(columns, THEME).render(text)


def streamed(pieces: Iterable[str], columns: int) -> list[str]:
    stream = MarkdownStream(columns, THEME)
    lines: list[str] = []
    for piece in pieces:
        lines += stream.feed(piece)
    lines += stream.finish()
    assert stream.pending == ""
    return lines


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    place = at = 0
    while place < len(text):
        size = sizes[at % len(sizes)]
        pieces.append(text[place : place + size])
        place, at = place + size, at + 1
    return pieces


@pytest.mark.spec("T-M1.1", "T-M2.1")
@given(
    st.lists(st.tuples(st.sampled_from(BLOCKS), st.sampled_from(("", "\n", "\n\n"))), max_size=6),
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.integers(20, 200),
)
@example([(BLOCKS[15], ""), (BLOCKS[0], "")], [1], 20)
def test_a_stream_ends_as_the_whole_text(
    parts: list[tuple[str, str]], sizes: list[int], columns: int
) -> None:
    # A definition that comes behind its use is not known in time; this one comes first.
    text = "[ref]: http://b.example\n\n" + "".join(block + behind for block, behind in parts)
    assert streamed(cut(text, sizes), columns) == whole(text, columns)


@pytest.mark.spec("T-M2.1")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_streams_as_it_is_drawn(page: Path) -> None:
    text = page.read_text()
    pieces = cut(text, [3, 7, 1, 19])
    for columns in (40, 100):
        assert streamed(pieces, columns) == streamed([text], columns)


@given(st.text(alphabet="ab *_`#>-1.\n|[]()~<&\\\t", max_size=200), st.integers(1, 30))
def test_any_text_streams_as_it_is_drawn(text: str, size: int) -> None:
    assert streamed(cut(text, [size]), 40) == whole(text, 40)


def test_blocks_are_committed_before_the_text_ends() -> None:
    stream = MarkdownStream(80, THEME)
    assert stream.feed("# Title\n") != []
    assert stream.feed("A line\n") == []
    assert [plain(row) for row in stream.feed("\nnext\n")] == ["", "A line"]
    stream.feed("\n```python\n")
    code = stream.feed("x = 1\n" * (CODE_STEP + 1))
    assert [plain(row) for row in code] == ["", *["x = 1"] * CODE_STEP]
    assert stream.pending == "x = 1\n"
    stream.feed("```\n")
    assert [plain(row) for row in stream.feed("- a\n- b\n- c\n")][-2:] == ["\u2022 a", "\u2022 b"]
    assert stream.pending == "- c\n"


def test_a_long_paragraph_is_cut_at_its_sentences() -> None:
    sentence = "This is a sentence of some length that ends. "
    stream = MarkdownStream(80, THEME)
    rows: list[str] = []
    text = sentence * 200
    for piece in cut(text, [10]):
        rows += stream.feed(piece)
        assert len(stream.pending) <= LONG_PARAGRAPH + 10
    rows += stream.finish()
    assert " ".join(" ".join(plain(row) for row in rows).split()) == text.strip()


def test_code_keeps_every_character_and_no_blank_is_added() -> None:
    code = "\tmake  \n  x" + "y" * 300 + "\n"
    rows = whole(f"```\n{code}```\n", 40)
    assert rows == code.split("\n")[:-1]


def test_a_wide_table_becomes_records() -> None:
    header = "|" + "|".join(f" column{number} " for number in range(9)) + "|\n"
    text = (
        header + "|" + "---|" * 9 + "\n" + "|" + "|".join("a long value" for _ in range(9)) + "|\n"
    )
    rows = [plain(row) for row in whole(text, 40)]
    assert rows[0] == "column0: a long value"
    narrow = [plain(row) for row in whole("| a | b |\n|-|-|\n| some longer words | x |\n", 12)]
    assert narrow[2:] == ["some       x", "longer", "words"]


@pytest.mark.spec("T-M6.1")
def test_nothing_of_a_text_is_obeyed() -> None:
    text = "a\x1b[2J `\x1b]52;c;x\x07` [l\u202e](\x1bx) | \u200b\n\n```\n\x1b[31m\n```\n\n<b\x1b>\n"
    joined = "\n".join(plain(row) for row in whole(text, 80))
    assert "\x1b" not in joined
    assert "<U+001B>" in joined
    assert "<U+202E>" in joined


def test_the_parser_is_complete_before_threads_share_it() -> None:
    parser.cache_clear()
    made = parser()
    for ruler in (made.core.ruler, made.block.ruler, made.inline.ruler, made.inline.ruler2):
        assert ruler.__cache__ is not None, ruler
