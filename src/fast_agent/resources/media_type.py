"""Media types by file name, from a fixed table; content is never read."""

from __future__ import annotations

UNKNOWN = "application/octet-stream"
FOLDER = "inode/directory"

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
        return _BY_EXTENSION.get(extension, UNKNOWN)
    return _BY_NAME.get(last, UNKNOWN)


def is_textual(mime_type: str) -> bool:
    """Return whether a media type is textual, so that search may read it."""
    return mime_type.startswith("text/") or mime_type in _TEXTUAL
