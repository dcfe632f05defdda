"""Wrapped tools: tools that are the same to a model and differ in what a call of them does."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from fast_agent.tools.tool import PreviewedTool, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.models.model import ToolSpec
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.file_change import FileChange
    from fast_agent.tools.tool import ToolContext, Toolset, ToolSource


class WrappedTool(Tool):
    """A tool around another; a kind subclasses it and writes `call`.

    Args:
        tool: The other tool.
    """

    __slots__ = ("_tool",)

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    @property
    def wrapped(self) -> Tool:
        """The other tool."""
        return self._tool

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return self._tool.spec

    @property
    def source(self) -> ToolSource:
        """Where it comes from."""
        return self._tool.source

    @property
    def server_name(self) -> str | None:
        """The MCP server it belongs to, or None."""
        return self._tool.server_name

    @property
    def repeatable(self) -> bool:
        """Whether it may be called again when a crash left its outcome unknown."""
        return self._tool.repeatable

    async def preview(self, arguments: JsonObject) -> FileChange | None:
        """Return what a call would change; see `PreviewedTool`."""
        tool = self._tool
        return await tool.preview(arguments) if isinstance(tool, PreviewedTool) else None

    @abstractmethod
    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call the other tool, in this kind's way."""
        ...


def innermost(tool: Tool) -> Tool:
    """Return a tool without what is wrapped around it."""
    while isinstance(tool, WrappedTool):
        tool = tool.wrapped
    return tool


class WrappedToolset:
    """A toolset around another, whose tools are wrapped when they change.

    Args:
        toolset: The other toolset.
        wrap: Wraps its tools.
    """

    def __init__(
        self, toolset: Toolset, wrap: Callable[[Sequence[Tool]], tuple[Tool, ...]]
    ) -> None:
        self._toolset = toolset
        self._wrap = wrap
        self._seen: Sequence[Tool] | None = None
        self._tools: tuple[Tool, ...] = ()

    async def tools(self) -> Sequence[Tool]:
        """Return the current tools; the same sequence while nothing changed."""
        now = await self._toolset.tools()
        if now is not self._seen:
            self._seen, self._tools = now, self._wrap(now)
        return self._tools
