"""Messages and tools as a local model reads them.

Where the chat template of the weights knows tools, they go through it. Where it does not, tools are
described in the system prompt, and calls and results are written out as text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fast_agent.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    OpaqueContent,
    ResourceLink,
    TextContent,
)
from fast_agent.models.plain_json import plain_json, plain_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.messages.content import Content
    from fast_agent.messages.message import Message, ToolCall, ToolResult
    from fast_agent.models.local_engine import TemplateAbilities
    from fast_agent.models.model import ToolSpec

_HOW_TO_CALL = """\
You can call these tools:
{tools}
To call one, answer with nothing but
<tool_call>{{"name": "the tool's name", "arguments": {{its arguments}}}}</tool_call>
Call a tool only when it is needed; otherwise answer in plain words."""


def chat_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Write tools as the OpenAI chat API has them."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": plain_object(tool.input_schema),
    }


def chat_messages(
    system: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    able: TemplateAbilities,
) -> list[dict[str, Any]]:
    """Write a conversation as the OpenAI chat API has it.

    Args:
        system: The system prompt; empty for none.
        messages: The conversation.
        tools: The tools offered.
        able: What the chat template can express.
    """
    if tools and not able.tools:
        lines = "\n".join(json.dumps(_function(tool), ensure_ascii=False) for tool in tools)
        system = "\n\n".join(part for part in (system, _HOW_TO_CALL.format(tools=lines)) if part)
    chat: list[dict[str, Any]] = []
    if system and able.system:
        chat.append({"role": "system", "content": system})
        system = ""
    for message in messages:
        for turn in _turns(message, able):
            if system and turn["role"] == "user":
                turn["content"] = f"{system}\n\n{turn['content']}"
                system = ""
            _add(chat, turn)
    return chat


def _turns(message: Message, able: TemplateAbilities) -> list[dict[str, Any]]:
    text = _text(message.content)
    if message.role == "assistant":
        if not message.tool_calls:
            return [{"role": "assistant", "content": text}]
        if able.tool_calls:
            calls = [_call(call) for call in message.tool_calls]
            return [{"role": "assistant", "content": text, "tool_calls": calls}]
        written = [text, *(_written_call(call) for call in message.tool_calls)]
        return [{"role": "assistant", "content": "\n".join(part for part in written if part)}]
    turns: list[dict[str, Any]] = []
    for result in message.tool_results:
        if able.tool_calls:
            turn = {"role": "tool", "tool_call_id": result.id, "content": _result(result)}
        else:
            content = f"<tool_response>\n{_result(result)}\n</tool_response>"
            turn = {"role": "user", "content": content}
        turns.append(turn)
    if text or not turns:
        turns.append({"role": "user", "content": text})
    return turns


def _add(chat: list[dict[str, Any]], turn: dict[str, Any]) -> None:
    """Append a turn; neighbours of one speaker become one, as templates expect."""
    last = chat[-1] if chat else None
    plain = last is not None and not last.get("tool_calls") and not turn.get("tool_calls")
    if last is not None and plain and turn["role"] != "tool" and last["role"] == turn["role"]:
        last["content"] = f"{last['content']}\n\n{turn['content']}".strip()
    else:
        chat.append(turn)


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(plain_object(call.arguments), ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _written_call(call: ToolCall) -> str:
    body = {"name": call.name, "arguments": plain_object(call.arguments)}
    return f"<tool_call>{json.dumps(body, ensure_ascii=False)}</tool_call>"


def _result(result: ToolResult) -> str:
    text = _text(result.content)
    if not text and result.structured is not None:
        text = json.dumps(plain_json(result.structured), ensure_ascii=False)
    return f"error: {text}" if result.is_error else text


def _text(content: Sequence[Content]) -> str:
    return "\n".join(_block(block) for block in content)


def _block(block: Content) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, which this model cannot read]"
        case EmbeddedResource():
            if block.text is not None:
                return f"[resource {block.uri}]\n{block.text}\n[end of resource]"
            return f"[resource {block.uri}, which this model cannot read]"
        case ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case OpaqueContent():
            return f"[a block of the type {block.data.get('type')!r}]"
