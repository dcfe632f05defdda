"""What answers look like: prose, tables, links, colours of agents, and how often they are drawn."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.tui.markdown import MarkdownRenderer
from fast_agent.tui.rows import plain, width
from fast_agent.tui.scroll import FRAME_SECONDS, SLOW_FRAME_SECONDS, Scroll
from fast_agent.tui.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Sequence


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


@pytest.mark.spec("T-L4.1")
def test_a_link_shows_its_text_and_its_address() -> None:
    assert drawn("see [here](https://example.org/x) now", 80) == [
        "see here (https://example.org/x) now"
    ]
    assert drawn("<https://example.org/x>", 80) == ["https://example.org/x"]


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
