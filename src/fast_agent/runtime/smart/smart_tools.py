"""Tools of a smart agent that reach other cards: run them, check them, inspect their servers."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from fast_agent.agents.events import ChildFinished, ChildStarted
from fast_agent.agents.tool_calls import TurnCallContext
from fast_agent.cards.load_set import card_facts
from fast_agent.diagnostics.render_human import render_cards, render_human
from fast_agent.errors import FastAgentError, ToolError
from fast_agent.messages.content import EmbeddedResource, TextContent
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.resources.sections import Excerpt
from fast_agent.steps.steps import deadline
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import closest, did_you_mean
from fast_agent.tools.result import error_result, said
from fast_agent.tools.tool import RuntimeTool
from fast_agent.tools.tool_arguments import ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.agent_tool import Crew
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.mcp.offers import ServerResources
    from fast_agent.messages.content import Content
    from fast_agent.messages.message import ToolCall
    from fast_agent.runtime.context import InnerRuntime
    from fast_agent.runtime.smart.card_reach import CardReach
    from fast_agent.tools.tool import ToolContext

MOST_CHARACTERS: Final = 20_000
"""Most characters of one answer."""

_MOST_LISTED = 100
_PATH = ("string", "a card or a directory of cards, relative to the workspace")
_AGENT = ("string", "the agent of the set, where it is not the default one")
_SERVER = ("string", "the MCP server, where the card has several")
_URI = ("string", "the resource")

_SPECS = {
    "smart": ToolSpec(
        "smart",
        "Run the cards of a path and send a message to their default agent. Gives its answer; each"
        " call starts anew.",
        object_schema(
            agent_card_path=_PATH,
            message=("string", "what to send"),
            agent=_AGENT,
            required=("agent_card_path", "message"),
        ),
    ),
    "validate": ToolSpec(
        "validate",
        "Check the cards of a path, as `fast-agent check` does: every problem with its line and"
        " what to do. Nothing is run.",
        object_schema(agent_card_path=_PATH, required=("agent_card_path",)),
    ),
    "smart_list_resources": ToolSpec(
        "smart_list_resources",
        "List the resources that the MCP servers of a card offer.",
        object_schema(
            agent_card_path=_PATH, agent=_AGENT, server=_SERVER, required=("agent_card_path",)
        ),
    ),
    "smart_get_resource": ToolSpec(
        "smart_get_resource",
        "Read a resource of an MCP server of a card.",
        object_schema(
            agent_card_path=_PATH,
            uri=_URI,
            agent=_AGENT,
            server=_SERVER,
            offset=("integer", "characters to pass over, to go on with a long one"),
            required=("agent_card_path", "uri"),
        ),
    ),
    "smart_with_resource": ToolSpec(
        "smart_with_resource",
        "Run the cards of a path and send a message together with a resource of one of their MCP"
        " servers.",
        object_schema(
            agent_card_path=_PATH,
            message=("string", "what to send"),
            uri=_URI,
            agent=_AGENT,
            server=_SERVER,
            required=("agent_card_path", "message", "uri"),
        ),
    ),
}

Work: TypeAlias = "Callable[[ToolArguments, TurnCallContext], Awaitable[tuple[Content, ...]]]"


@frozen
class SmartTool(RuntimeTool):
    """One of the tools.

    Args:
        spec: How the model sees it.
        work: Does the work.
        repeatable: Whether it may be called again when a crash left its outcome unknown.
    """

    spec: ToolSpec
    work: Work
    repeatable: bool

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer a call; what goes wrong is an error result with every problem."""
        if not isinstance(context, TurnCallContext):
            return error_result(call.id, f"`{self.spec.name}` can only be called in a turn")
        try:
            arguments = ToolArguments(self.spec, call.arguments)
            return ToolResult(call.id, await self.work(arguments, context))
        except FastAgentError as error:
            return error_result(call.id, told(error))


