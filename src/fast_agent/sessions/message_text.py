"""Messages as the lines of text a log holds."""

from __future__ import annotations

from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, cast

from fast_agent.errors import HistoryError, SessionError
from fast_agent.messages.content import TextContent
from fast_agent.messages.json_codec import to_json
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.text.json_value import JsonValue

_decode = JSONDecoder().decode
_ROLES = ("user", "assistant")
_PLAIN = frozenset({"role", "content", "stop_reason"})


def message_text(message: Message) -> str:
    """Write a message.

    Raises:
        SessionError: It holds what JSON cannot.
    """
    try:
        return to_json(message_to_wire(message))
    except HistoryError as error:
        raise _unwritable(error) from error


def messages_text(messages: Iterable[Message]) -> str:
    """Write several messages.

    Raises:
        SessionError: One of them holds what JSON cannot.
    """
    try:
        return to_json([message_to_wire(message) for message in messages])
    except HistoryError as error:
        raise _unwritable(error) from error


def read_message(text: str) -> Message:
    """Read what `message_text` wrote.

    Raises:
        SessionError: It is no message.
    """
    return _message(_json(text))


def read_messages(text: str) -> list[Message]:
    """Read what `messages_text` wrote.

    Raises:
        SessionError: It is no list of messages.
    """
    value = _json(text)
    if not isinstance(value, list):
        raise SessionError("an event holds no list of messages")
    return [_message(item) for item in value]


def read_ids(text: str) -> list[str]:
    """Read a list of texts.

    Raises:
        SessionError: It is none.
    """
    value = _json(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SessionError("an event holds no list of turns")
    return cast("list[str]", value)


def _json(text: str) -> JsonValue:
    try:
        return cast("JsonValue", _decode(text))
    except (JSONDecodeError, RecursionError, TypeError) as error:
        raise SessionError(f"an event is no JSON: {error}") from error


def _message(wire: JsonValue) -> Message:
    plain = _plain_message(wire)
    if plain is not None:
        return plain
    try:
        return message_from_wire(wire)
    except HistoryError as error:
        raise SessionError(f"an event holds no message: {error.message}") from error


def _plain_message(wire: JsonValue) -> Message | None:
    """Read a message of texts alone, as most are, without the cost of the whole codec."""
    if not isinstance(wire, dict) or not wire.keys() <= _PLAIN:
        return None
    role, content, reason = wire.get("role"), wire.get("content"), wire.get("stop_reason")
    if role not in _ROLES or not isinstance(content, list):
        return None
    if reason is not None and not isinstance(reason, str):
        return None
    blocks: list[TextContent] = []
    for block in content:
        if not isinstance(block, dict) or len(block) != 2 or block.get("type") != "text":
            return None
        text = block.get("text")
        if not isinstance(text, str):
            return None
        blocks.append(TextContent(text))
    return Message(role, tuple(blocks), stop_reason=reason)


def _unwritable(error: HistoryError) -> SessionError:
    return SessionError(f"a message cannot be written to the session: {error.message}")
