"""Offered tools: everything an instance can call, with hooks around each."""

from __future__ import annotations

from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError
from fast_agent.messages.content import TextContent
from fast_agent.messages.long_results import RESULTS, text_of_result
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.suggestion import closest
from fast_agent.tools.result import error_result, said
from fast_agent.tools.tool import RuntimeTool, ToolArguments, object_schema
from fast_agent.tools.toolbox import Toolbox, WrappedToolset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fast_agent.agents.agent_servers import AgentServers
    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.messages.message import ToolCall
    from fast_agent.tools.hooks import Hook
    from fast_agent.tools.permission import Asking
    from fast_agent.tools.tool import Tool, ToolContext, Toolset
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)


READ_RESULT: Final = "read_result"
"""The tool that reads more of a shortened result."""

PIECE: Final = 8_000
"""Characters of one read, unless it says otherwise."""
_MOST = 30_000
_HITS = 20
_AROUND = 200
_SPEC = ToolSpec(
    READ_RESULT,
    "Read more of a tool result of this conversation that was shortened: a piece of it, or the"
    " places where some text occurs in it.",
    object_schema(
        uri=("string", f"the result, as its note names it: `{RESULTS}ID`"),
        offset=("integer", "the first character to read, from 0"),
        max_chars=("integer", f"most characters to read, {PIECE} unless given, {_MOST} at most"),
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
            return error_result(call.id, "there is no conversation to read results of")
        try:
            arguments = ToolArguments(_SPEC, call.arguments)
            return ToolResult(call.id, (TextContent(_read(arguments, context.child_calls.before)),))
        except ToolError as problem:
            return error_result(call.id, said(problem))


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
    most = min(arguments.whole("max_chars", PIECE, least=1), _MOST)
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