class SmartTools:
    """The tools, over what their agent can reach.

    Args:
        reach: The cards.
        crew: What the runs share: limits, and a count.
    """

    def __init__(self, reach: CardReach, crew: Crew) -> None:
        self._reach = reach
        self._crew = crew
        self.tools: tuple[SmartTool, ...] = (
            SmartTool(_SPECS["smart"], self._smart, repeatable=False),
            SmartTool(_SPECS["validate"], self._validate, repeatable=True),
            SmartTool(_SPECS["smart_list_resources"], self._list, repeatable=True),
            SmartTool(_SPECS["smart_get_resource"], self._get, repeatable=True),
            SmartTool(_SPECS["smart_with_resource"], self._with_resource, repeatable=False),
        )

    async def _smart(self, args: ToolArguments, context: TurnCallContext) -> tuple[Content, ...]:
        message = args.required_text("message")

        async def ask(runtime: InnerRuntime, agent: Agent) -> tuple[Content, ...]:
            del runtime
            return (await agent.generate(message)).message.content

        return await self._run(args, context, ask)

    async def _with_resource(
        self, args: ToolArguments, context: TurnCallContext
    ) -> tuple[Content, ...]:
        message, uri = args.required_text("message"), args.required_text("uri")

        async def ask(runtime: InnerRuntime, agent: Agent) -> tuple[Content, ...]:
            server = await _server_of(runtime, agent.name, args.text("server"), uri)
            text = await agent.with_resource(message, server.server_name, uri)
            return (TextContent(text),)

        return await self._run(args, context, ask)

    async def _validate(self, args: ToolArguments, context: TurnCallContext) -> tuple[Content, ...]:
        del context
        load, found = self._reach.check(self._reach.locate(args.required_text("agent_card_path")))
        shown = [problem for problem in found if problem.severity != "info"]
        cards = render_cards(card_facts(load.cards))
        text = render_human(shown) if shown else "no problems\n"
        if refused := self._reach.refusals(load.cards):
            text += "\nit could not be run by `smart`:\n\n" + render_human(refused, summary=False)
        return (TextContent(_bounded(f"{cards}\n{text}")),)

    async def _list(self, args: ToolArguments, context: TurnCallContext) -> tuple[Content, ...]:
        asked = args.text("server")
        async with self._opened(args, context) as (runtime, name):
            lines: list[str] = []
            for server in await _servers_of(runtime, name, asked):
                lines += [
                    f"{server.server_name}: {one.uri} ({one.mime_type or 'unknown type'})"
                    f" {one.description or one.title or one.name}"
                    for one in await server.resources()
                ]
                lines += [
                    f"{server.server_name}: {one.uri_template} (a template)"
                    f" {one.description or one.title or one.name}"
                    for one in await server.templates()
                ]
        if len(lines) > _MOST_LISTED:
            more = len(lines) - _MOST_LISTED
            lines = [*lines[:_MOST_LISTED], f"{more} more; name one `server`, or read by URI"]
        return (TextContent(_bounded("\n".join(lines) or "its servers list no resources")),)

    async def _get(self, args: ToolArguments, context: TurnCallContext) -> tuple[Content, ...]:
        uri, offset = args.required_text("uri"), args.whole("offset", 0)
        async with self._opened(args, context) as (runtime, name):
            server = await _server_of(runtime, name, args.text("server"), uri)
            blocks = await server.read(uri, agent_name=name)
        return tuple([piece for block in blocks for piece in _pieces(block, offset)])

    async def _run(
        self,
        args: ToolArguments,
        context: TurnCallContext,
        ask: Callable[[InnerRuntime, Agent], Awaitable[tuple[Content, ...]]],
    ) -> tuple[Content, ...]:
        """Run an agent of the cards, between the two events that frame a child's work."""
        parent, listener = self._crew.parent, context.turn.listener
        seconds = parent.child_timeout_sec
        async with self._crew.places:
            with nullcontext() if seconds is None else deadline("smart", seconds):
                async with self._opened(args, context) as (runtime, name):
                    agent = runtime.agent(name)
                    number = self._crew.next_number()
                    shown = parent.max_display_instances
                    framed = context.origin, context.call_id, name, number
                    listener(ChildStarted(*framed, shown))
                    error: str | None = "cancelled"
                    try:
                        answer = await ask(runtime, agent)
                        error = None
                    except FastAgentError as problem:
                        error = problem.message
                        raise
                    finally:
                        listener(ChildFinished(*framed, error))
                    return answer
        raise ToolError(f"it did not answer within the {seconds:g} s of `child_timeout_sec`")

    @asynccontextmanager
    async def _opened(
        self, args: ToolArguments, context: TurnCallContext
    ) -> AsyncGenerator[tuple[InnerRuntime, str]]:
        """Open the cards a call names; yield them and the name of the agent it is about."""
        if context.turn.depth >= self._crew.max_depth:
            deepest = self._crew.max_depth
            raise ToolError(f"agents may call each other {deepest} deep at most")
        path = self._reach.locate(args.required_text("agent_card_path"))
        turn = replace(
            context.turn,
            depth=context.turn.depth + 1,
            parent_call_id=context.call_id,
            correlation_id=context.correlation_id,
        )
        async with self._reach.running(path, turn) as runtime:
            asked = args.text("agent")
            if asked is not None and asked not in runtime.names:
                near = closest(asked, runtime.names)
                known = ", ".join(f"`{name}`" for name in runtime.names)
                hint = did_you_mean(near, f"there are {known}")
                raise ToolError(f"no agent is named `{asked}` in `{path.name}`", hint=hint)
            yield runtime, asked or runtime.default_name


