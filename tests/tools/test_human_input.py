from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.messages.message import ToolCall, ToolResult
from fast_agent.tools.human import HumanAnswer, HumanRequest
from fast_agent.tools.human_input import HumanInputTool

if TYPE_CHECKING:
    from fast_agent.tools.human import Human
    from fast_agent.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


class Person:
    """Gives its answers one after another."""

    def __init__(self, *answers: HumanAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[HumanRequest] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request)
        return self.answers.pop(0)


def accept(**content: Any) -> HumanAnswer:
    return HumanAnswer(action="accept", content=content)


async def ask(human: Human | None, context: ToolContext, **arguments: Any) -> ToolResult:
    tool = HumanInputTool(human)
    return await tool.call(ToolCall("c", tool.spec.name, arguments), context)


def test_it_is_a_tool_of_the_runtime() -> None:
    tool = HumanInputTool(None)
    assert (tool.spec.name, tool.source, tool.server_name, tool.repeatable) == (
        "request_human_input",
        "runtime",
        None,
        True,
    )


@pytest.mark.spec("TOOL-7")
async def test_an_answer_in_words(context: ToolContext) -> None:
    person = Person(accept(text="blue"))
    result = await ask(person, context, message="Which colour?")
    assert (result.text, result.is_error, result.structured) == ("blue", False, None)
    assert person.asked == [HumanRequest(message="Which colour?", agent_name="writer")]


async def test_a_form_is_answered_as_json(context: ToolContext) -> None:
    person = Person(accept(size=3))
    result = await ask(person, context, message="How big?", schema=FORM)
    assert (result.text, result.structured) == ('{"size": 3}', {"size": 3})
    assert person.asked[0].schema == FORM


async def test_an_answer_that_does_not_fit_is_asked_for_again(context: ToolContext) -> None:
    person = Person(accept(size="big"), accept(size=3))
    result = await ask(person, context, message="How big?", schema=FORM)
    assert result.structured == {"size": 3}
    assert "'big' is not of type 'integer'" in person.asked[1].message
    stubborn = Person(*[accept(size="big")] * 3)
    assert (await ask(stubborn, context, message="How big?", schema=FORM)).is_error


@pytest.mark.parametrize(("action", "words"), [("decline", "declined"), ("cancel", "dismissed")])
async def test_no_answer_is_reported(action: Any, words: str, context: ToolContext) -> None:
    result = await ask(Person(HumanAnswer(action=action)), context, message="Well?", schema=FORM)
    assert words in result.text
    assert not result.is_error


@pytest.mark.spec("TOOL-7")
async def test_without_a_person_it_is_an_error_that_says_so(context: ToolContext) -> None:
    result = await ask(None, context, message="Anybody?")
    assert result.is_error
    assert "no user is connected" in result.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "`message` must be the question"),
        ({"message": " "}, "`message` must be the question"),
        ({"message": "m", "schema": "s"}, "`schema` must be a JSON Schema"),
        ({"message": "m", "schema": {"type": "string"}}, "`schema` must be of type `object`"),
        ({"message": "m", "question": "q"}, "`question` is not an argument"),
    ],
)
async def test_wrong_arguments(arguments: dict[str, Any], words: str, context: ToolContext) -> None:
    result = await ask(Person(), context, **arguments)
    assert result.is_error
    assert words in result.text
