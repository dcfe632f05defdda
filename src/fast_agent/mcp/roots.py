"""Roots: the directories and files a server is told it may work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.types import ListRootsResult

    from fast_agent.mcp.server import Root


def answer_roots(roots: Sequence[Root]) -> ListRootsResult:
    """Serve one `roots/list`."""
    from mcp.types import ListRootsResult

    return ListRootsResult.model_validate(
        {
            "roots": [
                {"uri": root.uri, **({"name": root.name} if root.name else {})} for root in roots
            ]
        }
    )
