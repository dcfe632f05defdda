"""What answers look like: prose, tables, links, colours of agents, and how often they are drawn."""

from __future__ import annotations

import asyncio
import re
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.tui.drawing.markdown import MarkdownRenderer
from fast_agent.tui.drawing.rows import clip, plain, width
from fast_agent.tui.drawing.scroll import FRAME_SECONDS, SLOW_FRAME_SECONDS, Scroll
from fast_agent.tui.drawing.theme import Theme, link_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def drawn(text: str, columns: int) -> list[str]:
    return [plain(row) for row in MarkdownRenderer(columns, Theme()).render(text)]


@pytest.mark.spec("T-L2.2")
def test_agents_keep_one_of_eight_colours() -> None:
    theme, names = Theme(), [f"agent{number}" for number in range(16)]
    styles = [theme.agent(name, names)("x") for name in names]
    assert len(set(styles)) == 8
    assert styles[:8] == styles[8:]


@pytest.mark.spec("T-L3.2")
@given(st.lists(st.text("abcdefghij", min_size=1, max_size=12), min_size=1), st.integers(20, 120))
def test_prose_is_wrapped_at_words(words: list[str], columns: int) -> None:
    rows = drawn(" ".join(words), columns)
    assert [word for row in rows for word in row.split()] == words
    assert all(width(row) <= columns and row == row.rstrip() for row in rows)


@pytest.mark.spec("T-L3.4")
def test_tables_fit_the_width_or_become_records() -> None:
    long = " ".join(["word"] * 20)
    table = f"| name | note |\n|---|---|\n| a | {long} |\n"
    rows = drawn(table, 40)
    assert all(width(row) <= 40 for row in rows)
    assert " ".join(rows).count("word") == 20
    assert len(rows) > 3
    many = [f"h{number}" for number in range(9)]
    head, line = " | ".join(many), "|".join(["---"] * 9)
    cells = " | ".join(f"value-{number}" for number in range(9))
    records = drawn(f"| {head} |\n|{line}|\n| {cells} |\n", 40)
    for number in range(9):
        assert f"h{number}: value-{number}" in records


@pytest.mark.spec("T-A1.4")
def test_tables_are_sentences_where_they_are_read_aloud() -> None:
    table = "| name | n | note |\n|---|--:|---|\n| a | 5 | **x** |\n| b | | y |\n\n---\n"
    theme = Theme(styled=False, ascii_only=True, is_spoken=True)
    assert MarkdownRenderer(80, theme).render(table) == [
        "name: a; n: 5; note: x.",
        "name: b; note: y.",
    ]


def test_columns_keep_their_sides() -> None:
    table = "| n | mid | what |\n|---:|:-:|---|\n| 5 | x | a |\n| 1,250 | yyyyy | b |\n"
    assert drawn(table, 40)[2:] == ["    5    x    a", "1,250  yyyyy  b"]


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        ("1. a\n   - b\n   - c\n2. d", ["1. a", "   • b", "   • c", "2. d"]),
        ("- a\n\n  b", ["• a", "", "  b"]),
        ("- a\n  ```\n  code\n  ```\n- b", ["• a", "  code", "• b"]),
        ("a\n\n- b", ["a", "", "• b"]),
    ],
)
def test_a_tight_list_has_no_blank_rows(source: str, rows: list[str]) -> None:
    assert drawn(source, 40) == rows


@pytest.mark.spec("T-L4.1")
def test_a_link_shows_its_text_and_its_address() -> None:
    assert drawn("see [here](https://example.org/x) now", 80) == [
        "see here (https://example.org/x) now"
    ]
    assert drawn("<https://example.org/x>", 80) == ["https://example.org/x"]


@pytest.mark.spec("T-L4.2")
@pytest.mark.parametrize(
    ("source", "shown", "opened"),
    [
        ("[here](https://example.org/x)", "here", "https://example.org/x"),
        ("[see Example.org](https://example.org/x)", "see Example.org", "https://example.org/x"),
        (
            "[bank.com](https://evil.example/x)",
            "bank.com (https://evil.example/x)",
            "https://evil.example/x",
        ),
        ("<ann@example.org>", "ann@example.org", "mailto:ann@example.org"),
        ("[x](https://bank.com@evil.example)", "x (https://bank.com@evil.example)", ""),
        ("[x](javascript:alert)", "x (javascript:alert)", ""),
        ("[x](https://bаnk.com)", "x (https://bаnk.com)", ""),  # noqa: RUF001 (a Cyrillic a)
        ("[x](<https://a.example/ y>)", "x (https://a.example/ y)", ""),
        ("[x](https://[)", "x (https://[)", ""),
    ],
)
def test_a_link_is_given_to_terminals_that_open_links(source: str, shown: str, opened: str) -> None:
    (row,) = MarkdownRenderer(100, Theme(links=True)).render(source)
    assert plain(row) == shown
    assert re.findall(r"\x1b\]8;;(.*?)\x1b\\", row) == ([opened, ""] if opened else [])


@pytest.mark.spec("T-L4.2")
def test_a_link_ends_with_each_row_and_starts_again_on_the_next() -> None:
    source = "> - **[one two\\\nthree four five](https://example.org)** and more"
    rows = MarkdownRenderer(16, Theme(links=True)).render(source)
    linked = re.compile(r"\x1b\]8;;https://example.org\x1b\\(.*?)\x1b\]8;;\x1b\\")
    found = [plain(text) for row in rows for text in linked.findall(row)]
    assert found == ["one two", "three four", "five"]
    assert [plain(text) for text in linked.findall(clip(rows[1], 9))] == ["thre…"]


@pytest.mark.spec("T-L4.2")
@pytest.mark.parametrize(
    ("environ", "source"),
    [
        ({}, None),
        ({"TERM_PROGRAM": "Apple_Terminal"}, None),
        ({"TERM_PROGRAM": "WezTerm"}, "TERM_PROGRAM"),
        ({"TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/x"}, None),
        ({"TERM": "xterm-kitty"}, "TERM"),
        ({"VTE_VERSION": "4999"}, None),
        ({"VTE_VERSION": "7600"}, "VTE_VERSION"),
        ({"KONSOLE_VERSION": "new"}, None),
        ({"WT_SESSION": "1"}, "WT_SESSION"),
    ],
)
def test_terminals_known_to_open_links(environ: Mapping[str, str], source: str | None) -> None:
    assert link_source(environ) == source


@pytest.mark.spec("T-M4.1", "T-M4.2")
@pytest.mark.parametrize(("slow", "least"), [(False, FRAME_SECONDS), (True, SLOW_FRAME_SECONDS)])
def test_frames_are_apart_and_none_is_drawn_for_nothing(slow: bool, least: float) -> None:
    frames: list[float] = []

    def commit(lines: Sequence[str]) -> None:
        del lines
        frames.append(time.monotonic())

    async def main() -> None:
        scroll = Scroll(Theme(), lambda: 80, commit, lambda: slow)
        drawing = asyncio.ensure_future(scroll.run())
        while len(frames) < 4:
            scroll.add_text("a word ")
            await asyncio.sleep(0.001)
        scroll.end_text()
        await scroll.drained()
        count = len(frames)
        await asyncio.sleep(3 * least)
        assert len(frames) == count
        drawing.cancel()

    asyncio.run(main())
    assert all(later - former >= least * 0.99 for former, later in pairwise(frames))
