"""Params: what a request brings, read field by field; nothing in it is trusted.

What is wrong with one is answered as an error of JSON-RPC. The blocks of a prompt become a message
here, and a message becomes blocks again for the client to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.errors import HistoryError
from fast_agent.messages.json_message import content_from_wire, content_to_wire
from fast_agent.messages.message import Message, OpaqueContent, TextContent
from fast_agent.rpc.message import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RpcError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.errors import FastAgentError
    from fast_agent.messages.message import Content
    from fast_agent.text.json_value import JsonObject, JsonValue

__all__ = [
    "CANCELLED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "RequestError",
    "refused",
]
NOT_FOUND: Final = -32002


class RequestError(RpcError):
    """A request that is not answered with a result.

    Args:
        code: The code of the error.
        message: What is wrong, lower-case start, no trailing period.
        hint: What to do about it, or None.
    """

    def __init__(self, code: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(code, message, None if hint is None else {"hint": hint})


def refused(error: FastAgentError, code: int = INTERNAL_ERROR) -> RequestError:
    """Make the answer of an error of the program, with the first places it names."""
    found = [one for one in error.diagnostics if one.severity == "error" and one.path]
    lines = [error.message]
    lines += [f"{one.path}: {one.message}" for one in found[:10] if one.message != error.message]
    return RequestError(code, "\n".join(lines), hint=error.hint)


def text(params: JsonObject, name: str) -> str:
    """Return a required string.

    Raises:
        RequestError: It is missing, or no text.
    """
    value = params.get(name)
    if not isinstance(value, str):
        raise wrong(name, "must be a string")
    return value


def optional_text(params: JsonObject, name: str) -> str | None:
    """Return a string, or None if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    return None if params.get(name) is None else text(params, name)


def objects(params: JsonObject, name: str) -> tuple[JsonObject, ...]:
    """Return a list of objects, empty if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    value: JsonValue = params.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong(name, "must be a list")
    found: list[JsonObject] = []
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise wrong(f"{name}[{index}]", "must be an object")
        found.append(item)
    return tuple(found)


def texts(params: JsonObject, name: str) -> tuple[str, ...]:
    """Return a list of strings, empty if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    value: JsonValue = params.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(name, "must be a list of strings")
    return tuple([str(item) for item in value])


def child(params: JsonObject, name: str) -> JsonObject:
    """Return an object, empty if it is missing or not an object."""
    value = params.get(name)
    return value if isinstance(value, Mapping) else {}


def directory(params: JsonObject, name: str) -> Path:
    """Return a required directory.

    Raises:
        RequestError: It is missing, not absolute, or no directory.
    """
    path = Path(text(params, name))
    if not path.is_absolute():
        raise wrong(name, "must be an absolute path")
    try:
        there = path.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise wrong(name, "is not a directory")
    return path


def wrong(name: str, what: str) -> RequestError:
    """Make the answer to a request one of whose fields is wrong."""
    return RequestError(INVALID_PARAMS, f"`{name}` {what}")


def read_prompt(params: JsonObject) -> Message:
    """Read the message of a prompt.

    Raises:
        RequestError: A block is wrong, or there is none.
    """
    blocks = objects(params, "prompt")
    if not blocks:
        raise wrong("prompt", "holds no blocks")
    return Message("user", tuple([_block(block, at) for at, block in enumerate(blocks)]))


def _block(block: JsonObject, index: int) -> Content:
    kind, said = block.get("type"), block.get("text")
    if kind == "text" and isinstance(said, str):
        # Anything else a client says about a text block is for people, not for models.
        return TextContent(said)
    place = f"prompt[{index}]"
    try:
        content = content_from_wire({name: one for name, one in block.items() if one is not None})
    except HistoryError as error:
        raise wrong(place, error.message) from None
    if isinstance(content, OpaqueContent):
        raise wrong(place, f"has the unknown type `{kind}`")
    return content


def block_to_wire(block: Content) -> JsonObject | None:
    """Return a block as clients show it; None for a block they do not know."""
    if isinstance(block, TextContent):
        return text_block(block.text)
    if isinstance(block, OpaqueContent):
        return None
    try:
        return content_to_wire(block)
    except HistoryError:
        return None


def text_block(text: str) -> JsonObject:
    """Return a string as a block."""
    return {"type": "text", "text": text}


def tool_content(blocks: Iterable[Content]) -> list[JsonValue]:
    """Return the content of a tool call, without empty strings."""
    return [
        {"type": "content", "content": wire}
        for block in blocks
        if (wire := block_to_wire(block)) is not None and wire.get("text") != ""
    ]
