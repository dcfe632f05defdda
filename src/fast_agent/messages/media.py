"""Media: bytes with a media type, as a tool or a program hands them to a model."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from fast_agent.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
)
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.messages.content import Content


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
