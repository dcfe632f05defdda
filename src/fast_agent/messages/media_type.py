"""Media types by the ending of a file's name; never guessed from its content."""

from __future__ import annotations

_BY_ENDING = {
    ".csv": "text/csv",
    ".css": "text/css",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def media_type_of(name: str) -> str | None:
    """Give the media type a file's name stands for.

    Args:
        name: A file name or path.

    Returns:
        The media type; None for an ending that is not in the table.
    """
    stem, dot, ending = name.rpartition(".")
    return _BY_ENDING.get(f".{ending.lower()}") if dot and stem else None
