"""The tools of one server as one agent may use them."""

from __future__ import annotations

import logging
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError
from fast_agent.mcp.content import error_result, tool_result
from fast_agent.mcp.untrusted import NAME_LIMIT, one_line
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import closest
from fast_agent.tools.tool_name import server_tool_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client import Client
    from mcp.types import CallToolResult, RequestParamsMeta

    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.listed import ListedTool
    from fast_agent.mcp.open_calls import OpenCall
    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.tools.filter import ServerFilter
    from fast_agent.tools.tool import ToolContext, ToolSource

_log = logging.getLogger(__name__)

KEY_META: Final = "idempotencyKey"
"""The field of a call's `_meta` that is the same when the call is made again after a crash."""

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_VERBS: Final = (
    "(?:load|read|get|use|activate|open|view|show|invoke|fetch|run|execute|list|search|find)"
)
_FILES: Final = "(?:_(?:file|files|resource|resources|content|contents|instructions|md))?"
_SKILL_TOOL: Final = re.compile(f"(?:{_VERBS}_)?skills?{_FILES}|skills?_{_VERBS}{_FILES}")


def is_skill_tool(name: str) -> bool:
    """Whether a server's tool returns the text of its skills, by its name, such as `load_skill`."""
    return _SKILL_TOOL.fullmatch(_WORD_START.sub("_", name).strip("_").lower()) is not None


@frozen
class McpTool:
    """A tool of a server.

    Args:
        spec: How the model sees it.
        listed: How its server lists it.
        toolset: Where it belongs.
    """

    spec: ToolSpec
    listed: ListedTool
    toolset: McpToolset

    @property
    def source(self) -> ToolSource:
        """Where it comes from."""
        return "mcp"

    @property
    def server_name(self) -> str:
        """The server it belongs to."""
        return self.toolset.server_name

    @property
    def repeatable(self) -> bool:
        """Whether its server says that calling it again changes nothing more."""
        return self.listed.read_only or self.listed.idempotent

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call it at its server."""
        return await self.toolset.call_tool(
            self.listed.name, call, context, repeatable=self.repeatable
        )


class McpToolset:
    """The tools of one server, filtered for one agent.

    Args:
        connection: The server, shared with other agents.
        allowed: The agent's filters. They hold when a tool is called as much as when it is listed.
        has_skills: Says whether the agent loads skills of the server through the gate; then the
            server's own tools for skills, which would go around it, are left out. None if it
            never does.
    """

    def __init__(
        self,
        connection: Connection,
        allowed: ServerFilter,
        has_skills: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._connection = connection
        self._allowed = allowed
        self._has_skills = has_skills
        self._listed: tuple[ListedTool, ...] | None = None
        self._tools: tuple[McpTool, ...] = ()
        self._tools_without_skills: tuple[McpTool, ...] = ()

    @property
    def server_name(self) -> str:
        """The server's name."""
        return self._connection.name

    async def tools(self) -> tuple[McpTool, ...]:
        """Return the tools the agent may use; the same tuple while nothing changed.

        Raises:
            ToolError: The server cannot be reached, or its list is not usable.
        """
        listed = await self._connection.catalog.tools()
        if listed is not self._listed:
            self._tools = tuple(self._usable(listed))
            self._warn_of_idle_patterns(listed)
            kept = tuple([tool for tool in self._tools if not is_skill_tool(tool.listed.name)])
            self._tools_without_skills = self._tools if len(kept) == len(self._tools) else kept
            self._listed = listed
        if self._tools_without_skills is self._tools or self._has_skills is None:
            return self._tools
        return self._tools_without_skills if await self._has_skills() else self._tools

    async def call_tool(
        self, name: str, call: ToolCall, context: ToolContext, *, repeatable: bool = False
    ) -> ToolResult:
        """Call a tool by its name on the server.

        Args:
            name: The tool's name at the server.
            call: The call: its id and arguments.
            context: What the call serves.
            repeatable: Send it again when the connection is lost before the answer.

        Returns:
            What the server answered; an error result for what went wrong, and for a tool the
            agent's filters do not allow.
        """
        if not self._allowed.allows_tool(self.server_name, name):
            return error_result(
                call.id,
                f"the tool `{one_line(name, NAME_LIMIT)}` of server `{self.server_name}` "
                f"is not open to agent `{context.agent_name}`",
            )

        meta: RequestParamsMeta = {KEY_META: context.idempotency_key}

        async def send(client: Client, open_call: OpenCall) -> CallToolResult:
            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                open_call.renew()
                context.progress(progress, total, one_line(message) if message else None)

            return await client.call_tool(
                name, dict(call.arguments), progress_callback=progressed, meta=meta
            )

        try:
            result = await self._connection.request(
                "tools/call",
                send,
                repeatable=repeatable,
                agent_name=context.agent_name,
                human=context.human,
            )
            return tool_result(call.id, result, self._connection.spec.result_limit)
        except ToolError as problem:
            said = (
                problem.message if problem.hint is None else f"{problem.message} ({problem.hint})"
            )
            return error_result(call.id, said)

    def _warn_of_idle_patterns(self, listed: tuple[ListedTool, ...]) -> None:
        """Warn of each pattern of the card that matches no tool: often it is misspelt."""
        names = [tool.name for tool in listed]
        for pattern in (self._allowed.tools or {}).get(self.server_name, ()):
            if any(fnmatchcase(name, pattern) for name in names):
                continue
            near = closest(pattern, names)
            rest = f"; did you mean `{one_line(near, NAME_LIMIT)}`?" if near else ""
            _log.warning(
                "server `%s`: `%s` under `tools` of the card matches none of its %d tools%s",
                self.server_name,
                one_line(pattern, NAME_LIMIT),
                len(names),
                rest,
            )

    def _usable(self, listed: tuple[ListedTool, ...]) -> list[McpTool]:
        tools: list[McpTool] = []
        seen: set[str] = set()
        for tool in listed:
            if not self._allowed.allows_tool(self.server_name, tool.name):
                continue
            problem = _problem(tool, seen)
            if problem is not None:
                _log.warning(
                    "server `%s`: the tool `%s` is left out: %s",
                    self.server_name,
                    one_line(tool.name, NAME_LIMIT),
                    problem,
                )
                continue
            seen.add(tool.name)
            tools.append(McpTool(self._spec(tool), tool, self))
        return tools

    def _spec(self, tool: ListedTool) -> ToolSpec:
        return ToolSpec(
            name=server_tool_name(self.server_name, tool.name),
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            title=tool.title,
        )


def _problem(tool: ListedTool, seen: set[str]) -> str | None:
    if not tool.name:
        return "it has no name"
    if tool.name in seen:
        return "the server lists its name twice"
    return None
