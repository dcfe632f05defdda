"""The servers of an app: opened when they are needed, shared by its agents, closed together."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import anyio

from fast_agent.errors import FastAgentError, ToolError
from fast_agent.mcp.client_side import ClientSide
from fast_agent.mcp.connection import Connection
from fast_agent.mcp.content import NAME_LIMIT, one_line, tool_result
from fast_agent.mcp.offers import ServerPrompts, ServerResources
from fast_agent.mcp.server import unique_name
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest
from fast_agent.tools.tool import server_tool_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
    from types import TracebackType

    from anyio.abc import TaskGroup
    from mcp.client import Client
    from mcp.types import CallToolResult, RequestParamsMeta

    from fast_agent.mcp.connection import RunSession, State
    from fast_agent.mcp.listing import ListedTool, ToolSizes
    from fast_agent.mcp.live_session import LiveSession
    from fast_agent.mcp.open_calls import OpenCall
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.messages.message import ToolCall
    from fast_agent.tools.tool import ToolContext, ToolSource
    from fast_agent.tools.toolbox import ServerFilter

_log = logging.getLogger(__name__)

NO_AGENTS: Final[frozenset[str]] = frozenset()


@frozen
class ServerReport:
    """How one server stands, for people.

    Args:
        name: The server.
        state: `unused`, `connected`, `failed`, `lost` or `closed`.
        reason: Why it failed, or None.
        hint: What to do about it, or None.
    """

    name: str
    state: State
    reason: str | None = None
    hint: str | None = None


class ServerPool:
    """The servers of an app, used as `async with ServerPool(specs) as pool:`.

    Nothing is connected, and the SDK is not imported, before an agent needs a server.

    Args:
        specs: The servers known at the start; names differ.
        offered: What this client does for servers.
        clock: Seconds that never go back.
        sizes: Records how long the tools of servers are; None records nothing.

    Attributes:
        clock: The same.
    """

    def __init__(
        self,
        specs: Iterable[ServerSpec] = (),
        *,
        offered: ClientSide | None = None,
        clock: Callable[[], float] = time.monotonic,
        sizes: ToolSizes | None = None,
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._offered = offered or ClientSide()
        self.clock = clock
        self._sizes = sizes
        self._connections: dict[str, Connection] = {}
        self._claims: dict[str, frozenset[str]] = {}
        """The agents that brought a server; one that is not here belongs to the whole app."""
        self._retired: list[Connection] = []
        self._ending: list[Connection] = []
        self._tasks: TaskGroup | None = None
        self._closing = anyio.Event()
        self._host: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        # A task group has to be left in the task that entered it, but an app may be opened in one
        # task and closed in another, as by the cells of a notebook: this group has its own.
        opened = anyio.Event()
        self._host = asyncio.create_task(self._hold(opened), name="fast-agent servers")
        try:
            await opened.wait()
        except BaseException:
            self._host.cancel()
            raise
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self.aclose()
            finally:
                self._closing.set()
                if self._host is not None:
                    await self._host

    async def _hold(self, opened: anyio.Event) -> None:
        """Keep the task group until the pool closes."""
        async with anyio.create_task_group() as self._tasks:
            opened.set()
            await self._closing.wait()
            self._tasks.cancel_scope.cancel()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all servers, in the order they were added."""
        return tuple(self._specs)

    def add(self, spec: ServerSpec, *, derived: bool = False, agent: str | None = None) -> str:
        """Add a server while the pool lives.

        Args:
            spec: The server. One that is there already under its name is shared.
            derived: Its name was derived, so another may be found when it is taken.
            agent: The agent that brings it, for as long as it does; None brings it for good.

        Returns:
            The name it has in the pool.

        Raises:
            ToolError: A different server has the name.
        """
        for known in self._specs.values():
            if (derived or known.name == spec.name) and _is_same_target(known, spec):
                return self._claim(known.name, agent)
        name = spec.name
        if self._claims.get(name) == NO_AGENTS:
            self._forget(name)
        if name in self._specs:
            if not derived:
                raise ToolError(
                    f"there are two different servers named `{name}`: "
                    f"`{self._specs[name].target}` and `{spec.target}`",
                    hint="rename one of them",
                )
            name = unique_name(name, self._specs)
        self._specs[name] = spec if name == spec.name else _renamed(spec, name)
        if agent is not None:
            self._claims[name] = NO_AGENTS
        return self._claim(name, agent)

    def renew(self, specs: Iterable[ServerSpec]) -> None:
        """Take the servers of another configuration; connections to changed ones are retired.

        Agents bring their own servers again afterwards, under other names where these are taken.
        `undo` of `change`, called before, takes it back.
        """
        for spec in {spec.name: spec for spec in specs}.values():
            connection = None
            if self._specs.get(spec.name) != spec:
                connection = self._connections.pop(spec.name, None)
            if connection is not None:
                self._retired.append(connection)
            self._specs[spec.name] = spec
            self._claims.pop(spec.name, None)

    def change(self, agents: Collection[str]) -> Callable[[], None]:
        """Replace the servers of some agents; unchanged ones are kept as they are.

        Args:
            agents: The agents; `forget_unused` ends what none of them brings again.

        Returns:
            A function that takes all back that happened since.
        """
        before = dict(self._specs), dict(self._connections), dict(self._claims), [*self._retired]
        self._claims = {name: users.difference(agents) for name, users in self._claims.items()}

        def undo() -> None:
            self._specs, self._connections, self._claims, self._retired = before

        return undo

    def forget_unused(self) -> None:
        """Forget the servers that no agent brings any more; their connections are retired."""
        for name in [name for name, users in self._claims.items() if users == NO_AGENTS]:
            self._forget(name)

    def close_retired(self) -> None:
        """End the connections to servers that were forgotten, each when its calls have ended."""
        if self._tasks is not None:
            for connection in self._retired:
                if connection not in self._ending:
                    self._ending.append(connection)
                    self._tasks.start_soon(self._retire, connection)

    def load_on_start(self) -> None:
        """Start to connect to the servers that want it; one that is down is a warning."""
        names = [spec.name for spec in self._specs.values() if spec.load_on_start]
        if names:
            self.start_soon(partial(self._load, names))

    async def _load(self, names: Sequence[str]) -> None:
        for report in await self.open(names):
            if report.state != "connected":
                hint = f" (hint: {report.hint})" if report.hint else ""
                _log.warning("%s%s", report.reason or f"server `{report.name}` is down", hint)

    def start_soon(self, act: Callable[[], Coroutine[object, object, object]]) -> None:
        """Do something in a task of the pool's; it ends with the pool."""
        if self._tasks is not None:
            self._tasks.start_soon(act)

    def connection(self, name: str) -> Connection:
        """Return the connection to a server, opened or not.

        Raises:
            ToolError: There is no such server.
        """
        spec = self._specs.get(name)
        if spec is None:
            raise ToolError(f"there is no MCP server `{name}`", hint=self._hint(name))
        connection = self._connections.get(name)
        if connection is None:
            connection = Connection(spec, self._offered, self._begin, self.clock, self._sizes)
            self._connections[name] = connection
        return connection

    def connections(self, names: Iterable[str]) -> tuple[Connection, ...]:
        """Return the connections to some servers, in the order of `names`.

        Raises:
            ToolError: There is no such server.
        """
        return tuple([self.connection(name) for name in names])

    def toolset(
        self,
        name: str,
        allowed: ServerFilter,
        has_skills: Callable[[], Awaitable[bool]] | None = None,
    ) -> McpToolset:
        """Return the tools of a server as an agent may use them; see `McpToolset`.

        Raises:
            ToolError: There is no such server.
        """
        return McpToolset(self.connection(name), allowed, has_skills)

    def resources(self, name: str, allowed: ServerFilter) -> ServerResources:
        """Return the resources of a server as an agent may use them.

        Raises:
            ToolError: There is no such server.
        """
        return ServerResources(self.connection(name), allowed)

    def prompts(self, name: str, allowed: ServerFilter) -> ServerPrompts:
        """Return the prompts of a server as an agent may use them.

        Raises:
            ToolError: There is no such server.
        """
        return ServerPrompts(self.connection(name), allowed)

    async def open(self, names: Sequence[str]) -> tuple[ServerReport, ...]:
        """Open servers at once; one that is down is reported and stops no other.

        Args:
            names: The servers to open.

        Returns:
            How each stands, in the order of `names`.

        Raises:
            ToolError: There is no such server.
        """
        return await _opened(self.connections(names))

    def reports(self) -> tuple[ServerReport, ...]:
        """Return the state of every server, in the order they were added."""
        return tuple(self._report(name) for name in self._specs)

    async def notify_roots_changed(self) -> None:
        """Notify the open servers that their roots changed."""
        for connection in tuple(self._connections.values()):
            await connection.notify_roots_changed()

    async def aclose(self) -> None:
        """End every session at once and wait for it; safe to call twice."""
        async with anyio.create_task_group() as tasks:
            for connection in (*self._connections.values(), *self._retired):
                tasks.start_soon(connection.close)

    async def _begin(self, run: RunSession) -> LiveSession:
        if self._tasks is None:
            raise ToolError("the servers are used before they are started")
        return await self._tasks.start(run)

    def _claim(self, name: str, agent: str | None) -> str:
        if agent is None:
            self._claims.pop(name, None)
        elif name in self._claims:
            self._claims[name] |= {agent}
        return name

    def _forget(self, name: str) -> None:
        del self._specs[name], self._claims[name]
        connection = self._connections.pop(name, None)
        if connection is not None:
            self._retired.append(connection)

    async def _retire(self, connection: Connection) -> None:
        await connection.calls.none_open()
        await connection.close()
        self._retired.remove(connection)
        self._ending.remove(connection)

    def _report(self, name: str) -> ServerReport:
        connection = self._connections.get(name)
        return ServerReport(name, "unused") if connection is None else _report_of(connection)

    def _hint(self, name: str) -> str:
        close = closest(name, self._specs)
        if close is not None:
            return f"did you mean `{close}`?"
        if not self._specs:
            return "declare it under `mcp.servers` in the configuration"
        return f"the servers are {', '.join(f'`{known}`' for known in self._specs)}"