async def _servers_of(
    runtime: InnerRuntime, name: str, asked: str | None
) -> tuple[ServerResources, ...]:
    """Open the servers of an agent, or the one that is asked for."""
    servers = runtime.server_resources(name)
    names = [server.server_name for server in servers]
    if not servers:
        raise ToolError(f"agent `{name}` has no MCP servers", hint="list one under `servers`")
    if asked is not None and asked not in names:
        known = ", ".join(f"`{one}`" for one in names)
        raise ToolError(f"agent `{name}` has no server `{asked}`", hint=f"it has {known}")
    chosen = tuple([one for one in servers if asked in {None, one.server_name}])
    reports = await runtime.open_servers((name,))
    wanted = {server.server_name for server in chosen}
    for report in reports:
        if report.name in wanted and report.state != "connected":
            reason = report.reason or f"server `{report.name}` is {report.state}"
            raise ToolError(reason, hint=report.hint)
    return chosen


async def _server_of(
    runtime: InnerRuntime, name: str, asked: str | None, uri: str
) -> ServerResources:
    """Find the server of an agent that has a resource."""
    servers = await _servers_of(runtime, name, asked)
    if len(servers) == 1:
        return servers[0]
    for server in servers:
        if any(one.uri == uri for one in await server.resources()):
            return server
    known = ", ".join(f"`{server.server_name}`" for server in servers)
    raise ToolError(f"no server lists `{uri}`", hint=f"say which `server`: {known}")


def _pieces(block: EmbeddedResource, offset: int) -> Iterable[Content]:
    """Return what may be shown of a content: a piece of a text, or the block itself."""
    if block.text is None:
        return (block,)
    text = block.text[offset : offset + MOST_CHARACTERS]
    piece = Excerpt(text, min(offset, len(block.text)), len(block.text))
    note = () if piece.note is None else (TextContent(f"[{piece.note}]"),)
    return (replace(block, text=text), *note)


def told(error: FastAgentError) -> str:
    """Describe an error with all its problems."""
    if not error.diagnostics:
        return said(error)
    problems: list[Diagnostic] = [one for one in error.diagnostics if one.severity != "info"]
    first = f"{said(error)}\n\n" if len(problems) != 1 or error.hint else ""
    return _bounded(first + render_human(problems))


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[{len(text) - MOST_CHARACTERS} characters more]"
