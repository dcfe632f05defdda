"""Offered tools: everything an instance can call, with hooks around each.

The MCP servers of a card are opened together when a turn first needs them. A runtime without
servers has a `NullPool`, which imports nothing of the protocol.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING, Final, Self, cast

from fast_agent.errors import RunError, ToolError
from fast_agent.messages.history import RESULTS, text_of_result
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message, TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.prompt.instruction import ServerInstructions
from fast_agent.steps.steps import Codec, Step, here
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.tools.result import said
from fast_agent.tools.tool import RuntimeTool, ToolArguments, object_schema
from fast_agent.tools.toolbox import ServerFilter, Toolbox, WrappedToolset

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Never

    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.pool import ServerPool
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.mcp.skills import ServerSkills
    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.tools.hooks import Hook
    from fast_agent.tools.permission import PermissionRules
    from fast_agent.tools.skills.gate import SkillGate
    from fast_agent.tools.tool import Tool, ToolContext, Toolset
    from fast_agent.tools.toolbox import ToolTable


class AgentServers:
    """The servers of a card; instances share them.

    Args:
        config: The card. What it connects to itself is added to the pool.
        pool: All servers; None where no card has any.
        directory: Where relative commands of the card start.
        gate: Returns what asks before a tool is called beside an unapproved skill, or None.
        meanwhile: Called while the servers start up.

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
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self._config = config
        self._meanwhile = meanwhile
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

            await need(self._connections, self._config.name, self._meanwhile)
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

log = getLogger(__name__)


READ_RESULT: Final = "read_result"
"""The tool that reads more of a shortened result."""
PIECE: Final = 8_000
"""Characters of one read, unless it says otherwise."""
_MAX_READ_CHARACTERS = 30_000
_HITS = 20
_AROUND = 200
_SPEC = ToolSpec(
    READ_RESULT,
    "Read more of a tool result of this conversation that was shortened: a piece of it, or the"
    " places where some text occurs in it.",
    object_schema(
        uri=("string", f"the result, as its note names it: `{RESULTS}ID`"),
        offset=("integer", "the first character to read, from 0"),
        max_chars=(
            "integer",
            f"most characters to read, {PIECE} unless given, {_MAX_READ_CHARACTERS} at most",
        ),
        find=("string", "text to search for, in any case; returns where it occurs"),
        required=("uri",),
    ),
)