async def need(
    connections: Sequence[Connection],
    agent_name: str,
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Open the servers an agent cannot do without.

    Args:
        connections: The connections to them.
        agent_name: The agent, for the message.
        meanwhile: Called once for each server that is waited for.

    Raises:
        ToolError: One of them cannot be used; names every one that cannot, and why.
    """
    failed = [one for one in await _opened(connections, meanwhile) if one.state != "connected"]
    if not failed:
        return
    reasons = "\n".join(
        report.reason or f"server `{report.name}` is {report.state}" for report in failed
    )
    hints = dict.fromkeys(report.hint for report in failed if report.hint)
    raise ToolError(
        f"agent `{agent_name}` needs {_listed(failed)}, which cannot be used:\n{reasons}",
        hint="; ".join(hints) or None,
    )


async def instructions(connections: Iterable[Connection]) -> dict[str, str]:
    """Return the instructions of the servers that have any: their own text, untrusted.

    Raises:
        ToolError: A server cannot be reached.
    """
    wanted = [one for one in connections if one.spec.include_instructions]
    texts = {one.name: await one.instructions() for one in wanted}
    return {name: text for name, text in texts.items() if text}


async def _opened(
    connections: Sequence[Connection], meanwhile: Callable[[], None] | None = None
) -> tuple[ServerReport, ...]:
    """Open connections at once, and say how each stands."""
    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(_try_open, connection, meanwhile)
    return tuple([_report_of(connection) for connection in connections])


async def _try_open(connection: Connection, meanwhile: Callable[[], None] | None) -> None:
    try:
        await connection.open(meanwhile)
    except FastAgentError:
        # Kept by the connection, for the report.
        return


def _report_of(connection: Connection) -> ServerReport:
    failure = connection.failure
    if failure is None:
        return ServerReport(connection.name, connection.state)
    return ServerReport(connection.name, connection.state, failure.message, failure.hint)


def _listed(reports: Sequence[ServerReport]) -> str:
    names = ", ".join(f"`{report.name}`" for report in reports)
    return f"server {names}" if len(reports) == 1 else f"servers {names}"


def _is_same_target(known: ServerSpec, spec: ServerSpec) -> bool:
    return known.same_server(_renamed(spec, known.name))


def _renamed(spec: ServerSpec, name: str) -> ServerSpec:
    return replace(spec, name=name)


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
            return ToolResult.error(
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
            return ToolResult.error(call.id, said)

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
