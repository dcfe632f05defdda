"""The agent of type `smart`: it has tools to write, check and run cards, and to read documents."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from fast_agent.agents.delegation.agent_tool import ChildCallLimits
from fast_agent.agents.events import ChildFinished, ChildStarted
from fast_agent.agents.tool_calls import TurnCallContext
from fast_agent.cards.card_files import is_skill
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.dump import dump_card
from fast_agent.cards.fields import CARD_TYPES
from fast_agent.cards.load_set import card_facts
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics.render_human import render_cards, render_human
from fast_agent.errors import CardError, FastAgentError, ToolError, os_reason
from fast_agent.messages.message import EmbeddedResource, TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.resources.sections import Excerpt
from fast_agent.runtime.blueprint import LlmBlueprint
from fast_agent.runtime.smart.card_reach import AGENT_CARDS, ReachableCards
from fast_agent.steps.steps import deadline
from fast_agent.text.frozen import frozen
from fast_agent.text.source import Source
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.text.yaml_writer import UnwritableValueError, write_yaml
from fast_agent.tools.result import said
from fast_agent.tools.tool import RuntimeTool, ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from fast_agent.agents.agent import Agent
    from fast_agent.cards.card import Card
    from fast_agent.cards.document import FileContent
    from fast_agent.cards.grant import CardGrant
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.mcp.offers import ServerResources
    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.runtime.blueprint import Blueprint
    from fast_agent.runtime.context import InnerRuntime, RuntimeContext
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

MAX_CHARACTERS: Final = 20_000
"""Most characters of one answer."""

_MAX_LISTED = 100
_PATH = ("string", "a card or a directory of cards, relative to the workspace")
_AGENT = ("string", "the agent of the set, where it is not the default one")
_SERVER = ("string", "the MCP server, where the card has several")
_URI = ("string", "the resource")

_SPECS = {
    "smart": ToolSpec(
        "smart",
        "Run the cards of a path and send a message to their default agent. Gives its answer; each"
        " call starts again.",
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
            offset=("integer", "characters to skip, to continue a long one"),
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

    asks_in_steps: ClassVar[bool] = True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer a call; what goes wrong is an error result with every problem."""
        if not isinstance(context, TurnCallContext):
            return ToolResult.error(call.id, f"`{self.spec.name}` can only be called in a turn")
        try:
            arguments = ToolArguments(self.spec, call.arguments)
            return ToolResult(call.id, await self.work(arguments, context))
        except FastAgentError as error:
            return ToolResult.error(call.id, describe_error(error))


class SmartTools:
    """The tools, over what their agent can reach.

    Args:
        reach: The cards.
        crew: What the runs share: limits, and a count.
    """

    def __init__(self, reach: ReachableCards, crew: ChildCallLimits) -> None:
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
        if len(lines) > _MAX_LISTED:
            more = len(lines) - _MAX_LISTED
            lines = [*lines[:_MAX_LISTED], f"{more} more; name one `server`, or read by URI"]
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
    text = block.text[offset : offset + MAX_CHARACTERS]
    piece = Excerpt(text, min(offset, len(block.text)), len(block.text))
    note = () if piece.note is None else (TextContent(f"[{piece.note}]"),)
    return (replace(block, text=text), *note)


def describe_error(error: FastAgentError) -> str:
    """Describe an error with all its problems."""
    if not error.diagnostics:
        return said(error)
    problems: list[Diagnostic] = [one for one in error.diagnostics if one.severity != "info"]
    first = f"{said(error)}\n\n" if len(problems) != 1 or error.hint else ""
    return _bounded(first + render_human(problems))


