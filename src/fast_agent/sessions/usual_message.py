"""Usual messages: those of calls, results and texts alone, read without the whole codec.

The codec looks at everything a history file may hold and notes every problem with its place. Most
messages of a log are of a few plain shapes, which are read here in a tenth of the time, so that
long sessions open quickly; whatever is not exactly of such a shape is left to the codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fast_agent.messages.content import NOTHING, TextContent
from fast_agent.messages.message import NO_CHANNELS, Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

_ROLES = ("user", "assistant")


class _UnusualError(Exception):
    """It is not of one of the plain shapes."""


def usual_message(wire: JsonValue) -> Message | None:
    """Read a message of texts, calls and results; None where it holds anything else."""
    if not isinstance(wire, dict):
        return None
    get = wire.get
    role, content, reason = get("role"), get("content"), get("stop_reason")
    calls, results = get("tool_calls"), get("tool_results")
    known = ("role" in wire) + ("content" in wire) + ("stop_reason" in wire)
    known += ("tool_calls" in wire) + ("tool_results" in wire)
    if known < len(wire) or role not in _ROLES:
        return None
    if reason is not None and not isinstance(reason, str):
        return None
    try:
        return Message(
            role,
            _texts(content),
            () if calls is None else _calls(calls),
            () if results is None else _results(results),
            NO_CHANNELS,
            None,
            reason,
        )
    except _UnusualError:
        return None


def _texts(value: JsonValue) -> tuple[TextContent, ...]:
    if not isinstance(value, list):
        raise _UnusualError
    return tuple([_text(block) for block in value]) if value else ()


def _text(block: JsonValue) -> TextContent:
    if isinstance(block, dict) and len(block) == 2 and block.get("type") == "text":
        text = block.get("text")
        if isinstance(text, str):
            return TextContent(text)
    raise _UnusualError


def _calls(value: JsonValue) -> tuple[ToolCall, ...]:
    if not isinstance(value, dict):
        raise _UnusualError
    return tuple([_call(call_id, call) for call_id, call in value.items()])


def _results(value: JsonValue) -> tuple[ToolResult, ...]:
    if not isinstance(value, dict):
        raise _UnusualError
    return tuple([_result(call_id, result) for call_id, result in value.items()])


def _call(call_id: str, value: JsonValue) -> ToolCall:
    if not isinstance(value, dict) or len(value) != 2 or value.get("method") != "tools/call":
        raise _UnusualError
    params = value.get("params")
    if not isinstance(params, dict) or len(params) != 2:
        raise _UnusualError
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _UnusualError
    return ToolCall(call_id, name, cast("JsonObject", arguments) or NOTHING)


def _result(call_id: str, value: JsonValue) -> ToolResult:
    if not isinstance(value, dict) or len(value) != 2:
        raise _UnusualError
    failed = value.get("isError")
    if not isinstance(failed, bool):
        raise _UnusualError
    return ToolResult(call_id, _texts(value.get("content")), failed)
