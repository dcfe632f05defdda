from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import types

from fast_agent.mcp.client_side import (
    answer_elicitation,
    answer_problem,
    form_problem,
)

if TYPE_CHECKING:
    from fast_agent.tools.human import HumanAnswer, HumanRequest


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"mail": {"type": "string", "format": "email"}, "age": {"type": "integer"}},
    "required": ["mail"],
}


def test_answers_are_held_against_the_form() -> None:
    assert answer_problem({"mail": "a@b.c", "age": 3}, FORM) is None
    assert "`age`" in (answer_problem({"mail": "a@b.c", "age": "three"}, FORM) or "")
    assert "`mail`" in (answer_problem({"mail": "nobody"}, FORM) or "")
    assert "mail" in (answer_problem({}, FORM) or "")
    assert "other" in (answer_problem({"mail": "a@b.c", "other": 1}, FORM) or "")
    assert form_problem(FORM) is None
    assert form_problem({"type": "nonsense"}) is not None


@pytest.mark.anyio
async def test_a_form_that_is_none_is_declined_without_asking() -> None:
    class Nobody:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            raise AssertionError(request)

    params = types.ElicitRequestFormParams(message="?", requested_schema={"type": "nonsense"})
    answer = await answer_elicitation(params, server_name="s", agent_name="a", human=Nobody())
    assert answer.action == "decline"
