"""Resources, templates and contents, in MCP's sense, each knowing its own JSON.

Values keep their JSON bytes once made: a server answers the same entry thousands of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    import builtins

    from fast_agent.resources.uri import Uri
    from fast_agent.text.json_value import JsonObject, JsonValue


class Resource:
    """An entry of `resources/list`.

    Args:
        uri: Its name.
        name: A short name for programs.
        title: A name for people, or None.
        description: What it holds, or None.
        mime_type: Its media type, or None where it varies.
        size: Bytes of its raw content, or None where unknown.
        annotations: MCP's: `audience`, `priority`, `lastModified`; or None.
        meta: MCP's `_meta`, or None.
    """

    __slots__ = (
        "_json",
        "annotations",
        "description",
        "meta",
        "mime_type",
        "name",
        "size",
        "title",
        "uri",
    )

    def __init__(
        self,
        uri: Uri,
        name: str,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: JsonObject | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.mime_type = mime_type
        self.size = size
        self.annotations = annotations
        self.meta = meta
        self._json: bytes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.uri)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"

    @property
    def data(self) -> JsonObject:
        """The entry with MCP's field names."""
        return _fields(
            {
                "uri": self.uri.text,
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "mimeType": self.mime_type,
                "size": self.size,
                "annotations": self.annotations,
                "_meta": self.meta,
            }
        )

    @property
    def json(self) -> bytes:
        """The entry as JSON, made once."""
        if (known := self._json) is not None:
            return known
        made = encode(self.data)
        self._json = made
        return made


class ResourceTemplate(NamedTuple):
    """An entry of `resources/templates/list`; `template` is an RFC 6570 template."""

    template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    meta: JsonObject | None = None

    @property
    def data(self) -> JsonObject:
        """The entry with MCP's field names."""
        return _fields(
            {
                "uriTemplate": self.template,
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "mimeType": self.mime_type,
                "_meta": self.meta,
            }
        )

    @property
    def json(self) -> bytes:
        """The entry as JSON."""
        return encode(self.data)


class ResourceContent:
    """One content of a read: exactly one of `text` and `blob` is set.

    Args:
        uri: What was read, canonical.
        mime_type: Its media type.
        text: The content, where its bytes are UTF-8; line ends and a byte order mark are kept.
        blob: The content, where they are not.
        meta: MCP's `_meta`, or None.
    """

    __slots__ = ("_json", "blob", "meta", "mime_type", "text", "uri")

    def __init__(
        self,
        uri: Uri,
        mime_type: str | None,
        text: str | None = None,
        blob: builtins.bytes | None = None,
        meta: JsonObject | None = None,
    ) -> None:
        self.uri = uri
        self.mime_type = mime_type
        self.text = text
        self.blob = blob
        self.meta = meta
        self._json: builtins.bytes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceContent) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.uri)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"

    @classmethod
    def of_bytes(
        cls, uri: Uri, mime_type: str | None, data: bytes, meta: JsonObject | None = None
    ) -> ResourceContent:
        """Carry bytes as text where they are UTF-8, and as a blob where not.

        `content.bytes == data` holds either way.
        """
        try:
            return cls(uri, mime_type, text=data.decode(), meta=meta)
        except UnicodeDecodeError:
            return cls(uri, mime_type, blob=data, meta=meta)

    @property
    def bytes(self) -> bytes:
        """The raw bytes."""
        return (self.blob or b"") if self.text is None else self.text.encode()

    @property
    def data(self) -> JsonObject:
        """The content with MCP's field names."""
        fields: dict[str, JsonValue] = {"uri": self.uri.text}
        if self.mime_type is not None:
            fields["mimeType"] = self.mime_type
        if self.text is None:
            fields["blob"] = self._base64()
        else:
            fields["text"] = self.text
        if self.meta is not None:
            fields["_meta"] = self.meta
        return fields

    @property
    def json(self) -> bytes:
        """The content as JSON, made once."""
        if (known := self._json) is not None:
            return known
        made = encode(self.data)
        self._json = made
        return made

    def _base64(self) -> str:
        from binascii import b2a_base64

        return b2a_base64(self.blob or b"", newline=False).decode("ascii")


def _fields(fields: dict[str, JsonValue]) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}


WHY: Final = "fast-agent/why"
"""When to read it, in a sentence."""

KIND: Final = "fast-agent/type"
"""What sort of document it says it is."""

TAGS: Final = "fast-agent/tags"
"""Its tags, a list."""

TOKENS: Final = "fast-agent/tokens"
"""About how many tokens its text takes."""
