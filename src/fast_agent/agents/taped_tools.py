"""Tools on a tape: their calls, what they charge, and the lists servers give of them.

Child agents are not on the tape themselves: they are run in a replay too, and what they ask is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, cast

from fast_agent.agents.budget import Meter
from fast_agent.agents.tool_calls import TurnCallContext, told
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message, ToolResult
from fast_agent.models.cassette_model import usage_from_json, usage_to_json
from fast_agent.models.cassette_parts import tool_to_json
from fast_agent.models.model import ToolSpec
from fast_agent.models.tape import Codec
from fast_agent.tools.result import error_result
from fast_agent.tools.wrapped_tool import WrappedTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.messages.message import ToolCall
    from fast_agent.models.tape import Tape
    from fast_agent.models.usage import Usage
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.tool import Tool, ToolContext, Toolset, ToolSource

log = getLogger(__name__)


class TapedTool(WrappedTool):
    """A tool whose calls go through a tape, with what they charge.

    Args:
        tool: The tool.
        tape: The tape.
    """

    __slots__ = ("_tape",)

    def __init__(self, tool: Tool, tape: Tape) -> None:
        super().__init__(tool)
        self._tape = tape

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call the tool, or give the recorded result.

        Raises:
            FastAgentError: As the tool itself, now or when it was recorded.
            RunError: The call is not the recorded one.
        """
        asked: JsonObject = {"tool": call.name, "arguments": call.arguments}

        async def work() -> tuple[ToolResult, Usage]:
            return await self._work(call, context)

        result, used = await self._tape.ask("tool", call.id, asked, work, _CALL)
        if self._tape.replays and isinstance(context, TurnCallContext):
            for meter in context.scope.meters:
                _charge(meter, used)
        return result

    async def _work(self, call: ToolCall, context: ToolContext) -> tuple[ToolResult, Usage]:
        """Call the tool, and count what the agents and models it starts use."""
        used = Meter(context.agent_name)
        with self._tape.places.silence():
            try:
                if not isinstance(context, TurnCallContext):
                    return await self._tool.call(call, context), used.usage
                scope = context.scope
                scope = replace(scope, meters=(used, *scope.meters))
                context = replace(context, scope=scope)
                if scope.charges is None or self.server_name is None:
                    return await self._tool.call(call, context), used.usage
                with scope.charges.entered(context.agent_name, scope.meters):
                    return await self._tool.call(call, context), used.usage
            except FastAgentError:
                raise
            except Exception as error:  # the boundary of a tool call
                log.exception("tool `%s` failed", call.name)
                reason = f"tool `{call.name}` failed: {told(error)}"
                return error_result(call.id, reason), used.usage


def taped(tools: Iterable[Tool], tape: Tape | None) -> tuple[Tool, ...]:
    """Have the calls of tools go through a tape; child agents are left as they are."""
    if tape is None:
        return tuple(tools)
    return tuple([tool if tool.source == "agent" else TapedTool(tool, tape) for tool in tools])


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """A tool as a recording lists it; what calls of it gave is in the recording too."""

    spec: ToolSpec
    source: ToolSource
    server_name: str | None
    repeatable: bool = False

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Refuse: only a recording knows what it gives."""
        del context
        raise RunError(f"tool `{call.name}` is not called in a replay")


class TapedToolset:
    """A toolset whose list goes through a tape.

    Args:
        name: What it is the list of.
        toolset: The tools; not asked in a replay.
        tape: The tape.
    """

    def __init__(self, name: str, toolset: Toolset, tape: Tape) -> None:
        self._name = name
        self._toolset = toolset
        self._tape = tape
        self._last: tuple[Sequence[Tool], str] | None = None
        self._read: dict[str, Sequence[Tool]] = {}
        self._form: Codec[Sequence[Tool]] = Codec(self._written, self._tools)

    async def tools(self) -> Sequence[Tool]:
        """Give the tools now; the same sequence while nothing changed."""
        return await self._tape.ask("read", self._name, None, self._toolset.tools, self._form)

    def _written(self, tools: Sequence[Tool]) -> JsonValue:
        last = self._last
        if last is None or last[0] is not tools:
            listed = [_tool_to_json(tool) for tool in tools]
            self._last = last = tools, self._tape.parts.digest(listed)
        return last[1]

    def _tools(self, value: JsonValue) -> Sequence[Tool]:
        digest = str(value)
        found = self._read.get(digest)
        if found is None:
            found = self._read[digest] = _recorded_tools(self._tape.part(digest))
        return found


def _call_written(answer: tuple[ToolResult, Usage]) -> JsonValue:
    result, used = answer
    value: dict[str, JsonValue] = {
        "result": message_to_wire(Message("user", tool_results=(result,)))["tool_results"]
    }
    if used.requests or used.tool_calls or used.total_tokens:
        value["used"] = usage_to_json(used)
    return value


def _call_read(value: JsonValue) -> tuple[ToolResult, Usage]:
    answer = cast("JsonObject", value)
    wire: JsonObject = {"role": "user", "content": [], "tool_results": answer["result"]}
    return message_from_wire(wire).tool_results[0], usage_from_json(answer.get("used", {}))


_CALL: Final = Codec(_call_written, _call_read)


def _tool_to_json(tool: Tool) -> JsonValue:
    facts: dict[str, JsonValue] = {"source": tool.source, "repeatable": tool.repeatable}
    if tool.server_name is not None:
        facts["server"] = tool.server_name
    return {"spec": tool_to_json(tool.spec), **facts}


def _recorded_tools(value: JsonValue) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for item in cast("Sequence[JsonObject]", value):
        spec = cast("JsonObject", item["spec"])
        output = spec.get("output_schema")
        server, title = item.get("server"), spec.get("title")
        tools.append(
            RecordedTool(
                ToolSpec(
                    str(spec["name"]),
                    str(spec["description"]),
                    cast("JsonObject", spec["input_schema"]),
                    None if output is None else cast("JsonObject", output),
                    None if title is None else str(title),
                ),
                cast("ToolSource", item["source"]),
                None if server is None else str(server),
                item.get("repeatable") is True,
            )
        )
    return tuple(tools)


def _charge(meter: Meter, used: Usage) -> None:
    for _ in range(used.requests):
        meter.count_request()
    for _ in range(used.tool_calls):
        meter.count_tool_call()
    meter.count_answer(replace(used, requests=0, tool_calls=0))
