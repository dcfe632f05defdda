from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fast_agent import Media, Prompt
from fast_agent.errors import HistoryError
from fast_agent.messages.message import EmbeddedResource, ImageContent, TextContent

if TYPE_CHECKING:
    from pathlib import Path


def test_parts_become_blocks_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(b"\x89PNG")
    (tmp_path / "notes.md").write_text("# Notes\n")
    link = TextContent("a block")
    message = Prompt.user(
        "look", tmp_path / "chart.png", tmp_path / "notes.md", Media(b"a,b", "text/csv"), link
    )
    assert message.role == "user"
    assert message.content == (
        TextContent("look"),
        ImageContent("iVBORw==", "image/png"),
        EmbeddedResource("resource://attached/notes.md", "text/markdown", "# Notes\n"),
        TextContent("a,b"),
        link,
    )


def test_an_answer_ends_its_turn() -> None:
    answer = Prompt.assistant("four")
    assert (answer.role, answer.text, answer.stop_reason) == ("assistant", "four", "endTurn")


def test_what_is_no_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one part"):
        Prompt.user()
    with pytest.raises(ValueError, match="value of type `int`"):
        Prompt.user("four is", cast("str", 4))
    with pytest.raises(HistoryError, match="gone"):
        Prompt.user(tmp_path / "gone.txt")
