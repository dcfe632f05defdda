"""Content blocks of a message, as MCP has them.

Every block keeps what it does not know in `extra` (camelCase wire names), so that a file read and
written again loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.text.json_value import JsonObject, JsonValue

NOTHING: Mapping[str, JsonValue] = MappingProxyType({})
"""The empty JSON object shared by all values that carry none."""


@dataclass(frozen=True, slots=True)
class TextContent:
    """Plain text."""

    text: str
    extra: JsonObject = NOTHING


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@dataclass(frozen=True, slots=True)
class AudioContent:
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A resource named but not carried."""

    uri: str
    name: str
    mime_type: str | None = None
    extra: JsonObject = NOTHING


@dataclass(frozen=True, slots=True)
class EmbeddedResource:
    """A resource carried in the message: exactly one of `text` and `blob` (base64) is set.

    `resource_extra` holds unknown fields of the inner `resource` object, `extra` those of the block.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    resource_extra: JsonObject = NOTHING
    extra: JsonObject = NOTHING


@dataclass(frozen=True, slots=True)
class OpaqueContent:
    """A block of a type this version does not know, kept as it came."""

    data: JsonObject


Content: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | OpaqueContent
)
