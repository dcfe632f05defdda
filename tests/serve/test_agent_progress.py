"""Which steps of a turn are reported to a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.agents.events import Origin, WorkflowAdvanced
from fast_agent.serve.agent_call import step_of

if TYPE_CHECKING:
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
