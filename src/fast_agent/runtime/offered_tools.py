"""Offered tools: everything an instance can call, with hooks around each."""

from __future__ import annotations

from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING

from fast_agent.tools.toolbox import Toolbox
from fast_agent.tools.wrapped_tool import WrappedToolset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.models.tape import Tape
    from fast_agent.runtime.agent_servers import AgentServers
    from fast_agent.tools.hooks import Hook
    from fast_agent.tools.permission import Asking
    from fast_agent.tools.tool import Tool, Toolset
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)


class OfferedTools:
    """The tools of an instance; its servers are opened before they are asked.

    Args:
        agent: The agent's name, for messages.
        tools: Tools that stay.
        servers: The servers whose tools come after those.
        hooks: Hooks around every call, the outermost first.
        skills: The tools for skills, which come last.
        tape: What calls go through while a run is recorded or replayed, or None.
        asking: Which calls need permission, with the arguments hooks leave; None where none does.
    """

    def __init__(
        self,
        agent: str,
        tools: Iterable[Tool],
        servers: AgentServers,
        hooks: Sequence[Hook],
        skills: Toolset | None = None,
        tape: Tape | None = None,
        asking: Asking | None = None,
    ) -> None:
        self._agent = agent
        self._servers = servers
        toolsets: Iterable[Toolset] = servers.toolsets
        if skills is not None:
            toolsets = (*servers.toolsets, skills)
        if asking is not None:
            tools = asking.over(tools)
            toolsets = [WrappedToolset(toolset, asking.over) for toolset in toolsets]
        if hooks:
            toolsets = [
                WrappedToolset(toolset, partial(hooked, hooks=hooks)) for toolset in toolsets
            ]
        fixed = hooked(tools, hooks)
        if tape is not None:
            from fast_agent.runtime.taped_tools import taped

            fixed = taped(fixed, tape)
            toolsets = [WrappedToolset(toolset, partial(taped, tape=tape)) for toolset in toolsets]
        self._hooks = hooks
        self._toolbox = Toolbox(fixed, tuple(toolsets), self._report, self._reader)

    async def table(self, *, reads_results: bool = False) -> ToolTable:
        """Return the tools now.

        Args:
            reads_results: Whether `read_result` is to be among them, since the model was given only
                a part of some result.

        Raises:
            ToolError: A server of the agent cannot be used.
        """
        await self._servers.open()
        return await self._toolbox.table(reads_results=reads_results)

    def _reader(self) -> Iterable[Tool]:
        from fast_agent.runtime.read_result import ReadResult

        return hooked((ReadResult(),), self._hooks)

    def _report(self, kept: Tool, lost: Tool) -> None:
        log.warning(
            "agent `%s` has two tools `%s`; the one of source `%s` is left out",
            self._agent,
            kept.spec.name,
            lost.server_name or lost.source,
        )


def hooked(tools: Iterable[Tool], hooks: Sequence[Hook]) -> tuple[Tool, ...]:
    """Put hooks around each tool; the tools as they are where there is no hook."""
    if not hooks:
        return tuple(tools)
    from fast_agent.tools.hooks import HookedTool

    return tuple([HookedTool(tool, hooks) for tool in tools])
