"""Agents as clients see them: their tools, and what a call may say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, RunError
from fast_agent.serve.agent_tools import ExposedAgents, answer_of_problem

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity

FORM = {"properties": {"city": {"type": "string"}}, "required": ["city"]}


def exposed(**redacting: object) -> ExposedAgents:
    configs = (
        AgentConfig(name="ann", description="Knows hunter2-hunter2."),
        AgentConfig(name="bob", tool_input_schema=FORM),
        AgentConfig(name="kid", tool_only=True),
        AgentConfig(name="reload"),
    )
    cards = LoadSet.of([Card(one, f"{one.name}.md") for one in configs])
    return ExposedAgents(cards, ("reload",), **redacting)  # pyright: ignore[reportArgumentType]


def test_agents_of_users_are_offered_but_for_taken_names() -> None:
    agents = exposed()
    assert agents.names() == ["ann", "bob"]
    assert ("ann" in agents, "kid" in agents, "reload" in agents) == (True, False, False)
    assert agents.of_prompt("ann_history") == "ann"
    assert [agents.of_prompt(one) for one in ("ann", "kid_history", "_history")] == [None] * 3


def test_secrets_are_redacted_where_the_server_knows_them() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2-hunter2", "<<secret>>")

    assert json.loads(exposed()["ann"].tool)["description"] == "Knows hunter2-hunter2."
    assert json.loads(exposed(redact=redact)["ann"].tool)["description"] == "Knows <<secret>>."


def test_a_problem_is_reported_once_with_its_place_and_what_to_do() -> None:
    def problem(message: str, path: str, severity: Severity = "error") -> Diagnostic:
        return Diagnostic("FA101", message, path, severity=severity)

    found = (
        problem("`agent` has no field `x`", "/home/me/cards/ann.md"),
        problem("no agent is named `eve`", ""),
        problem("a remark", "ann.md", "info"),
        problem("2 problems in `/home/me/cards`", "ann.md"),
    )
    error = CardError("2 problems in `/home/me/cards`", hint="fix them", diagnostics=found)
    (said,) = answer_of_problem(error).content
    assert said["text"] == (
        "2 problems in `…/cards`\nhint: fix them\n…/ann.md: `agent` has no field `x`\n"
        "no agent is named `eve`"
    )


@pytest.mark.parametrize(
    ("agent", "arguments", "message"),
    [
        ("ann", {"message": "hi"}, "hi"),
        ("ann", {"message": ""}, ""),
        ("bob", {"city": "Köln"}, '{"city": "Köln"}'),
    ],
)
def test_arguments_become_a_message(agent: str, arguments: dict[str, str], message: str) -> None:
    assert exposed()[agent].message(agent, arguments) == message


@pytest.mark.parametrize(
    ("agent", "arguments", "problem"),
    [
        ("ann", {}, "the one argument of `ann` is `message`, a string"),
        ("ann", {"message": 3}, "the one argument of `ann` is `message`, a string"),
        ("ann", {"message": "a", "more": "b"}, "the one argument of `ann` is `message`, a string"),
        ("bob", {"message": "hi"}, "the arguments of `bob` do not match its schema"),
    ],
)
def test_other_arguments_are_refused(
    agent: str, arguments: dict[str, object], problem: str
) -> None:
    with pytest.raises(RunError, match=problem):
        exposed()[agent].message(agent, arguments)  # pyright: ignore[reportArgumentType]
