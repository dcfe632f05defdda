from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mcp import types

from fast_agent.errors import ModelError
from fast_agent.mcp.client_side import (
    SamplingRequest,
    answer_sampling,
    read_request,
    write_response,
)
from fast_agent.messages.message import ImageContent, Message, TextContent, ToolCall, ToolResult

if TYPE_CHECKING:
    from fast_agent.models.model import ModelResponse

PARAMS = types.CreateMessageRequestParams.model_validate(
    {
        "systemPrompt": "Be kind.",
        "maxTokens": 9,
        "temperature": 0.25,
        "stopSequences": ["END"],
        "modelPreferences": {"hints": [{"name": "sonnet"}, {}]},
        "tools": [{"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}],
        "toolChoice": {"mode": "required"},
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "1+1"}},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "toolUseId": "t1",
                        "content": [{"type": "text", "text": "2"}],
                        "structuredContent": {"n": 2},
                        "isError": True,
                    }
                ],
            },
        ],
    }
)


def test_a_request_becomes_the_projects_values() -> None:
    request = read_request(PARAMS, "s", ("a", "b"))
    assert (request.system, request.tool_choice) == ("Be kind.", "required")
    assert (request.server_name, request.agent_names) == ("s", ("a", "b"))
    assert request.model_hints == ("sonnet",)
    assert (request.params.max_tokens, request.params.temperature) == (9, 0.25)
    assert request.params.stop_sequences == ("END",)
    assert [(tool.name, tool.description) for tool in request.tools] == [("add", "Add.")]
    assert request.messages == (
        Message("user", (TextContent("1+1"),)),
        Message("assistant", tool_calls=(ToolCall("t1", "add", {"a": 1}),)),
        Message(
            "user",
            tool_results=(
                ToolResult("t1", (TextContent("2"),), is_error=True, structured={"n": 2}),
            ),
        ),
    )


def test_no_tools_may_be_chosen() -> None:
    params = PARAMS.model_copy(update={"tool_choice": types.ToolChoice(mode="none")})
    assert read_request(params, "s", ()).tools == ()


def test_an_answer_with_tool_calls_carries_them() -> None:
    message = Message(
        "assistant",
        (TextContent("let me see"),),
        tool_calls=(ToolCall("t1", "add", {"a": 1}),),
        stop_reason="toolUse",
    )
    result = write_response("m", message, with_tools=True)
    assert isinstance(result, types.CreateMessageResultWithTools)
    assert result.stop_reason == "toolUse"
    assert [block.type for block in result.content_as_list] == ["text", "tool_use"]


def test_without_tools_an_answer_is_one_block() -> None:
    image = ImageContent("aW1n", "image/png")
    one = write_response("m", Message("assistant", (image,)), with_tools=False)
    assert isinstance(one, types.CreateMessageResult)
    assert one.content.type == "image"
    two = write_response(
        "m", Message("assistant", (TextContent("a"), TextContent("b"))), with_tools=False
    )
    assert isinstance(two.content, types.TextContent)
    assert two.content.text == "a\nb"


@pytest.mark.anyio
async def test_a_model_that_fails_is_an_error_for_the_server() -> None:
    class Down:
        async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
            assert request.model == "haiku"
            raise ModelError("the model is not reachable")

    answer = await answer_sampling(
        PARAMS, server_name="s", model="haiku", agent_names=(), sampler=Down(), approval=None
    )
    assert isinstance(answer, types.ErrorData)
    assert answer.message == "the model is not reachable"
