"""Sampling: a server asks for a model's answer, and gets it through the runtime."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from fast_agent.cards.request_params import RequestParams
from fast_agent.errors import FastAgentError, ToolError
from fast_agent.mcp.content import from_sdk, to_wire, wire
from fast_agent.messages.content import AudioContent, ImageContent, TextContent
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        CreateMessageResultWithTools,
        ErrorData,
        SamplingMessage,
    )

    from fast_agent.messages.content import Content
    from fast_agent.models.model import ModelResponse

SAMPLING_REFUSED = -1
"""The protocol's error code for a sampling request the user declined."""

_INTERNAL_ERROR = -32603
_INVALID_PARAMS = -32602

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class SamplingRequest:
    """What a server wants of a model. All of it is the server's own text: untrusted.

    Args:
        server_name: The server that asks.
        agent_names: The agents with a call open at that server: one, unless several use it at once.
        system: The system prompt the server wants.
        messages: The conversation, the message to answer last.
        params: Request parameters.
        tools: Tools the model may call; the server runs them.
        tool_choice: `auto`, `required` or `none`.
        model_hints: Names or families of models the server would like, best first.
        model: The model the configuration sets for this server; None leaves it to the runtime.
    """

    server_name: str
    agent_names: tuple[str, ...]
    system: str
    messages: tuple[Message, ...]
    params: RequestParams
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    model_hints: tuple[str, ...] = ()
    model: str | None = None


class Sampler(Protocol):
    """What answers sampling requests: the runtime, with the model of an agent."""

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        """Answer one request.

        Args:
            request: What the server wants.

        Returns:
            The name of the model that answered, and its answer.

        Raises:
            FastAgentError: There is no answer; the server gets the message.
        """
        ...


@runtime_checkable
class SamplingPerson(Protocol):
    """A person who brings a model: the client of a server of agents. Its answers go before ours."""

    def offers_model(self, params: CreateMessageRequestParams) -> bool:
        """Whether the model can answer a request."""
        ...

    async def sample(
        self, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer the request with the model."""
        ...


class SamplingApproval(Protocol):
    """Asks whether a server may have a model's answer."""

    async def approve(self, request: SamplingRequest) -> bool:
        """Return whether the request may be served."""
        ...


async def answer_sampling(
    params: CreateMessageRequestParams,
    *,
    server_name: str,
    model: str | None,
    agent_names: tuple[str, ...],
    sampler: Sampler,
    approval: SamplingApproval | None,
) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
    """Serve one `sampling/createMessage`; what goes wrong is an error for the server."""
    from mcp.types import ErrorData

    try:
        request = replace(read_request(params, server_name, agent_names), model=model)
    except ToolError as problem:
        return ErrorData(code=_INVALID_PARAMS, message=problem.message)
    try:
        if approval is not None and not await approval.approve(request):
            return ErrorData(code=SAMPLING_REFUSED, message="the request was turned down")
        model, response = await sampler.sample(request)
        return write_response(model, response.message, with_tools=bool(request.tools))
    except FastAgentError as problem:
        _log.warning("sampling for server `%s` failed: %s", server_name, problem.message)
        return ErrorData(code=_INTERNAL_ERROR, message=problem.message)


def read_request(
    params: CreateMessageRequestParams, server_name: str, agent_names: tuple[str, ...]
) -> SamplingRequest:
    """Turn the parameters of `sampling/createMessage` into the project's values.

    Raises:
        ToolError: A content block is not what the protocol allows.
    """
    preferences = params.model_preferences
    hints = preferences.hints if preferences is not None and preferences.hints else []
    tools = tuple(
        ToolSpec(
            name=tool.name,
            description=tool.description or "",
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            title=tool.title,
        )
        for tool in params.tools or ()
    )
    choice = params.tool_choice.mode if params.tool_choice is not None else None
    return SamplingRequest(
        server_name=server_name,
        agent_names=agent_names,
        system=params.system_prompt or "",
        messages=tuple(_message(message) for message in params.messages),
        params=RequestParams(
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            stop_sequences=tuple(params.stop_sequences) if params.stop_sequences else None,
        ),
        tools=() if choice == "none" else tools,
        tool_choice=choice or "auto",
        model_hints=tuple(hint.name for hint in hints if hint.name),
    )


def write_response(
    model: str, message: Message, *, with_tools: bool
) -> CreateMessageResult | CreateMessageResultWithTools:
    """Turn a model's answer into the result of `sampling/createMessage`.

    Raises:
        ToolError: The answer holds nothing the protocol can carry.
    """
    from mcp.types import CreateMessageResult, CreateMessageResultWithTools

    blocks = [
        to_wire(block)
        for block in message.content
        if isinstance(block, TextContent | ImageContent | AudioContent)
    ]
    fields: dict[str, Any] = {
        "role": "assistant",
        "model": model,
        "stopReason": message.stop_reason or "endTurn",
    }
    if with_tools:
        calls = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in message.tool_calls
        ]
        return CreateMessageResultWithTools.model_validate({**fields, "content": [*blocks, *calls]})
    # Without tools the protocol carries exactly one block.
    if len(blocks) != 1:
        blocks = [{"type": "text", "text": message.text}]
    return CreateMessageResult.model_validate({**fields, "content": blocks[0]})


def _message(message: SamplingMessage) -> Message:
    content: list[Content] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for block in message.content_as_list:
        fields = wire(block)
        match fields.get("type"):
            case "tool_use":
                arguments = cast("Mapping[str, Any]", fields.get("input") or {})
                calls.append(ToolCall(fields["id"], fields["name"], arguments))
            case "tool_result":
                results.append(
                    _result(fields, cast("Sequence[Any]", getattr(block, "content", ())))
                )
            case _:
                content.append(from_sdk(block))
    return Message(
        message.role, tuple(content), tool_calls=tuple(calls), tool_results=tuple(results)
    )


def _result(fields: Mapping[str, Any], blocks: Sequence[Any]) -> ToolResult:
    return ToolResult(
        id=str(fields["toolUseId"]),
        content=tuple(from_sdk(block) for block in blocks),
        is_error=bool(fields.get("isError")),
        structured=fields.get("structuredContent"),
    )