class OfferedTools:
    """The tools of an instance; its servers are opened before they are asked.

    Args:
        agent: The agent's name, for messages.
        tools: Tools that stay.
        servers: The servers whose tools come after those.
        hooks: Hooks around every call, the outermost first.
        skills: The tools for skills, which come last.
        asking: Which calls need permission, with the arguments hooks leave; None where none does.
    """

    def __init__(
        self,
        agent: str,
        tools: Iterable[Tool],
        servers: AgentServers,
        hooks: Sequence[Hook],
        skills: Toolset | None = None,
        asking: PermissionRules | None = None,
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
        return hooked((ReadResult(),), self._hooks)

    def _report(self, kept: Tool, lost: Tool) -> None:
        log.warning(
            "agent `%s` has two tools `%s`; the one of source `%s` is left out",
            self._agent,
            kept.spec.name,
            lost.server_name or lost.source,
        )


def hooked(tools: Iterable[Tool], hooks: Sequence[Hook]) -> tuple[Tool, ...]:
    """Wrap each tool in its hooks; tools without hooks stay as they are."""
    if not hooks:
        return tuple(tools)
    from fast_agent.tools.hooks import HookedTool

    return tuple([HookedTool(tool, hooks) for tool in tools])


class ReadResult(RuntimeTool):
    """The tool; what it reads is in the history of the conversation that calls it."""

    __slots__ = ()

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return _SPEC

    @property
    def repeatable(self) -> bool:
        """Always True: it only reads."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer a call; what cannot be read is an error result that says what to try."""
        from fast_agent.agents.tool_calls import TurnCallContext

        if not isinstance(context, TurnCallContext):
            return ToolResult.error(call.id, "there is no conversation to read results of")
        try:
            arguments = ToolArguments(_SPEC, call.arguments)
            return ToolResult(call.id, (TextContent(_read(arguments, context.child_calls.before)),))
        except ToolError as problem:
            return ToolResult.error(call.id, said(problem))


def _read(arguments: ToolArguments, conversation: Transcript) -> str:
    call_id = arguments.required_text("uri").strip().removeprefix(RESULTS)
    result = conversation.result(call_id)
    if result is None:
        known = (one.id for message in conversation.history for one in message.tool_results)
        near = closest(call_id, tuple(known))
        hint = f"did you mean `{RESULTS}{near}`?" if near else None
        msg = f"there is no result `{RESULTS}{call_id}` in this conversation"
        raise ToolError(msg, hint=hint)
    text = text_of_result(result)
    wanted = arguments.text("find")
    if wanted:
        return _places(text, wanted)
    offset = arguments.whole("offset", 0)
    most = min(arguments.whole("max_chars", PIECE, least=1), _MAX_READ_CHARACTERS)
    piece = text[offset : offset + most]
    end = offset + len(piece)
    if offset >= len(text):
        return f"[there is nothing at character {offset:,}: the result has {len(text):,}]"
    rest = f"; continue with `offset` {end}" if end < len(text) else ""
    return f"{piece}\n[characters {offset:,} to {end:,} of {len(text):,}{rest}]"


def _places(text: str, wanted: str) -> str:
    """Show where a string occurs, with its surroundings."""
    places = list(_found(text, wanted))
    if not places:
        return f"[`{wanted}` is not in the result, which has {len(text):,} characters]"
    shown = [
        f"[character {at}]\n{text[max(0, at - _AROUND) : at + len(wanted) + _AROUND]}"
        for at in places[:_HITS]
    ]
    if len(places) > _HITS:
        shown.append(f"[and {len(places) - _HITS:,} other places; search for a longer text]")
    return "\n\n".join(shown)


def _found(text: str, wanted: str) -> Iterator[int]:
    import re

    last = -_AROUND
    for match in re.finditer(re.escape(wanted), text, re.IGNORECASE):
        if match.start() >= last + _AROUND:  # places side by side are shown once
            last = match.start()
            yield last


class NullPool:
    """A pool that has no server; see `ServerPool`."""

    __slots__ = ()
    clock = staticmethod(monotonic)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        pass

    def add(self, spec: ServerSpec, *, derived: bool = False, agent: str | None = None) -> str:
        """Return the server's name; there is no connection of that name."""
        del derived, agent
        return spec.name

    def renew(self, specs: Iterable[ServerSpec]) -> None:
        """Keep no server."""

    def change(self, agents: Collection[str]) -> Callable[[], None]:
        """Return a function that takes nothing back."""
        del agents
        return _nothing

    def forget_unused(self) -> None:
        """Keep no server."""

    def close_retired(self) -> None:
        """Close nothing."""

    def load_on_start(self) -> None:
        """Connect to nothing."""

    def start_soon(self, act: Callable[[], Coroutine[object, object, object]]) -> None:
        """Start nothing: what waits for agents to end does so when the runtime ends."""

    def connection(self, name: str) -> Never:
        """Refuse: there is no server.

        Raises:
            ToolError: Always.
        """
        raise ToolError(
            f"there is no MCP server `{name}`",
            hint="declare it under `mcp.servers` in the configuration",
        )

    def connections(self, names: Iterable[str]) -> tuple[()]:
        """Return no connection."""
        del names
        return ()

    def toolset(self, name: str, allowed: ServerFilter, has_skills: object = None) -> Never:
        """Refuse; see `connection`."""
        del allowed, has_skills
        self.connection(name)

    def resources(self, name: str, allowed: ServerFilter) -> Never:
        """Refuse; see `connection`."""
        del allowed
        self.connection(name)

    def prompts(self, name: str, allowed: ServerFilter) -> Never:
        """Refuse; see `connection`."""
        del allowed
        self.connection(name)

    async def open(self, names: Sequence[str]) -> tuple[()]:
        """Open nothing."""
        del names
        return ()

    def reports(self) -> tuple[()]:
        """Return no report."""
        return ()


def _nothing() -> None:
    pass
