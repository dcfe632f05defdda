"""Content blocks in their MCP wire form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.errors import HistoryError
from fast_agent.messages.content import (
    NOTHING,
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    OpaqueContent,
    ResourceLink,
    TextContent,
)
from fast_agent.messages.json_shape import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.text.json_value import JsonObject, JsonValue

_TEXT = frozenset({"type", "text"})
_MEDIA = frozenset({"type", "data", "mimeType"})
_LINK = frozenset({"type", "uri", "name", "mimeType"})
_EMBEDDED = frozenset({"type", "resource"})
_RESOURCE = frozenset({"uri", "mimeType", "text", "blob"})
_TYPES = frozenset({"text", "image", "audio", "resource_link", "resource"})


def content_to_wire(block: Content) -> dict[str, JsonValue]:
    """Convert a block to its wire form.

    Args:
        block: Any block.

    Returns:
        A JSON object with camelCase keys that `content_from_wire` reads back equal.

    Raises:
        HistoryError: `extra` repeats a field the block has, an embedded resource does not have
            exactly one of text and blob, or an opaque block has a type that is known.
    """
    match block:
        case TextContent(text, extra):
            return merged({"type": "text", "text": text}, extra, _TEXT)
        case ImageContent(data, mime_type, extra):
            return merged({"type": "image", "data": data, "mimeType": mime_type}, extra, _MEDIA)
        case AudioContent(data, mime_type, extra):
            return merged({"type": "audio", "data": data, "mimeType": mime_type}, extra, _MEDIA)
        case ResourceLink(uri, name, mime_type, extra):
            wire: dict[str, JsonValue] = {"type": "resource_link", "uri": uri, "name": name}
            if mime_type is not None:
                wire["mimeType"] = mime_type
            return merged(wire, extra, _LINK)
        case EmbeddedResource():
            wire = {"type": "resource", "resource": _resource_to_wire(block)}
            return merged(wire, block.extra, _EMBEDDED)
        case OpaqueContent(data):
            kind = data.get("type")
            if not isinstance(kind, str) or kind in _TYPES:
                raise HistoryError(f"an opaque block cannot have the type `{kind}`")
            return dict(data)


def contents_to_wire(blocks: Iterable[Content]) -> list[JsonValue]:
    """Convert blocks to their wire form, in order."""
    return [content_to_wire(block) for block in blocks]


def content_from_wire(value: JsonValue) -> Content:
    """Read one block.

    Args:
        value: Its wire form; an unknown type becomes an `OpaqueContent`.

    Returns:
        The block.

    Raises:
        HistoryError: A field is missing or of the wrong kind.
    """
    node = Node(value, ("content",), [])
    block = read_content(node)
    if block is None or node.problems:
        raise HistoryError("; ".join(problem.message for problem in node.problems))
    return block


def read_contents(node: Node) -> tuple[Content, ...]:
    """Read a list of blocks, or a single one in its place, noting problems in the node."""
    if isinstance(node.value, str):
        wanted: JsonValue = [{"type": "text", "text": node.value}]
        hint = 'write `[{"type": "text", "text": …}]`'
        node.report("must be a list of content blocks, not a string", hint, replacement=wanted)
        return ()
    blocks = [node] if isinstance(node.value, Mapping) else node.items()
    return tuple([block for item in blocks if (block := read_content(item)) is not None])


def read_content(node: Node) -> Content | None:
    """Read one block; note problems in the node and return None if its shape is unknown."""
    if isinstance(node.value, str):
        wanted: JsonObject = {"type": "text", "text": node.value}
        hint = 'write `{"type": "text", "text": …}`'
        node.report("must be a content block, not a string", hint, replacement=wanted)
        return None
    if node.fields() is None:
        return None
    kind = node.optional_string("type")
    if kind is None:
        if node.field("type") is None:
            node.report("has no `type`")
        return None
    match kind:
        case "text":
            return TextContent(node.string("text"), node.rest(_TEXT))
        case "image":
            return ImageContent(node.string("data"), _media_type(node), node.rest(_MEDIA))
        case "audio":
            return AudioContent(node.string("data"), _media_type(node), node.rest(_MEDIA))
        case "resource_link":
            return ResourceLink(
                node.string("uri"),
                node.string("name"),
                node.optional_string("mimeType"),
                node.rest(_LINK),
            )
        case "resource":
            inner = node.child("resource", node.field("resource"))
            return read_resource(inner, node.rest(_EMBEDDED))
        case _:
            return OpaqueContent(node.fields() or NOTHING)


def read_resource(node: Node, extra: JsonObject = NOTHING) -> EmbeddedResource | None:
    """Read the inner object of an embedded resource, noting problems in the node."""
    if node.fields() is None:
        return None
    text, blob = node.optional_string("text"), node.optional_string("blob")
    if node.field("text") is None and node.field("blob") is None:
        node.report("the resource has neither `text` nor `blob`")
    elif text is not None and blob is not None:
        node.child("blob", blob).report("and `text` cannot both be there", key=True)
    return EmbeddedResource(
        node.string("uri"),
        node.optional_string("mimeType"),
        text,
        blob,
        node.rest(_RESOURCE),
        extra,
    )


def _media_type(node: Node) -> str:
    hint = "write `mimeType`" if node.field("mime_type") else None
    return node.string("mimeType", hint=hint)


def _resource_to_wire(block: EmbeddedResource) -> dict[str, JsonValue]:
    wire: dict[str, JsonValue] = {"uri": block.uri}
    if block.mime_type is not None:
        wire["mimeType"] = block.mime_type
    if (block.text is None) == (block.blob is None):
        raise HistoryError(f"the resource `{block.uri}` must have either text or a blob")
    if block.text is not None:
        wire["text"] = block.text
    else:
        wire["blob"] = block.blob
    return merged(wire, block.resource_extra, _RESOURCE)


def merged(
    wire: dict[str, JsonValue], extra: JsonObject, known: frozenset[str]
) -> dict[str, JsonValue]:
    """Add unknown fields after known ones; a known name among them is a HistoryError."""
    if not extra:
        return wire
    clash = known & extra.keys()
    if clash:
        raise HistoryError(f"the extra field `{min(clash)}` has the name of a known one")
    return {**wire, **extra}
