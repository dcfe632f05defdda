"""What the project's own entries in `_meta` are called, whatever scheme a resource is of."""

from __future__ import annotations

from typing import Final

WHY: Final = "fast-agent/why"
"""When to read it, in a sentence."""

KIND: Final = "fast-agent/type"
"""What sort of document it says it is."""

TAGS: Final = "fast-agent/tags"
"""Its tags, a list."""

TOKENS: Final = "fast-agent/tokens"
"""About how many tokens its text takes."""