def _bounded(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[{len(text) - MAX_CHARACTERS} characters more]"


_PROMPT = Path(__file__).with_name("smart_prompt.md")
_INDEX: Final = "{{agentInternalResources}}"
_AGENTS: Final = "{{agents}}"


NAME: Final = "create_agent_card"
MAX_BYTES: Final = 256 * 1024
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SPEC = ToolSpec(
    NAME,
    "Write an agent card. It is checked first, and written only when it is sound; one that exists"
    " is kept unless `overwrite` is true.",
    object_schema(
        name=("string", "the agent's name: letters, digits, `-` and `_`"),
        instruction=("string", "the system prompt"),
        description=("string", "one line on what it does, for its callers"),
        type=("string", f"one of {', '.join(CARD_TYPES)}; `agent` unless given"),
        fields=("object", "further fields of the card"),
        overwrite=("boolean", "whether to replace a card of this name"),
        required=("name",),
    ),
)
_SPEC_NAME: Final = "letters, digits, `-` and `_`, at most 64, starting with a letter or digit"


def smart_blueprint(card: Card, context: RuntimeContext) -> Blueprint:
    """Make the blueprint of a card of type `smart`.

    Args:
        card: The card.
        context: What it is made with.

    Raises:
        FastAgentError: As for a card of type `agent`.
    """
    config = card.config
    reach = ReachableCards(context.settings, context.options, context.inner)
    crew = ChildCallLimits(config, reach.max_depth)
    return LlmBlueprint(
        replace(card, config=replace(config, resource_tools=True)),
        context,
        tools=(*SmartTools(reach, crew).tools, CardWriter(reach, config.grant)),
        instruction=smart_instruction(config.instruction or ""),
    )


def smart_instruction(own: str) -> str:
    """Append a card's own instruction to the packaged one.

    Args:
        own: The card's. What it places itself, the packaged one leaves out.

    Returns:
        The whole, with its placeholders.
    """
    packaged = _packaged()
    for placeholder in (_INDEX, _AGENTS):
        if placeholder in own:
            packaged = packaged.replace(placeholder, "")
    return f"{packaged.strip()}\n\n{own.strip()}\n"


@cache
def _packaged() -> str:
    return _PROMPT.read_text(encoding="utf-8")


class CardWriter(RuntimeTool):
    """The tool.

    Args:
        reach: What its agent can reach.
        grant: What the project of the agent may do, which writes cards among its own, as its
            approval says; None, for an agent of the user, writes to those of the home directory.
    """

    __slots__ = ("_directory", "_grant", "_reach")

    def __init__(self, reach: ReachableCards, grant: CardGrant | None = None) -> None:
        self._reach = reach
        self._grant = grant
        own = reach.home if grant is None else grant.root / ".fast-agent"
        self._directory = own / AGENT_CARDS

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return _SPEC

    @property
    def repeatable(self) -> bool:
        """Always False: the card may be there already."""
        return False

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Write a card; nothing is written where anything is wrong with it."""
        del context
        try:
            text = self._create(ToolArguments(_SPEC, call.arguments))
        except FastAgentError as error:
            return ToolResult.error(call.id, describe_error(error))
        return ToolResult(call.id, (TextContent(text),))

    def _create(self, args: ToolArguments) -> str:
        name = args.required_text("name")
        if not _FILE_NAME.fullmatch(name) or is_skill(f"{name}.md"):
            raise ToolError(f"`{name[:80]}` is not a name of a card", hint=_SPEC_NAME)
        file = self._directory / f"{name}.md"
        exists = self._card_exists(file)
        if self._grant is not None:
            self._grant.check_write(file)
        if exists and not args.flag("overwrite"):
            raise ToolError(
                f"there is a card `{name}` already", hint="set `overwrite` to true to replace it"
            )
        text, card = self._card(name, args, file)
        self._check(card, file)
        self._write(file, text, exists=exists)
        shown = self._reach.shown(file)
        if len(self._siblings(card, file)) and _refers(card):
            directory = self._reach.shown(self._directory)
            return f"wrote `{shown}`; run it with `smart`: `{directory}` and `agent` `{name}`"
        return f"wrote `{shown}`; run it with `smart` and this path"

    def _card(self, name: str, args: ToolArguments, file: Path) -> tuple[str, Card]:
        """Make the text of the card, and the card that the loader makes of it."""
        given: dict[str, JsonValue] = {"type": args.text("type") or "agent", "name": name}
        for key in ("description", "instruction"):
            if (value := args.text(key)) is not None:
                given[key] = value
        fields = args.mapping("fields")
        if twice := sorted({*fields} & {"name", "type", "description", "instruction"} & {*given}):
            raise ToolError(f"`{twice[0]}` is given twice", hint="leave it out of `fields`")
        given |= fields
        shown = self._reach.shown(file)
        try:
            written = write_yaml(given)
        except UnwritableValueError as error:
            raise ToolError(f"the card cannot be written: {error}") from None
        first = self._sound(read_yaml(Source.of(shown, written), multi_card=False), name, file)
        text = dump_card(first.config, directory=file.parent, written=first.written)
        if len(text.encode()) > MAX_BYTES:
            raise ToolError(f"the card is larger than {MAX_BYTES // 1024} KiB")
        return text, self._sound(
            read_markdown(Source.of(shown, text), multi_card=False), name, file
        )

    def _sound(self, reading: FileContent, name: str, file: Path) -> Card:
        """Read a card as the loader would; `${VARIABLES}` stay as they are written."""
        problems = [*reading.diagnostics]
        card = None
        if reading.documents:
            card, found = validate_card(
                reading.documents[0], Origin(name, source=file), self._reach.variables
            )
            problems += found
        if errors := [problem for problem in problems if problem.severity == "error"]:
            raise CardError("the card was not written", diagnostics=errors)
        if card is None:
            raise CardError("the card was not written: it cannot be read back")
        return card

    def _check(self, card: Card, file: Path) -> None:
        """Check that the card fits its neighbours, and may be run by an agent like this."""
        found = self._reach.problems([*self._siblings(card, file), card])
        own = [one for one in found if one.path == card.path and one.severity == "error"]
        if problems := [*self._reach.refusals([card]), *own]:
            raise CardError("the card was not written", diagnostics=problems)

    def _siblings(self, card: Card, file: Path) -> list[Card]:
        if not self._directory.is_dir():
            return []
        try:
            cards = self._reach.load(self._directory)
        except ToolError:  # it holds no cards
            return []
        return [one for one in cards if one.config.source != file and one.path != card.path]

    def _card_exists(self, file: Path) -> bool:
        """Return whether the card exists; check that nothing leads out of its directory."""
        if self._directory.is_symlink() or file.is_symlink():
            raise ToolError(
                f"`{self._reach.shown(self._directory)}` or the card is a link, which is not "
                "written through"
            )
        if file.exists() and not file.is_file():
            raise ToolError(f"`{self._reach.shown(file)}` is not a file")
        return file.exists()

    def _write(self, file: Path, text: str, *, exists: bool) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            if exists:
                from fast_agent.text.safe_file import write_atomic

                write_atomic(file, text.encode())
            else:
                # Fails if a file appeared there in between, a link too.
                with file.open("x", encoding="utf-8") as stream:
                    stream.write(text)
        except OSError as error:
            reason = os_reason(error)
            raise ToolError(f"`{self._reach.shown(file)}` cannot be written: {reason}") from None


def _refers(card: Card) -> bool:
    from fast_agent.cards.set_check import references

    return any(True for _ in references(card.config))
