"""Resources, templates and contents, in MCP's sense, each knowing its own JSON; their limits.

Values keep their JSON bytes once made: a server answers the same entry thousands of times. A media
type is looked up by file name in a fixed table; content is never read for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    import builtins

    from fast_agent.resources.uri import Uri
    from fast_agent.text.json_value import JsonObject, JsonValue

CHARACTERS_PER_TOKEN = 4


class Limits(NamedTuple):
    """Bounds that fail loudly; nothing is ever cut to fit.

    Args:
        file_bytes: Most bytes of one file.
        answer_bytes: Most bytes of one answer's bodies.
        parts: Most parts of a multipart answer.
        page: Most entries of one page of a list.
        completions: Most values of one completion; MCP allows a hundred.
        tree_files: Most files one root or skill may hold before walking it stops.
        tree_depth: Most folders below each other.
        session_subscriptions: Most URIs one client may follow.
        subscriptions: Most URIs all clients may follow together.
        listens: Most `subscriptions/listen` streams one client may hold open.
    """

    file_bytes: int = 1 << 20
    answer_bytes: int = 4 << 20
    parts: int = 200
    page: int = 2048
    completions: int = 100
    tree_files: int = 100_000
    tree_depth: int = 16
    session_subscriptions: int = 1000
    subscriptions: int = 10_000
    listens: int = 64


DEFAULT_LIMITS = Limits()


def estimate(characters: int) -> int:
    """Estimate the tokens of a string with this many characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)


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

UNKNOWN_TYPE = "application/octet-stream"
FOLDER_TYPE = "inode/directory"
_BY_EXTENSION = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "mdx": "text/markdown",
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "rst": "text/x-rst",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "xml": "application/xml",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "ndjson": "application/x-ndjson",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "ini": "text/plain",
    "cfg": "text/plain",
    "conf": "text/plain",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "jsx": "text/javascript",
    "py": "text/x-python",
    "pyi": "text/x-python",
    "sh": "text/x-shellscript",
    "bash": "text/x-shellscript",
    "zsh": "text/x-shellscript",
    "ps1": "text/plain",
    "rb": "text/x-ruby",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "java": "text/x-java",
    "kt": "text/x-kotlin",
    "c": "text/x-c",
    "h": "text/x-c",
    "cpp": "text/x-c++",
    "hpp": "text/x-c++",
    "cs": "text/x-csharp",
    "swift": "text/x-swift",
    "sql": "application/sql",
    "tex": "application/x-tex",
    "diff": "text/x-diff",
    "patch": "text/x-diff",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "ico": "image/vnd.microsoft.icon",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tar": "application/x-tar",
    "wasm": "application/wasm",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "ipynb": "application/x-ipynb+json",
    "parquet": "application/vnd.apache.parquet",
    "sqlite": "application/vnd.sqlite3",
}
_BY_NAME = {
    "license": "text/plain",
    "notice": "text/plain",
    "readme": "text/plain",
    "authors": "text/plain",
    "changelog": "text/plain",
    "copying": "text/plain",
    "makefile": "text/x-makefile",
    "dockerfile": "text/x-dockerfile",
}
_TEXTUAL = frozenset(
    {
        "application/json",
        "application/jsonl",
        "application/x-ndjson",
        "application/yaml",
        "application/toml",
        "application/xml",
        "application/sql",
        "application/x-tex",
        "application/x-ipynb+json",
        "image/svg+xml",
    }
)


def media_type(name: str) -> str:
    """Return the media type of a file.

    Args:
        name: A file name, or a path with `/` between its parts.

    Returns:
        The type of its extension, in any letter case; that of a few well-known names
        without one; otherwise `application/octet-stream`.
    """
    last = name.rpartition("/")[2].lower()
    stem, dot, extension = last.rpartition(".")
    if dot and stem:
        return _BY_EXTENSION.get(extension, UNKNOWN_TYPE)
    return _BY_NAME.get(last, UNKNOWN_TYPE)


def is_textual(mime_type: str) -> bool:
    """Return whether a media type is textual, so that search may read it."""
    return mime_type.startswith("text/") or mime_type in _TEXTUAL
