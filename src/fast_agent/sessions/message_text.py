"""Messages as the texts a log holds, with a fast way for usual ones.

A message of a single text, as most are, is stored as that text and its form, which
names its role and stop reason; the result of a tool call likewise, with a form that names the
call. Everything else is held as the JSON of a history file.
"""

from __future__ import annotations

from functools import lru_cache
from json import JSONDecodeError, JSONDecoder, loads
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.errors import HistoryError, SessionError
from fast_agent.messages.json_message import message_from_wire, message_to_wire, to_json
from fast_agent.messages.message import (
    NO_CHANNELS,
    NOTHING,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.messages.message import Content, Role
    from fast_agent.text.json_value import JsonObject, JsonValue


_DECODER = JSONDecoder()

Stored: TypeAlias = "tuple[str | None, str]"
"""The form of a message, None for JSON; and its text."""


_ROLES = ("user", "assistant")


def store(message: Message) -> Stored:
    """Write a message.

    Raises:
        SessionError: It holds what JSON cannot.
    """
    text = _only_text(message.content)
    if (
        text is not None
        and not message.tool_calls
        and not message.tool_results
        and _is_bare(message)
    ):
        reason = message.stop_reason
        return (message.role if reason is None else f"{message.role} {reason}"), text
    try:
        return None, to_json(message_to_wire(message))
    except HistoryError as error:
        raise _unwritable(error) from error


def store_result(result: ToolResult) -> Stored:
    """Write the result of a tool call.

    Raises:
        SessionError: It holds what JSON cannot.
    """
    text = _only_text(result.content)
    if (
        text is not None
        and result.structured is None
        and not result.extra
        and _is_unicode(result.id)
    ):
        return f"{'error' if result.is_error else 'result'} {result.id}", text
    return store(Message("user", tool_results=(result,)))


def store_all(messages: Iterable[Message]) -> str:
    """Write several messages as JSON.

    Raises:
        SessionError: One of them holds what JSON cannot.
    """
    try:
        return to_json([message_to_wire(message) for message in messages])
    except HistoryError as error:
        raise _unwritable(error) from error


def read(form: str | None, text: str) -> Message:
    """Read what `store` wrote.

    Raises:
        SessionError: It is not a message.
    """
    if form is None:
        return _message(_json(text))
    role, reason = _taken_apart(form)
    return Message(role, (TextContent(text),), (), (), NO_CHANNELS, None, reason)


def read_result(form: str | None, text: str) -> ToolResult:
    """Read what `store_result` wrote.

    Raises:
        SessionError: It is not a result.
    """
    if form is None:
        results = _message(_json(text)).tool_results
        if len(results) == 1:
            return results[0]
        raise SessionError("it holds no result")
    if form.startswith("result "):
        return ToolResult(form[7:], (TextContent(text),))
    if form.startswith("error "):
        return ToolResult(form[6:], (TextContent(text),), is_error=True)
    raise SessionError("it holds no result")


def read_all(text: str) -> list[Message]:
    """Read what `store_all` wrote.

    Raises:
        SessionError: It is not a list of messages.
    """
    value = _json(text)
    if not isinstance(value, list):
        raise SessionError("it holds no list of messages")
    return [_message(item) for item in value]


def read_ids(text: str) -> list[str]:
    """Read a list of texts.

    Raises:
        SessionError: It is none.
    """
    value = _json(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SessionError("it holds no list of turns")
    return cast("list[str]", value)


def _only_text(content: Sequence[Content]) -> str | None:
    """Return the text of content that is one text; None otherwise, or if it does not fit."""
    if len(content) != 1:
        return None
    (block,) = content
    if isinstance(block, TextContent) and not block.extra and _is_unicode(block.text):
        return block.text
    return None


@lru_cache(maxsize=64)
def _taken_apart(form: str) -> tuple[Role, str | None]:
    role, space, reason = form.partition(" ")
    if role not in {"user", "assistant"}:
        raise SessionError(f"there are no messages of role `{role}`")
    return cast("Role", role), reason if space else None


def _is_bare(message: Message) -> bool:
    return (
        not message.channels
        and message.native is None
        and message.phase is None
        and not message.is_template
        and message.timestamp is None
        and not message.extra
        and (message.stop_reason is None or message.stop_reason.isascii())
    )


def _is_unicode(text: str) -> bool:
    """Whether a table can hold it: half of a surrogate pair has no encoding."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json(text: str) -> JsonValue:
    try:
        # What is written here has no white space around it, which is all that `loads` adds.
        value, end = _DECODER.raw_decode(text)
        return cast("JsonValue", value if end == len(text) else loads(text))
    except (JSONDecodeError, RecursionError, TypeError) as error:
        raise SessionError(f"it is not JSON: {error}") from error


def _message(wire: JsonValue) -> Message:
    known = usual_message(wire)
    if known is not None:
        return known
    try:
        return message_from_wire(wire)
    except HistoryError as error:
        raise SessionError(f"it holds no message: {error.message}") from error


def _unwritable(error: HistoryError) -> SessionError:
    return SessionError(f"a message cannot be written to the session: {error.message}")


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
