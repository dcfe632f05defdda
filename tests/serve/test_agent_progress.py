"""Which steps of a turn are reported to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.agents.events import (
    ChildFinished,
    ChildStarted,
    ModelRequested,
    Origin,
    TextStreamed,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    Warned,
    WorkflowAdvanced,
)
from fast_agent.messages.message import ToolCall, ToolResult
from fast_agent.serve.agent_call import step_of

if TYPE_CHECKING:
    from fast_agent.agents.events import Event
    from fast_agent.text.json_value import JsonObject


@pytest.mark.parametrize(
    ("kind", "facts", "step"),
    [
        (
            "route",
            {"agent": "bob", "confidence": "high", "reasoning": "he\nknows"},
            "desk: goes to `bob` (high confidence): he knows",
        ),
        (
            "rating",
            {"round": 2, "rating": "GOOD", "feedback": "fine"},
            "desk: round 2 is GOOD: fine",
        ),
        ("task", {"agent": "bob", "description": "dig", "status": "started"}, None),
    ],
)
@pytest.mark.spec("SERVE-5")
def test_steps_of_workflows_are_reported_in_words(
    kind: str, facts: JsonObject, step: str | None
) -> None:
    assert step_of(WorkflowAdvanced(Origin("desk", "turn-1", None), kind, facts)) == step


CALL = ToolCall("c", "dig", {})
DESK = Origin("desk", "turn-1", None)


@pytest.mark.parametrize(
    ("event", "step"),
    [
        (ModelRequested(DESK, "sonnet", 1), "desk: asks sonnet"),
        (ToolStarted(DESK, CALL, "function", None), "desk: calls dig"),
        (ToolFinished(DESK, CALL, ToolResult("c", ())), "desk: dig is done"),
        (ToolFinished(DESK, CALL, ToolResult("c", (), is_error=True)), "desk: dig failed"),
        (ToolProgressed(DESK, "c", 2.0, None, None), "desk: 2"),
        (ToolProgressed(DESK, "c", 2.5, 4.0, "one\ntwo"), "desk: 2.5 of 4 two"),
        (ChildStarted(DESK, "c", "bob", 1, 20), "desk: bob starts"),
        (ChildFinished(DESK, "c", "bob", 1, None), "desk: bob is done"),
        (ChildFinished(DESK, "c", "bob", 1, "no"), "desk: bob failed"),
        (Warned(DESK, "careful"), "desk: careful"),
        (TextStreamed(DESK, "hi"), None),
    ],
)
def test_steps_of_turns_are_reported_in_words(event: Event, step: str | None) -> None:
    assert step_of(event) == step
