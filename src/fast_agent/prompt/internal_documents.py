"""What instructions say of the packaged documents: an index of them, or one whole."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fast_agent.prompt.prompt_block import escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.resources.internal.provider import InternalDocument, InternalProvider


def resources_block(documents: Iterable[InternalDocument]) -> str:
    """Write an index of documents: URI, what it holds, why to read it, and its size in tokens.

    Args:
        documents: What to list, in order.

    Returns:
        The block; empty for none.
    """
    entries = [
        f"<resource>\n<uri>{escaped(one.uri.text)}</uri>\n"
        f"<description>{escaped(one.description)}</description>\n"
        f"<why>{escaped(one.why)}</why>\n<tokens>{one.tokens}</tokens>\n</resource>"
        for one in documents
    ]
    if not entries:
        return ""
    return "\n".join(["<available_resources>", *entries, "</available_resources>"])


@cache
def internal_index() -> str:
    """Write the index of the packaged documents; single skills are left to the list of skills.

    Raises:
        ResourceError: They are missing from this installation.
    """
    return resources_block(_provider().index)


@cache
def internal_text(document_id: str) -> str:
    """Read a packaged document.

    Args:
        document_id: What stands in `{{internal:ID}}`.

    Raises:
        ResourceError: There is none; the hint names the closest.
    """
    provider = _provider()
    return provider.text_of(provider.find(document_id))


@cache
def _provider() -> InternalProvider:
    # Imported when a card speaks of it, so that other cards do not wait for it.
    from fast_agent.resources.internal.provider import InternalProvider

    return InternalProvider()
