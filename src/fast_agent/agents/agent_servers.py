"""Agent servers: the MCP servers of one card, opened together when a turn first needs them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.prompt.prompt_block import ServerInstructions
from fast_agent.text.suggestion import closest, did_you_mean
from fast_agent.tools.filter import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.pool import ServerPool
    from fast_agent.mcp.skills import ServerSkills
    from fast_agent.messages.content import Content
    from fast_agent.models.tape import Tape
    from fast_agent.tools.skill_gate import SkillGate
    from fast_agent.tools.tool import Toolset


class AgentServers:
    """The servers of a card; instances share them.

    Args:
        config: The card. What it connects to itself is added to the pool.
        pool: All servers; None where no card has any.
        directory: Where relative commands of the card start.
        tape: What is asked of servers while a run is recorded or replayed, or None.
        gate: Gives what asks before a tool is called beside a skill nobody approved, or None.

    Raises:
        ToolError: A server is not known, or its name is taken by another.
        ConfigError: What the card connects to is no address and no command.
    """

    def __init__(
        self,
        config: AgentConfig,
        pool: ServerPool | None,
        directory: Path,
        tape: Tape | None = None,
        gate: Callable[[], SkillGate] | None = None,
    ) -> None:
        self._config = config
        self._tape = tape
        self._gate = gate
        self._allowed = ServerFilter.of(config)
        self.names: tuple[str, ...] = ()
        self.toolsets: tuple[Toolset, ...] = ()
        # Held, not looked up again: after a reload, other servers may have the names.
        self._connections: tuple[Connection, ...] = ()
        self._pool = pool
        if pool is not None:
            self.names = _names(config, pool, directory)
            self._connections = pool.connections(self.names)
            self.toolsets = tuple([self._toolset(name, pool) for name in self.names])
        self._instructions: tuple[ServerInstructions, ...] = ()
        self._skills: tuple[ServerSkills, ...] | None = None
        self._open = False

    async def open(self) -> None:
        """Open those that are not open yet.

        Raises:
            ToolError: One of them cannot be used; the next turn tries again.
        """
        if self._open or not self._connections:
            return

        async def look() -> dict[str, str]:
            from fast_agent.mcp.pool import instructions, need

            await need(self._connections, self._config.name)
            return await instructions(self._connections)

        if self._tape is None:
            texts = await look()
        else:
            from fast_agent.agents.tape import ask_instructions

            texts = await ask_instructions(self._config.name, look, self._tape)
        self._instructions = tuple([ServerInstructions(*item) for item in texts.items()])
        self._open = True

    def instructions(self) -> tuple[ServerInstructions, ...]:
        """Give what the servers say about their use; nothing before they are open."""
        return self._instructions

    def skills(self) -> tuple[ServerSkills, ...]:
        """Give the skills of each server, the same at every call; none is listed yet."""
        if self._skills is None:
            self._skills = ()
            if self._pool is not None:
                from fast_agent.mcp.skills import ServerSkills

                allowed, clock = self._allowed, self._pool.clock
                self._skills = tuple(
                    [ServerSkills(one, allowed, clock) for one in self._connections]
                )
        return self._skills

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of the servers.

        Raises:
            RunError: The card does not have the server.
            ToolError: The card's filter does not allow it, or the server does not give it.
        """
        name = self._config.name
        if server not in self.names:
            close = closest(server, self.names)
            hint = did_you_mean(close, "list it under `servers`")
            raise RunError(f"agent `{name}` has no server `{server}`", hint=hint)
        from fast_agent.mcp.offers import ServerResources

        connection = self._connections[self.names.index(server)]
        resources = ServerResources(connection, self._allowed)
        if self._tape is None:
            return await resources.read(uri, agent_name=name)
        from fast_agent.agents.tape import ask_contents

        read = partial(resources.read, uri, agent_name=name)
        return await ask_contents(f"{server} {uri}", read, self._tape)

    def _toolset(self, server: str, pool: ServerPool) -> Toolset:
        async def has_skills() -> bool:
            return await self.skills()[self.names.index(server)].has_any()

        toolset: Toolset = pool.toolset(server, self._allowed, has_skills)
        if self._gate is not None:
            from fast_agent.tools.skill_gate import gated_toolset

            toolset = gated_toolset(toolset, self._gate)
        if self._tape is None:
            return toolset
        from fast_agent.agents.taped_tools import TapedToolset

        return TapedToolset(f"tools of {server}", toolset, self._tape)


def _names(config: AgentConfig, pool: ServerPool, directory: Path) -> tuple[str, ...]:
    """Name the servers of a card; what it connects to itself is added to the pool."""
    if not config.mcp_connect:
        return tuple(dict.fromkeys(config.servers))
    from fast_agent.mcp.server import from_connect

    own = [
        pool.add(
            replace(
                from_connect(connect, directory=directory),
                grant=config.grant,
                brought_by=("card", config.name),
            ),
            derived=connect.name is None,
            agent=config.name,
        )
        for connect in config.mcp_connect
    ]
    return tuple(dict.fromkeys((*config.servers, *own)))
