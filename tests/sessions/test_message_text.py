"""How messages are written to a session: as text where that says all, as JSON else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fast_agent.messages.message import ImageContent, Message, TextContent, ToolResult
from fast_agent.sessions.message_text import read, read_result, store, store_result

HI = TextContent("hi")
MARKED = TextContent("hi", extra={"annotations": {"audience": ["user"]}})
PICTURE = ImageContent("aGk=", "image/png")


@pytest.mark.parametrize(
    ("message", "form"),
    [
        (Message.user("hi"), "user"),
        (Message("assistant", (HI,), stop_reason="end_turn"), "assistant end_turn"),
        (Message("user", (HI, HI)), None),
        (Message("user", (MARKED,)), None),
        (Message("user", (PICTURE,)), None),
        (Message("user", ()), None),
        (Message("user", (HI,), is_template=True), None),
        (Message("user", (TextContent("\ud800"),)), None),
    ],
)
def test_a_message_is_read_as_it_was_written(message: Message, form: str | None) -> None:
    stored = store(message)
    assert stored[0] == form
    assert read(*stored) == message


@pytest.mark.parametrize(
    ("result", "form"),
    [
        (ToolResult("c1", (HI,)), "result c1"),
        (ToolResult("c1", (HI,), is_error=True), "error c1"),
        (ToolResult("c1", (MARKED,)), None),
        (ToolResult("c1", (HI, HI)), None),
        (replace(ToolResult("c1", (HI,)), structured={"a": 1}), None),
        (ToolResult("\ud800", (HI,)), None),
    ],
)
def test_a_result_is_read_as_it_was_written(result: ToolResult, form: str | None) -> None:
    stored = store_result(result)
    assert stored[0] == form
    assert read_result(*stored) == result
