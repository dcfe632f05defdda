"""Messages as the texts a log holds.

A message of one text and nothing else, as most are, is held as that text beside its form, which
names its role and stop reason. Every other message is held as the JSON of a history file.
"""

from __future__ import annotations

from json import JSONDecodeError, loads
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.errors import HistoryError, SessionError
from fast_agent.messages.content import TextContent
from fast_agent.messages.json_codec import to_json
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.message import Role
    from fast_agent.text.json_value import JsonValue

Stored: TypeAlias = "tuple[str | None, str]"
"""The form of a message, None for JSON; and its text."""


def store(message: Message) -> Stored:
    """Write a message.

    Raises:
        SessionError: It holds what JSON cannot.
    """
    block = message.content[0] if len(message.content) == 1 else None
    if (
        isinstance(block, TextContent)
        and not block.extra
        and not message.tool_calls
        and not message.tool_results
        and _is_bare(message)
        and _is_unicode(block.text)
    ):
        reason = message.stop_reason
        return (message.role if reason is None else f"{message.role} {reason}"), block.text
    try:
        return None, to_json(message_to_wire(message))
    except HistoryError as error:
        raise _unwritable(error) from error


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
        SessionError: It is no message.
    """
    if form is None:
        return _message(_json(text))
    role, space, reason = form.partition(" ")
    if role not in {"user", "assistant"}:
        raise SessionError(f"there are no messages of role `{role}`")
    content = (TextContent(text),)
    return Message(cast("Role", role), content, stop_reason=reason if space else None)


def read_all(text: str) -> list[Message]:
    """Read what `store_all` wrote.

    Raises:
        SessionError: It is no list of messages.
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
        return cast("JsonValue", loads(text))
    except (JSONDecodeError, RecursionError, TypeError) as error:
        raise SessionError(f"it is no JSON: {error}") from error


def _message(wire: JsonValue) -> Message:
    try:
        return message_from_wire(wire)
    except HistoryError as error:
        raise SessionError(f"it holds no message: {error.message}") from error


def _unwritable(error: HistoryError) -> SessionError:
    return SessionError(f"a message cannot be written to the session: {error.message}")
