"""Content blocks of a message, as MCP has them.

Every block keeps what it does not know in `extra` (camelCase wire names), so that a file read and
written again loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

_Value = TypeVar("_Value", covariant=True)  # noqa: PLC0105  (mappings are read-only here)


class Empty(Mapping[str, _Value]):
    """A mapping with nothing in it that cannot be changed, and so may be a shared default."""

    __slots__ = ()

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"


NOTHING: Mapping[str, JsonValue] = Empty()
"""The empty JSON object shared by all values that carry none."""


@frozen
class TextContent:
    """Plain text."""

    text: str
    extra: JsonObject = NOTHING


@frozen
class ImageContent:
    """An image; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@frozen
class AudioContent:
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@frozen
class ResourceLink:
    """A resource named but not carried."""

    uri: str
    name: str
    mime_type: str | None = None
    extra: JsonObject = NOTHING


@frozen
class EmbeddedResource:
    """A resource carried in the message: exactly one of `text` and `blob` (base64) is set.

    `resource_extra` holds unknown fields of the inner `resource` object, `extra` the block's own.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    resource_extra: JsonObject = NOTHING
    extra: JsonObject = NOTHING


@frozen
class OpaqueContent:
    """A block of a type this version does not know, kept as it came."""

    data: JsonObject


Content: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | OpaqueContent
)
