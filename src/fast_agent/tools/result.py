"""What Python code returns, as the result of a tool call.

Accepted: text, None, numbers and booleans, JSON-able values (dicts, lists, dataclasses, pydantic
models, enums, dates …), content blocks (the project's, the MCP SDK's, or dicts of that shape) alone
or in a list, whole results (`ToolResult`, the SDK's `CallToolResult`, or a dict of that shape),
bytes of an image or of UTF-8 text, and `Media`: bytes with a media type.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Never, Protocol, cast, runtime_checkable

from fast_agent.errors import FastAgentError, ToolError
from fast_agent.messages.json_message import content_from_wire
from fast_agent.messages.message import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    Media,
    OpaqueContent,
    ResourceLink,
    TextContent,
    ToolResult,
)

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

SKILL_MODEL = "fast-agent/model"
"""The extra field of a result by which `load_skill` names the model that is to answer."""

_BLOCKS = (
    TextContent,
    ImageContent,
    AudioContent,
    ResourceLink,
    EmbeddedResource,
    OpaqueContent,
)
_WIRE_TYPES = {
    "text": "text",
    "image": "data",
    "audio": "data",
    "resource_link": "uri",
    "resource": "resource",
}
_RETURNABLE: Final = "return text, a dict, a list, a dataclass, a pydantic model or a content block"
_RESULT_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


@runtime_checkable
class _WireValue(Protocol):
    """A value of the MCP SDK, known by what it can do so that the SDK need not be imported."""

    def model_dump(
        self, *, mode: str, by_alias: bool, exclude_none: bool
    ) -> dict[str, JsonValue]: ...


def result_of(call_id: str, value: object) -> ToolResult:
    """Make the result of a call from what its function returned.

    Args:
        call_id: The call it answers.
        value: What was returned; see the module for what is accepted.

    Returns:
        The result.

    Raises:
        ToolError: The value cannot be given to a model.
    """
    if isinstance(value, str):
        return ToolResult(call_id, (TextContent(value),))
    if value is None:
        return ToolResult(call_id)
    if isinstance(value, ToolResult):
        return replace(value, id=call_id)
    whole = _read_result(call_id, _wire(value))
    if whole is not None:
        return whole
    blocks = _blocks(value)
    return ToolResult(call_id, blocks) if blocks is not None else _json(call_id, value)


def said(error: BaseException) -> str:
    """Describe an error for a model: type and message, and the hint of an error of ours."""
    if isinstance(error, FastAgentError):
        return f"{error.message}\nhint: {error.hint}" if error.hint else error.message
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _wire(value: object) -> object:
    """Convert an SDK value to its wire form; leave any other value."""
    if type(value).__module__.partition(".")[0] in ("mcp", "mcp_types") and isinstance(
        value, _WireValue
    ):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


def _read_result(call_id: str, value: object) -> ToolResult | None:
    """Read a dict that has the form of a whole `CallToolResult`."""
    if not isinstance(value, Mapping):
        return None
    fields = cast("JsonObject", value)
    content = fields.get("content")
    if not isinstance(content, list | tuple) or not fields.keys() <= _RESULT_FIELDS:
        return None
    if not all(_is_wire_block(_wire(block)) or isinstance(block, _BLOCKS) for block in content):
        return None
    return ToolResult(
        call_id,
        tuple(_block(block) for block in content),
        is_error=fields.get("isError") is True,
        structured=fields.get("structuredContent"),
    )


def _blocks(value: object) -> tuple[Content, ...] | None:
    """Read one content block, or a list in which there is at least one; None for other values."""
    if _is_block(value):
        return (_block(value),)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        if any(_is_block(item) for item in items) and all(
            _is_block(item) or isinstance(item, str) for item in items
        ):
            return tuple(_block(item) for item in items)
    return None


def _is_block(value: object) -> bool:
    if isinstance(value, _BLOCKS):
        return True
    if isinstance(value, bytes | bytearray | Media):
        return True
    return _is_wire_block(_wire(value))


def _is_wire_block(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    fields = cast("JsonObject", value)
    kind = fields.get("type")
    return isinstance(kind, str) and kind in _WIRE_TYPES and _WIRE_TYPES[kind] in fields


def _block(value: object) -> Content:
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, bytes | bytearray):
        return _of_bytes(bytes(value))
    if isinstance(value, Media):
        return _of_media(value)
    fields = cast("JsonObject", _wire(value))
    try:
        return content_from_wire(fields)
    except FastAgentError as problem:
        raise ToolError(f"a content block {problem.message}") from problem


def _of_bytes(data: bytes) -> Content:
    kind = next((mime for magic, mime in _IMAGES if data.startswith(magic)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is not None:
        return ImageContent(b64encode(data).decode(), kind)
    try:
        return TextContent(data.decode())
    except UnicodeDecodeError:
        hint = 'say what they are: return `Media(data, "application/pdf")`'
        msg = f"{len(data):,} bytes were returned that are neither text nor an image"
        raise ToolError(msg, hint=hint) from None


def _of_media(media: Media) -> Content:
    try:
        return media.content()
    except ValueError as problem:
        raise ToolError(f"`Media` was returned that cannot be sent: {problem}") from problem


def _json(call_id: str, value: object) -> ToolResult:
    """Convert a JSON-able value to JSON text; objects and lists to structured content too."""
    if isinstance(value, bool | int):
        return ToolResult(
            call_id,
            (TextContent("true" if value is True else "false" if value is False else str(value)),),
        )
    from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

    try:
        plain = cast(
            "JsonValue",
            to_jsonable_python(value, by_alias=True, inf_nan_mode="strings", fallback=_refuse),
        )
        text = to_json(plain).decode()
    except (PydanticSerializationError, ValueError) as problem:
        raise ToolError(
            f"the `{type(value).__name__}` that was returned is not JSON: {problem}",
            hint=_RETURNABLE,
        ) from problem
    if isinstance(plain, str):
        text = plain
    structured = plain if isinstance(plain, Mapping | list) else None
    return ToolResult(call_id, (TextContent(text),), structured=structured)


def _refuse(value: object) -> Never:
    """Refuse a value for which there is not JSON, alone or inside another."""
    raise ToolError(
        f"a value of type `{type(value).__name__}` was returned, which is not JSON",
        hint=_RETURNABLE,
    )


def describe_error(error: BaseException) -> str:
    """Return the message of an exception, with its type."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
