"""Content between the SDK's types and the project's values, both ways, bounded on the way in.

Text and addresses of servers are made fit to be shown to a user.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from fast_agent.errors import HistoryError, ToolError
from fast_agent.messages.json_message import content_from_wire, content_to_wire
from fast_agent.messages.message import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    TextContent,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp.types import CallToolResult
    from pydantic import BaseModel

    from fast_agent.text.json_value import JsonObject, JsonValue

BINARY_FACTOR = 16
"""How many times more base64 characters than text characters one result may hold."""
_RESULT_FIELDS = frozenset({"content", "structuredContent", "isError", "resultType"})

ASKS_AS_BEFORE = "it asks as servers did before 2026-07-28: `protocol: legacy` lets it"
_NO_WAY_TO_ASK = ("no back-channel", "unavailable on 2026-07-28 connections")
"""What the SDK and FastMCP say where a tool asks as in the handshake protocols."""


def asks_as_before(text: str) -> bool:
    """Return whether a server failed since it asked the client as in an older protocol."""
    return any(words in text for words in _NO_WAY_TO_ASK)


def wire(value: BaseModel) -> dict[str, Any]:
    """Return an SDK value as it was on the wire: camelCase names, nothing that was not sent."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


def rest(fields: dict[str, Any], known: frozenset[str]) -> JsonObject:
    """Return the unknown fields."""
    return {name: value for name, value in fields.items() if name not in known}


def from_sdk(block: BaseModel) -> Content:
    """Read one SDK content block; what it does not know is kept in `extra`.

    Raises:
        ToolError: The block is not what the protocol allows.
    """
    try:
        return content_from_wire(wire(block))
    except HistoryError as problem:
        raise ToolError(f"a content block {problem.message}") from problem


def to_wire(block: Content) -> dict[str, Any]:
    """Convert a block to its MCP form, for the SDK to validate.

    Raises:
        ToolError: The block cannot be written.
    """
    try:
        return content_to_wire(block)
    except HistoryError as problem:
        raise ToolError(problem.message) from problem


def tool_result(call_id: str, result: CallToolResult, limit: int) -> ToolResult:
    """Turn the answer to `tools/call` into the project's own.

    Args:
        call_id: The call it answers.
        result: What the server answered.
        limit: Most characters of text to keep; base64 may have `BINARY_FACTOR` times as many.

    Raises:
        ToolError: A block is not what the protocol allows.
    """
    fields = wire(result)
    structured = cast("JsonValue", fields.get("structuredContent"))
    content = bounded([from_sdk(block) for block in result.content], limit)
    if structured is not None and _size(structured) > limit:
        structured = None
        note = f"[structured content of over {limit:,} characters was left out]"
        content = (*content, TextContent(note))
    if result.is_error and any(
        isinstance(block, TextContent) and asks_as_before(block.text) for block in content
    ):
        content = (*content, TextContent(f"[{ASKS_AS_BEFORE}]"))
    return ToolResult(
        id=call_id,
        content=content,
        is_error=bool(result.is_error),
        structured=structured,
        extra=rest(fields, _RESULT_FIELDS),
    )


def bounded(blocks: Iterable[Content], limit: int) -> tuple[Content, ...]:
    """Keep the blocks within `limit` characters of text, saying in its place what was left out."""
    text_left, binary_left = limit, limit * BINARY_FACTOR
    kept: list[Content] = []
    for block in blocks:
        match block:
            case TextContent(text):
                kept.append(
                    block if len(text) <= text_left else replace(block, text=cut(text, text_left))
                )
                text_left = max(0, text_left - len(text))
            case EmbeddedResource(text=str(text)):
                kept.append(
                    block if len(text) <= text_left else replace(block, text=cut(text, text_left))
                )
                text_left = max(0, text_left - len(text))
            case ImageContent(data) | AudioContent(data) | EmbeddedResource(blob=str(data)):
                if len(data) <= binary_left:
                    kept.append(block)
                    binary_left -= len(data)
                else:
                    kept.append(TextContent(f"[{len(data):,} characters of base64 were left out]"))
            case _:
                kept.append(block)
    return tuple(kept)


def cut(text: str, limit: int) -> str:
    """Keep the head and the tail of a text, with a note between them of how much is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 4, limit // 4
    note = f"\n[{len(text) - limit:,} of {len(text):,} characters were left out]\n"
    return f"{text[:head]}{note}{text[len(text) - tail :]}"


def _size(value: JsonValue) -> int:
    from json import dumps

    return len(dumps(value, ensure_ascii=False))


NAME_LIMIT = 200
REPORT_LIMIT = 500
DESCRIPTION_LIMIT = 16_000
INSTRUCTIONS_LIMIT = 32_000
_CUT = "…"


def one_line(text: str, limit: int = REPORT_LIMIT) -> str:
    """Make a single line for a message: white space folded, controls dropped, bounded."""
    # Bounded first, so that a huge text costs little; folding only makes it shorter.
    shown = " ".join(_printable(text[: 4 * limit]).split())
    return shown if len(shown) <= limit and len(text) <= 4 * limit else shown[: limit - 1] + _CUT


def block(text: str, limit: int) -> str:
    """Bound a longer text and drop its controls, line breaks and tabs kept."""
    shown = _printable(text[:limit])
    return shown if len(text) <= limit else shown + _CUT


def opens_safely(url: str) -> bool:
    """Whether an address may be shown to a user to open: `http` or `https`, without tricks."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    hidden = parts.username is not None or not url.isprintable() or " " in url
    return parts.scheme in ("http", "https") and bool(host) and not hidden


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Cf")
    )
