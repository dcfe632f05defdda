"""Notes on requests: what the server wrote into the ASGI scope of one before it was handed on."""

from __future__ import annotations

from typing import cast


def note_of(request: object, key: str) -> object:
    """Give a note; None where there is none, or where the request came by no HTTP.

    Args:
        request: What the SDK hands on.
        key: What the note is called.
    """
    scope: object = getattr(request, "scope", None)
    return cast("dict[str, object]", scope).get(key) if isinstance(scope, dict) else None
