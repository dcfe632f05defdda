"""Permission: a user is asked before a tool acts, and only a yes lets it."""

from __future__ import annotations

from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.errors import ToolError
from fast_agent.messages.json_message import result_from_wire, result_to_wire
from fast_agent.messages.message import ToolResult
from fast_agent.resources.skill_client.text import summary
from fast_agent.steps.steps import Codec, Step, asked_of_tool, here
from fast_agent.text.frozen import frozen
from fast_agent.tools.allowed_calls import NOTHING_ALLOWED
from fast_agent.tools.human import HumanRequest
from fast_agent.tools.result import said
from fast_agent.tools.tool import PreviewedTool
from fast_agent.tools.toolbox import WrappedTool, asks_in_steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.message import ToolCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.allowed_calls import AllowedCalls, SkillPermits
    from fast_agent.tools.human import Human
    from fast_agent.tools.tool import FileChange, Tool, ToolContext, ToolSource

WRITES_FILES: Final = frozenset({"write_text_file", "write_file", "edit_file"})
"""Tools of the runtime that write the file their argument `path` names."""

ALWAYS_ASKED: Final = WRITES_FILES | {"execute", "fetch", "read_text_file", "create_agent_card"}
"""Tools of the runtime that need permission, named by the card or not."""

_MAX_SHOWN = 2_000
_ANSWER: JsonObject = {
    "type": "object",
    "properties": {"call": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["call"],
}


@frozen(kw_only=True)
class PermissionRequest:
    """A call that waits for permission.

    Args:
        call: The call, with the arguments it will be made with.
        context: Whose turn it is.
        source: Where the tool comes from.
        server_name: The MCP server it belongs to, or None.
        change: What it would change in a file; None where it changes none.
    """

    call: ToolCall
    context: ToolContext
    source: ToolSource
    server_name: str | None
    change: FileChange | None = None


class Permission(Protocol):
    """Who may grant permission."""

    async def ask(self, request: PermissionRequest) -> str | None:
        """Ask for permission.

        Returns:
            None where it is given; else why it is not, for the model.
        """
        ...


class HumanPermission:
    """Asks a user with a form: the one of the conversation, else the one of the program.

    Args:
        human: Asks the program's user; None without one, then only what is allowed in
            advance is permitted.
        allowed: What the user allowed in advance; None is nothing.
    """

    __slots__ = ("_allowed", "_human")

    def __init__(self, human: Human | None, allowed: AllowedCalls | None = None) -> None:
        self._human = human
        self._allowed = allowed or NOTHING_ALLOWED

    async def ask(self, request: PermissionRequest) -> str | None:
        """Ask for permission; see `Permission.ask`."""
        if self._allowed.permits(request.call):
            return None
        human = request.context.human or self._human
        if human is None:
            return "it requires approval, and no user is connected"
        name, agent = request.call.name, request.context.agent_name
        shown = summary(_describe_request(request), _MAX_SHOWN)
        question = HumanRequest(
            message=f"agent `{agent}` wants to call `{summary(name)}` with:\n{shown}",
            agent_name=agent,
            schema=_ANSWER,
        )
        answer = await human.ask(question)
        if answer.action == "cancel":
            return "it requires approval, and no user answered"
        agreed = answer.action == "accept" and (answer.content or {}).get("call") == "yes"
        return None if agreed else "the user did not allow it"


def _describe_request(request: PermissionRequest) -> str:
    if request.change is not None:
        return request.change.diff() or f"no change of `{request.change.name}`"
    return str(dict(request.call.arguments))


class AskedTool(WrappedTool):
    """A tool that is called only with permission.

    Args:
        tool: The tool.
        permission: Who is asked before each call.
        permits: What loaded skills allow without a question; None if they allow nothing.
    """

    __slots__ = ("_permission", "_permits")

    def __init__(
        self, tool: Tool, permission: Permission, permits: SkillPermits | None = None
    ) -> None:
        super().__init__(tool)
        self._permission = permission
        self._permits = permits

    @property
    def asks_in_steps(self) -> bool:
        """Always True: the question is one, and so is the call."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call it where that is permitted; an error result where it is not."""
        tool = self._tool
        change = None
        if isinstance(tool, PreviewedTool):
            try:
                change = await tool.preview(call.arguments)
            except ToolError as error:  # a call that cannot run needs no permission
                return ToolResult.error(call.id, said(error))
        request = PermissionRequest(
            call=call,
            context=context,
            source=tool.source,
            server_name=tool.server_name,
            change=change,
        )
        refused = await _asked(self._permission, request, self._permits)
        if refused is not None:
            return ToolResult.error(call.id, f"`{call.name}` was not run: {refused}")
        return await _permitted(tool, call, context)


async def _permitted(tool: Tool, call: ToolCall, context: ToolContext) -> ToolResult:
    """Make the call a step of its own.

    A kill while the question was open is then no kill during the call, and the user is asked again;
    a kill during the call comes after the answer was written, and they are not.
    """

    async def work() -> ToolResult:
        return await tool.call(call, context)

    place = here()
    if place.silent or asks_in_steps(tool):
        return await work()
    asked = asked_of_tool(call.name, call.arguments)
    step = Step("tool", call.id, asked, context.agent_name, tool.repeatable)
    return await place.steps.ask(step, work, _RESULT)


_is_asked_first: ContextVar[bool] = ContextVar("whether a call waits for it", default=False)


def is_asked_first() -> bool:
    """Return whether what is asked now is whether a call may be made, which has not begun."""
    return _is_asked_first.get()


async def _asked(
    permission: Permission, request: PermissionRequest, permits: SkillPermits | None
) -> str | None:
    """Ask as a step of the run: a run that continues in another process asks once."""
    call = request.call

    async def work() -> str | None:
        if permits is not None and permits.allows(call, request.context):
            return None
        token = _is_asked_first.set(True)
        try:
            return await permission.ask(request)
        finally:
            _is_asked_first.reset(token)

    place = here()
    if place.silent:
        return await work()
    asked = asked_of_tool(call.name, call.arguments)
    step = Step("human", call.id, asked, request.context.agent_name)
    return await place.steps.wait_for(step, work, _REFUSAL)


_RESULT: Final[Codec[ToolResult]] = Codec(result_to_wire, result_from_wire)
_REFUSAL: Final[Codec[str | None]] = Codec(
    lambda refused: refused, lambda value: None if value is None else str(value)
)


@frozen
class PermissionRules:
    """Which calls of an agent need permission, and who grants it.

    Args:
        permission: Who is asked.
        patterns: Patterns of the names of tools a card marks, with `*` and `?`.
        always: Whether `ALWAYS_ASKED` tools are asked about too.
        permits: What loaded skills allow of those; they allow nothing that a card marks.
    """

    permission: Permission
    patterns: tuple[str, ...] = ()
    always: bool = False
    permits: SkillPermits | None = None

    def over(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the tools, wrapping those that need permission."""
        return tuple(map(self._wrap_tool, tools))

    def _wrap_tool(self, tool: Tool) -> Tool:
        name = tool.spec.name
        if any(fnmatchcase(name, pattern) for pattern in self.patterns):
            return AskedTool(tool, self.permission)
        if self.always and tool.source == "runtime" and name in ALWAYS_ASKED:
            return AskedTool(tool, self.permission, self.permits)
        return tool
