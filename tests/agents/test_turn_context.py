"""Where a turn stands, and what it returns."""

from __future__ import annotations

import pytest

from fast_agent.agents.budget import Meter
from fast_agent.agents.turn_context import OpenCallMeters, TurnResult
from fast_agent.messages.message import Content, ImageContent, Message, TextContent
from fast_agent.models.model import Usage
from fast_agent.steps.steps import NULL_STEPS

IMAGE = ImageContent("eA==", "image/png")


def test_a_server_is_charged_to_the_newest_open_call_of_its_agent() -> None:
    calls = OpenCallMeters()
    first, second, other = ((Meter(name),) for name in ("ann", "ann", "bob"))
    nobody = (), NULL_STEPS.top
    assert calls.newest("ann") == nobody
    with calls.entered("ann", first):
        with calls.entered("bob", other), calls.entered("ann", second):
            assert calls.newest("ann")[0] is second
            assert calls.newest("bob")[0] is other
        assert calls.newest("ann")[0] is first
        assert calls.newest("bob") == nobody
    assert calls.newest("ann") == nobody


@pytest.mark.parametrize(
    ("stop_reason", "content", "shortcoming"),
    [
        ("endTurn", (TextContent("hi"),), None),
        ("stopSequence", (TextContent("hi"),), None),
        ("endTurn", (IMAGE,), None),
        ("endTurn", (TextContent(" "), IMAGE), None),
        ("endTurn", (), "the answer is empty"),
        ("endTurn", (TextContent(" \n"),), "the answer is empty"),
        ("maxTokens", (TextContent("hi"),), "the answer ended early: maxTokens"),
        ("refusal", (), "the answer ended early: refusal"),
    ],
)
def test_the_shortcoming_of_an_answer(
    stop_reason: str, content: tuple[Content, ...], shortcoming: str | None
) -> None:
    message = Message("assistant", content)
    result = TurnResult("t", message, stop_reason, Usage(), Usage(), (message,))
    assert result.shortcoming == shortcoming
