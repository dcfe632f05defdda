"""The human input tool: `request_human_input` asks the user and returns the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING

from fast_agent.errors import ToolError
from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.tools.human import HumanRequest, ask_human, form_fields, schema_problem
from fast_agent.tools.tool import RuntimeTool

if TYPE_CHECKING:
    from fast_agent.messages.message import ToolCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human, HumanAnswer
    from fast_agent.tools.tool import ToolContext

NAME = "request_human_input"
ATTEMPTS = 3
"""How often a user is asked for an answer that fits the form."""

_SPEC = ToolSpec(
    NAME,
    "Ask the user a question and wait for the answer. Use it for what only they can"
    " know or decide.",
    {
        "type": "object",
        "properties": {
            "message": {"type": "string", "description": "The question."},
            "schema": {
                "type": "object",
                "description": (
                    "JSON Schema of the answer: an object whose properties are strings, numbers,"
                    " booleans or enums. Leave it out for an answer in words."
                ),
            },
        },
        "required": ["message"],
        "additionalProperties": False,
    },
)


class HumanInputTool(RuntimeTool):
    """Asks a user.

    Args:
        human: Asks the user if the conversation has none; None if no user
            is connected.
    """

    __slots__ = ("_human",)

    def __init__(self, human: Human | None) -> None:
        self._human = human

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return _SPEC

    @property
    def repeatable(self) -> bool:
        """Always True: a question may be asked again."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Ask the question of a call.

        Args:
            call: The call, with `message` and perhaps `schema`.
            context: Names the agent that asks.

        Returns:
            The answer: words as text, a form as JSON and structured content. An error result when
            the question is invalid or no user is connected.
        """
        try:
            request = _request(call, context.agent_name)
        except ToolError as problem:
            return ToolResult.error(call.id, problem.message)
        human = context.human or self._human
        if human is None:
            return ToolResult.error(call.id, "no user is connected; continue without an answer")
        asked = request
        for _ in range(ATTEMPTS):
            answer = await ask_human(human, asked, call.id)
            problem = _problem(answer, request.schema)
            if problem is None:
                return _result(call.id, answer, request.schema)
            asked = replace(request, message=f"{request.message}\n\nthis does not fit: {problem}")
        return ToolResult.error(call.id, f"the user gave no answer that matches {request.schema}")


def _request(call: ToolCall, agent_name: str) -> HumanRequest:
    further = [name for name in call.arguments if name not in ("message", "schema")]
    if further:
        raise ToolError(f"`{further[0]}` is not an argument; there are message and schema")
    message, schema = call.arguments.get("message"), call.arguments.get("schema")
    if not isinstance(message, str) or not message.strip():
        raise ToolError("`message` must be the question, as a string")
    if schema is not None:
        if not isinstance(schema, Mapping):
            raise ToolError("`schema` must be a JSON Schema, as an object")
        form_fields(schema)
    return HumanRequest(message=message, agent_name=agent_name, schema=schema)


def _problem(answer: HumanAnswer, schema: JsonObject | None) -> str | None:
    if answer.action != "accept" or schema is None:
        return None
    return schema_problem(dict(answer.content or {}), schema)


def _result(call_id: str, answer: HumanAnswer, schema: JsonObject | None) -> ToolResult:
    if answer.action == "decline":
        return ToolResult(call_id, (TextContent("the user declined to answer"),))
    if answer.action == "cancel":
        return ToolResult(call_id, (TextContent("the user dismissed the question"),))
    content = dict(answer.content or {})
    if schema is None:
        return ToolResult(call_id, (TextContent(str(content.get("text", ""))),))
    text = dumps(content, ensure_ascii=False)
    return ToolResult(call_id, (TextContent(text),), structured=content)
