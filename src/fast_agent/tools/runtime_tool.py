"""RuntimeTool: a tool the runtime itself brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.tools.tool import ToolSource


class RuntimeTool:
    """What tools of the runtime have in common: they belong to no server."""

    __slots__ = ()

    @property
    def source(self) -> ToolSource:
        """Always `runtime`."""
        return "runtime"

    @property
    def server_name(self) -> str | None:
        """Always None."""
        return None
