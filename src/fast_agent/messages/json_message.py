"""Messages in the form JSON histories hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fast_agent.errors import HistoryError
from fast_agent.messages.content import NOTHING, Content
from fast_agent.messages.json_content import contents_to_wire, merged, read_contents
from fast_agent.messages.json_shape import Node
from fast_agent.messages.message import NO_CHANNELS, Message, Role, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.text.json_value import JsonObject, JsonValue

NATIVE = "fast-agent/native"
"""The field that keeps a provider's own form of a message."""

_CALL_METHOD = "tools/call"
_CALL = frozenset({"method", "params"})
_PARAMS = frozenset({"name", "arguments"})
_RESULT = frozenset({"content", "isError", "structuredContent"})
_MESSAGE = frozenset(
    {
        "role",
        "content",
        "tool_calls",
        "tool_results",
        "channels",
        "stop_reason",
        "phase",
        "is_template",
        "timestamp",
        NATIVE,
    }
)


def message_to_wire(message: Message) -> dict[str, JsonValue]:
    """Convert a message to its JSON form; unset fields are left out.

    Args:
        message: Any message.

    Returns:
        A JSON object that `message_from_wire` reads back equal.

    Raises:
        HistoryError: Two calls or two results have one id, or something in the message has no wire
            form.
    """
    wire: dict[str, JsonValue] = {
        "role": message.role,
        "content": contents_to_wire(message.content),
    }
    if message.tool_calls:
        calls = {call.id: _call_to_wire(call) for call in message.tool_calls}
        _must_be_unique("calls", calls, [call.id for call in message.tool_calls])
        wire["tool_calls"] = calls
    if message.tool_results:
        results = {result.id: _result_to_wire(result) for result in message.tool_results}
        _must_be_unique("results", results, [result.id for result in message.tool_results])
        wire["tool_results"] = results
    if message.channels:
        wire["channels"] = {
            name: contents_to_wire(blocks) for name, blocks in message.channels.items()
        }
    if message.stop_reason is not None:
        wire["stop_reason"] = message.stop_reason
    if message.phase is not None:
        wire["phase"] = message.phase
    if message.is_template:
        wire["is_template"] = True
    if message.timestamp is not None:
        wire["timestamp"] = message.timestamp
    if message.native is not None:
        wire[NATIVE] = message.native
    return merged(wire, message.extra, _MESSAGE)


def message_from_wire(value: JsonValue) -> Message:
    """Read one message.

    Args:
        value: Its JSON form.

    Returns:
        The message.

    Raises:
        HistoryError: A field is missing or of the wrong kind; every problem is named.
    """
    node = Node(value, ("message",), [])
    message = read_message(node)
    if message is None or node.problems:
        raise HistoryError("; ".join(problem.message for problem in node.problems))
    return message


def read_message(node: Node) -> Message | None:
    """Read one message, noting problems in the node; None if it is not an object."""
    if node.fields() is None:
        return None
    return Message(
        _role(node),
        read_contents(node.child("content", node.field("content"))),
        _calls(node.child("tool_calls", node.field("tool_calls"))),
        _results(node.child("tool_results", node.field("tool_results"))),
        _channels(node.child("channels", node.field("channels"))),
        node.field(NATIVE),
        node.optional_string("stop_reason"),
        node.optional_string("phase"),
        node.flag("is_template"),
        _timestamp(node),
        node.rest(_MESSAGE),
    )


def _role(node: Node) -> Role:
    role = node.field("role")
    if role in {"user", "assistant"} if isinstance(role, str) else False:
        return cast("Role", role)
    if role is None:
        node.report("has no `role`", hint="write `user` or `assistant`")
        return "user"
    hint = None
    if role == "system":
        hint = "put the text into the field `system` next to `messages`"
    node.child("role", role).must_be("`user` or `assistant`", hint=hint)
    return "user"


def _timestamp(node: Node) -> str | float | int | None:
    value = node.field("timestamp")
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        return value
    node.child("timestamp", value).must_be("a string or a number")
    return None


def _calls(node: Node) -> tuple[ToolCall, ...]:
    return tuple([call for key, entry in node.entries() if (call := _call(key, entry))])


def _call(key: str, node: Node) -> ToolCall | None:
    if node.fields() is None:
        return None
    method = node.field("method")
    if method not in {None, _CALL_METHOD} if isinstance(method, str) else method is not None:
        node.child("method", method).must_be(f"`{_CALL_METHOD}`")
    params = node.child("params", node.field("params"))
    if params.fields() is None:
        return None
    name = params.string("name")
    arguments = params.field("arguments")
    if arguments is not None:
        arguments = params.child("arguments", arguments).fields()
    extra = node.rest(_CALL)
    inner = params.rest(_PARAMS)
    if inner:
        extra = {**extra, "params": inner}
    return ToolCall(key, name, arguments or NOTHING, extra)


def _results(node: Node) -> tuple[ToolResult, ...]:
    return tuple([result for key, entry in node.entries() if (result := _result(key, entry))])


def _result(key: str, node: Node) -> ToolResult | None:
    if node.fields() is None:
        return None
    return ToolResult(
        key,
        read_contents(node.child("content", node.field("content"))),
        node.flag("isError"),
        node.field("structuredContent"),
        node.rest(_RESULT),
    )


def _channels(node: Node) -> Mapping[str, tuple[Content, ...]]:
    channels = {key: read_contents(entry) for key, entry in node.entries()}
    return channels or NO_CHANNELS


def _call_to_wire(call: ToolCall) -> dict[str, JsonValue]:
    params: dict[str, JsonValue] = {"name": call.name, "arguments": dict(call.arguments)}
    extra = call.extra
    inner = extra.get("params")
    if inner is not None:
        if not isinstance(inner, dict) or not inner:
            raise HistoryError(f"the extra field `params` of the call `{call.id}` is not an object")
        params = merged(params, inner, _PARAMS)
        extra = {key: value for key, value in extra.items() if key != "params"}
    return merged({"method": _CALL_METHOD, "params": params}, extra, _CALL)


def _result_to_wire(result: ToolResult) -> dict[str, JsonValue]:
    wire: dict[str, JsonValue] = {
        "content": contents_to_wire(result.content),
        "isError": result.is_error,
    }
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    return merged(wire, result.extra, _RESULT)


def _must_be_unique(what: str, by_id: JsonObject, ids: Iterable[str]) -> None:
    if len(by_id) != len(list(ids)):
        raise HistoryError(f"two tool {what} of one message have the same id")
