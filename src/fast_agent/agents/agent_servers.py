"""Agent servers: the MCP servers of one card, opened together when a turn first needs them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from fast_agent.errors import RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message
from fast_agent.prompt.prompt_block import ServerInstructions
from fast_agent.steps.steps import Codec, Step, here
from fast_agent.text.suggestion import closest, did_you_mean
from fast_agent.tools.filter import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.null_pool import NullPool
    from fast_agent.mcp.pool import ServerPool
    from fast_agent.mcp.skills import ServerSkills
    from fast_agent.messages.content import Content
    from fast_agent.tools.skills.gate import SkillGate
    from fast_agent.tools.tool import Toolset


class AgentServers:
    """The servers of a card; instances share them.

    Args:
        config: The card. What it connects to itself is added to the pool.
        pool: All servers; None where no card has any.
        directory: Where relative commands of the card start.
        gate: Returns what asks before a tool is called beside an unapproved skill, or None.

    Raises:
        ToolError: A server is not known, or its name is taken by another.
        ConfigError: What the card connects to is neither an address nor a command.
    """

    def __init__(
        self,
        config: AgentConfig,
        pool: ServerPool | NullPool,
        directory: Path,
        gate: Callable[[], SkillGate] | None = None,
    ) -> None:
        self._config = config
        self._gate = gate
        self._allowed = ServerFilter.of(config)
        self._pool = pool
        # Held, not looked up again: after a reload, other servers may have the names.
        self._connections: tuple[Connection, ...] = pool.connections(
            _names(config, pool, directory)
        )
        self.names = tuple([connection.name for connection in self._connections])
        self.toolsets: tuple[Toolset, ...] = tuple(
            [self._toolset(name, pool) for name in self.names]
        )
        self._texts: dict[str, str] = {}
        self._asked = f"servers of {config.name}"
        self._skills: tuple[ServerSkills, ...] | None = None
        self._open = False

    async def open(self) -> None:
        """Open those that are not open yet.

        Raises:
            ToolError: One of them cannot be used; the next turn tries again.
        """
        if not self._connections:
            return
        place = here()
        if place.silent:
            await self._open_live()
            return
        answers = place.steps.places.answers
        if self._asked not in answers:
            # Whichever turn opens them first, a replay asks at the same place.
            with place.steps.places.outside():
                step = Step("read", self._asked)
                answers[self._asked] = await place.steps.ask(step, self._open_live, _TEXTS)

    async def _open_live(self) -> dict[str, str]:
        """Open the servers themselves, and return what each says about its use."""
        if not self._open:
            from fast_agent.mcp.pool import instructions, need

            await need(self._connections, self._config.name)
            self._texts = await instructions(self._connections)
            self._open = True
        return self._texts

    def instructions(self) -> tuple[ServerInstructions, ...]:
        """Return what the servers say about their use; nothing before they are open."""
        place = here()
        texts = self._texts
        if not place.silent:
            texts = cast("dict[str, str]", place.steps.places.answers.get(self._asked, {}))
        return tuple([ServerInstructions(*item) for item in texts.items()])

    def skills(self) -> tuple[ServerSkills, ...]:
        """Return the skills of each server, the same at every call; none is listed yet."""
        if self._skills is None:
            self._skills = ()
            if self._connections:
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
            ToolError: The card's filter does not allow it, or the server does not have it.
        """
        name = self._config.name
        if server not in self.names:
            close = closest(server, self.names)
            hint = did_you_mean(close, "list it under `servers`")
            raise RunError(f"agent `{name}` has no server `{server}`", hint=hint)
        from fast_agent.mcp.offers import ServerResources

        connection = self._connections[self.names.index(server)]
        resources = ServerResources(connection, self._allowed)
        read = partial(resources.read, uri, agent_name=name)
        place = here()
        if place.silent:
            return await read()
        return await place.steps.ask(Step("read", f"{server} {uri}"), read, _CONTENTS)

    def _toolset(self, server: str, pool: ServerPool | NullPool) -> Toolset:
        async def has_skills() -> bool:
            return await self.skills()[self.names.index(server)].has_any()

        toolset: Toolset = pool.toolset(server, self._allowed, has_skills)
        if self._gate is not None:
            from fast_agent.tools.skills.gate import gated_toolset

            toolset = gated_toolset(toolset, self._gate)
        from fast_agent.agents.step_tools import StepToolset

        return StepToolset(f"tools of {server}", toolset, self._open_live)


def _names(config: AgentConfig, pool: ServerPool | NullPool, directory: Path) -> tuple[str, ...]:
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


_TEXTS: Final[Codec[dict[str, str]]] = Codec(dict, lambda value: cast("dict[str, str]", value))
_CONTENTS: Final[Codec[tuple[Content, ...]]] = Codec(
    lambda blocks: message_to_wire(Message("user", blocks)),
    lambda value: message_from_wire(value).content,
)
