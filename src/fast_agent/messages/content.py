"""Content blocks of a message, as MCP has them, and media that become such blocks.

Every block keeps what it does not know in `extra` (camelCase wire names), so that a file read and
written again loses nothing.
"""

from __future__ import annotations

from base64 import b64encode
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


@frozen
class Media:
    """Bytes and what they are.

    Args:
        data: The bytes.
        media_type: Such as `application/pdf` or `image/png`.
        name: A file name for models and people, or None.
    """

    data: bytes
    media_type: str
    name: str | None = None

    def content(self) -> Content:
        """Return them as a content block.

        Raises:
            ValueError: The media type is not of the form `type/subtype`, or bytes of a text type
                are not UTF-8.
        """
        kind, slash, rest = self.media_type.partition("/")
        if not (kind and slash and rest):
            raise ValueError(f"`{self.media_type}` is not a media type, such as `application/pdf`")
        if kind == "text":
            return TextContent(self.data.decode())
        text = b64encode(self.data).decode()
        if kind == "image":
            return ImageContent(text, self.media_type)
        if kind == "audio":
            return AudioContent(text, self.media_type)
        name = self.name or "result"
        return EmbeddedResource(f"file:///{name}", blob=text, mime_type=self.media_type)
