"""The tools of one agent under one roof: looked up by name, duplicates made known, some wrapped.

The filters a card sets for a server hold when a tool is used as much as when it is listed.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import is_not
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import size_of_text
from fast_agent.text.frozen import frozen
from fast_agent.tools.tool import PreviewedTool, RuntimeTool, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import ToolCall
    from fast_agent.models.model import ToolSpec
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import FileChange, ToolContext, Toolset, ToolSource

DuplicateSink: TypeAlias = "Callable[[Tool, Tool], None]"
"""Called with the tool that keeps a name and the one that loses it."""


def _ignore(_kept: Tool, _lost: Tool) -> None:
    """Drop the report of a duplicate."""


class ToolTable(Mapping[str, "Tool"]):
    """Tools by name, in order; it does not change. The first tool of a name keeps it."""

    __slots__ = ("_size", "_tools", "specs")

    specs: tuple[ToolSpec, ...]
    """How the model sees them, in order."""

    def __init__(self, tools: Iterable[Tool] = (), on_duplicate: DuplicateSink = _ignore) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            kept = self._tools.setdefault(tool.spec.name, tool)
            if kept is not tool:
                on_duplicate(kept, tool)
        self.specs = tuple(tool.spec for tool in self._tools.values())
        self._size: int | None = None

    @property
    def size(self) -> int:
        """About how many tokens the descriptions of the tools take."""
        if self._size is None:
            self._size = size_of_tools(self.specs)
        return self._size

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def unknown(self, call: ToolCall) -> ToolResult:
        """Make the error result for a call whose tool is not here, with the names it may mean."""
        from difflib import get_close_matches

        close = get_close_matches(call.name, self._tools, n=3, cutoff=0.6)
        if close:
            rest = "did you mean " + " or ".join(f"`{name}`" for name in close) + "?"
        elif self._tools:
            rest = "available tools: " + ", ".join(f"`{name}`" for name in self._tools)
        else:
            rest = "there are no tools"
        text = f"unknown tool `{call.name}`; {rest}"
        return ToolResult(call.id, (TextContent(text),), is_error=True)


def size_of_tools(specs: Iterable[ToolSpec]) -> int:
    """Return about how many tokens the descriptions of tools take."""
    return sum(
        size_of_text(f"{one.name}{one.description}{json.dumps(one.input_schema, default=dict)}")
        for one in specs
    )


class Toolbox:
    """Merges fixed tools and toolsets into one table, rebuilt only when one of them changed.

    Args:
        tools: Tools that stay; they come first.
        toolsets: Sets whose tools may change, asked in order.
        on_duplicate: Called once for each tool that lost its name to an earlier one.
        reader: Makes the tool that reads the rest of shortened results, for a given caller.
    """

    def __init__(
        self,
        tools: Sequence[Tool] = (),
        toolsets: Sequence[Toolset] = (),
        on_duplicate: DuplicateSink = _ignore,
        reader: Callable[[], Iterable[Tool]] = tuple,
    ) -> None:
        self._reader = reader
        self._reading: tuple[ToolTable, ToolTable] | None = None
        self._fixed = tuple(tools)
        self._toolsets = tuple(toolsets)
        self._on_duplicate = on_duplicate
        self._reported: set[tuple[str, str, str | None]] = set()
        self._seen: list[Sequence[Tool]] = []
        self._table = ToolTable(self._fixed, self._report)

    async def table(self, *, reads_results: bool = False) -> ToolTable:
        """Return the tools now.

        Args:
            reads_results: Whether the one that reads shortened results is to be among them.

        Returns:
            The same table as before while every toolset returns the same sequence as before; a
            toolset whose tools changed returns a new one.
        """
        if self._toolsets:
            now = [await toolset.tools() for toolset in self._toolsets]
            if len(now) != len(self._seen) or any(map(is_not, now, self._seen)):
                tools = (*self._fixed, *(tool for tools in now for tool in tools))
                self._table = ToolTable(tools, self._report)
                self._seen = now
        table = self._table
        if not reads_results:
            return table
        if self._reading is None or self._reading[0] is not table:
            self._reading = table, ToolTable((*table.values(), *self._reader()))
        return self._reading[1]

    def _report(self, kept: Tool, lost: Tool) -> None:
        key = (lost.spec.name, lost.source, lost.server_name)
        if key not in self._reported:
            self._reported.add(key)
            self._on_duplicate(kept, lost)


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

    @property
    def asks_in_steps(self) -> bool:
        """Whether all a call does are steps of its own; see `Step`."""
        return asks_in_steps(self._tool)

    @abstractmethod
    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call the other tool, in this kind's way."""
        ...


def asks_in_steps(tool: Tool) -> bool:
    """Return whether all a call of a tool does are steps of its own; see `Step`."""
    if isinstance(tool, (RuntimeTool, WrappedTool)):
        return tool.asks_in_steps
    return tool.source == "agent"


def asks_first(tool: Tool) -> bool:
    """Return whether a call of a tool begins only after a question; see `Step`."""
    return asks_in_steps(tool) and not asks_in_steps(innermost(tool))


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


Patterns: TypeAlias = "Mapping[str, Sequence[str]] | None"
"""Patterns by server name. No mapping, or a server that is not in it: everything is allowed."""


def allows(patterns: Patterns, server: str, name: str) -> bool:
    """Return whether `name` of `server` passes.

    Args:
        patterns: `*`, `?` and `[...]` patterns by server, case-sensitive.
        server: The server's name.
        name: A tool's or prompt's name, or a resource's URI, as the server has it.

    Returns:
        True for a server without patterns; else whether one of them matches, so that an empty list
        allows nothing.
    """
    if patterns is None or server not in patterns:
        return True
    return any(fnmatchcase(name, pattern) for pattern in patterns[server])


@frozen(kw_only=True)
class ServerFilter:
    """The three filters of one agent.

    Args:
        tools: Patterns of tool names by server.
        resources: Patterns of resource URIs by server.
        prompts: Patterns of prompt names by server.
    """

    tools: Patterns = None
    resources: Patterns = None
    prompts: Patterns = None

    @classmethod
    def of(cls, config: AgentConfig) -> ServerFilter:
        """Take the filters of a card."""
        return cls(tools=config.tools, resources=config.resources, prompts=config.prompts)

    def allows_tool(self, server: str, name: str) -> bool:
        """Return whether the tool may be listed and called."""
        return allows(self.tools, server, name)

    def allows_resource(self, server: str, uri: str) -> bool:
        """Return whether the resource may be listed and read."""
        return allows(self.resources, server, uri)

    def allows_prompt(self, server: str, name: str) -> bool:
        """Return whether the prompt may be listed and used."""
        return allows(self.prompts, server, name)
