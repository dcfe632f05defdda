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
    from collections.abc import Iterable

    from fast_agent.text.json_value import JsonObject, JsonValue

_ROLES = ("user", "assistant")
_FIELDS = frozenset({"role", "content", "tool_calls", "tool_results", "stop_reason"})


class _UnusualError(Exception):
    """It is not of one of the plain shapes."""


def usual_message(wire: JsonValue) -> Message | None:
    """Read a message of texts, calls and results; None where it holds anything else."""
    if not isinstance(wire, dict) or not wire.keys() <= _FIELDS:
        return None
    role, reason = wire.get("role"), wire.get("stop_reason")
    if role not in _ROLES or not isinstance(reason, str | None):
        return None
    calls, results = wire.get("tool_calls"), wire.get("tool_results")
    try:
        return Message(
            role,
            _texts(wire.get("content")),
            () if calls is None else tuple([_call(*entry) for entry in _entries(calls)]),
            () if results is None else tuple([_result(*entry) for entry in _entries(results)]),
            NO_CHANNELS,
            None,
            reason,
        )
    except _UnusualError:
        return None


def _entries(value: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        raise _UnusualError
    return value.items()


def _texts(value: JsonValue) -> tuple[TextContent, ...]:
    if not isinstance(value, list):
        raise _UnusualError
    blocks: list[TextContent] = []
    for block in value:
        if not isinstance(block, dict) or len(block) != 2 or block.get("type") != "text":
            raise _UnusualError
        text = block.get("text")
        if not isinstance(text, str):
            raise _UnusualError
        blocks.append(TextContent(text))
    return tuple(blocks)


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
