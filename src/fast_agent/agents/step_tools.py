"""Tools in steps: their calls, what they charge, and the lists servers return of them."""

from __future__ import annotations

from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, cast

from fast_agent.agents.budget import Meter
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import result_from_wire, result_to_wire
from fast_agent.messages.message import ToolResult
from fast_agent.models.step_model import (
    tool_from_json,
    tool_to_json,
    usage_from_json,
    usage_to_json,
)
from fast_agent.steps.steps import Codec, Step, asked_of_tool, here, text_by_digest
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import describe_error
from fast_agent.tools.toolbox import asks_first, asks_in_steps, innermost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.messages.message import ToolCall
    from fast_agent.models.model import ToolSpec, Usage
    from fast_agent.steps.steps import Place
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.skills.tools import OfferedSkills
    from fast_agent.tools.tool import Tool, ToolContext, Toolset, ToolSource

log = getLogger(__name__)


async def call_in_step(
    tool: Tool, call: ToolCall, place: Place, context: ToolContext, turn: TurnContext | None = None
) -> ToolResult:
    """Call a tool as a step of a run, with what the call charges.

    Args:
        tool: The tool.
        call: The call.
        place: Where the call is made; not silent.
        context: The context of the call.
        turn: What agents it starts inherit, the meters that are charged among it; None where no
            turn makes the call.

    Raises:
        FastAgentError: As the tool itself, now or when it was recorded.
        RunError: The call is not the recorded one.
    """
    asked = asked_of_tool(call.name, call.arguments)
    steps, ran = place.steps, False

    async def work() -> tuple[ToolResult, Usage]:
        nonlocal ran
        ran = True
        used = Meter(context.agent_name)
        inner = context
        if turn is not None:
            inner = replace(context, turn=replace(turn, meters=(used, *turn.meters)))
        if turn is None or turn.charges is None or tool.server_name is None:
            return await attempted(tool, call, inner), used.usage
        with turn.charges.entered(context.agent_name, (used, *turn.meters)):
            return await attempted(tool, call, inner), used.usage

    step = Step(
        "tool",
        call.id,
        asked,
        context.agent_name,
        tool.repeatable,
        is_local=tool.source == "function",
        asks_in_steps=asks_in_steps(tool),
        asks_first=asks_first(tool),
    )
    result, used = await steps.ask(step, work, _CALL)
    if not ran and turn is not None:
        for meter in turn.meters:
            _charge(meter, used)
    return result


async def call_agent_in_step(
    tool: Tool,
    call: ToolCall,
    place: Place,
    context: ToolContext,
    noting: tuple[ToolContext, Sequence[JsonObject]],
) -> ToolResult:
    """Call an agent as a tool, as a step of a run.

    Where the answer is kept, neither hooks nor the user are asked again. The agent takes its turn
    again with the arguments they left, since it leaves more than an answer: messages, counts and
    events. All its own questions are answered from their steps.

    Args:
        tool: The tool, with what is around it.
        call: The call.
        place: Where the call is made; not silent.
        context: The context of the call.
        noting: The same, with the arguments the agent was called with, which it notes.

    Raises:
        FastAgentError: As the tool itself, now or when it was recorded.
        RunError: The call is not the recorded one.
    """
    ran = False

    async def work() -> tuple[ToolResult, Sequence[JsonObject]]:
        nonlocal ran
        ran = True
        first, made = noting
        return await attempted(tool, call, first), made

    asked = asked_of_tool(call.name, call.arguments)
    step = Step("agent", call.id, asked, context.agent_name)
    result, before = await place.steps.ask(step, work, _AGENT_CALL)
    if not ran:
        agent = innermost(tool)
        for arguments in before:
            await attempted(agent, replace(call, arguments=arguments), context)
    return result


async def attempted(tool: Tool, call: ToolCall, context: ToolContext) -> ToolResult:
    """Call a tool; what it raises that is not meant for a user is an error result."""
    try:
        return await tool.call(call, context)
    except FastAgentError:
        raise
    except Exception as error:  # the boundary of a tool call
        log.exception("tool `%s` failed", call.name)
        reason = f"tool `{call.name}` failed: {describe_error(error)}"
        return ToolResult.error(call.id, reason)


@frozen
class RecordedTool:
    """A tool as a recording lists it; if the run continues, its calls reach the tool itself.

    Args:
        spec: How the model sees it.
        source: Where it comes from.
        server_name: Its server, or None.
        repeatable: Whether it may be called again.
        live: Returns the current tools.
    """

    spec: ToolSpec
    source: ToolSource
    server_name: str | None
    repeatable: bool
    live: Callable[[], Awaitable[Sequence[Tool]]]

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call the tool of that name.

        Raises:
            RunError: The run is a replay, which calls no tool.
            FastAgentError: As the tool itself.
        """
        if here().steps.replays:
            raise RunError(f"tool `{call.name}` is not called in a replay")
        for tool in await self.live():
            if tool.spec.name == self.spec.name:
                return await tool.call(call, context)
        return ToolResult.error(call.id, f"tool `{call.name}` no longer exists")


class StepToolset:
    """A toolset whose list is a step.

    Args:
        name: What it is the list of.
        toolset: The tools.
        opened: Awaited before the tools themselves are used by a run that continues, whose
            lists are recorded; None where nothing has to be opened.
    """

    def __init__(
        self, name: str, toolset: Toolset, opened: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self._name = name
        self._toolset = toolset
        self._opened = opened
        self._read: dict[str, Sequence[Tool]] = {}

    async def tools(self) -> Sequence[Tool]:
        """Return the tools now; the same sequence while nothing changed."""
        place = here()
        if place.silent:
            return await self._toolset.tools()
        steps = place.steps

        def write(tools: Sequence[Tool]) -> JsonValue:
            return steps.parts.digest_of(tools, _tools_to_json)

        def read(value: JsonValue) -> Sequence[Tool]:
            digest = str(value)
            found = self._read.get(digest)
            if found is None:
                found = self._read[digest] = _recorded_tools(steps.part(digest), self._live)
            return found

        return await steps.ask(Step("read", self._name), self._toolset.tools, Codec(write, read))

    async def _live(self) -> Sequence[Tool]:
        if self._opened is not None:
            await self._opened()
        return await self._toolset.tools()


class StepSkills:
    """The skills of a card with servers: what is listed of them is a step.

    Args:
        agent: The card's name.
        skills: The skills.
    """

    def __init__(self, agent: str, skills: OfferedSkills) -> None:
        self._skills = skills
        self._name = f"skills of {agent}"
        self._listed = StepToolset(f"tools for {self._name}", skills)

    async def tools(self) -> Sequence[Tool]:
        """Return the tools now."""
        tools = await self._listed.tools()
        place = here()
        if place.silent:
            return tools
        steps = place.steps

        async def look() -> str:
            return self._skills.block()

        steps.places.answers[self._name] = await steps.ask(
            Step("read", self._name), look, text_by_digest(steps)
        )
        return tools

    def block(self) -> str:
        """Return the block of a prompt as of the last check of the tools."""
        place = here()
        if place.silent:
            return self._skills.block()
        return str(place.steps.places.answers.get(self._name, ""))


def call_to_json(result: ToolResult, used: Usage) -> JsonValue:
    """Write the result of a tool call, with what it charges."""
    value: dict[str, JsonValue] = {"result": result_to_wire(result)}
    if used.requests or used.tool_calls or used.total_tokens:
        value["used"] = usage_to_json(used)
    return value


def _call_read(value: JsonValue) -> tuple[ToolResult, Usage]:
    answer = cast("JsonObject", value)
    return result_from_wire(answer["result"]), usage_from_json(answer.get("used", {}))


_CALL: Final = Codec(lambda answer: call_to_json(*answer), _call_read)


def _agent_call_written(answer: tuple[ToolResult, Sequence[JsonObject]]) -> JsonValue:
    result, made = answer
    return {"result": result_to_wire(result), "made": list(made)}


def _agent_call_read(value: JsonValue) -> tuple[ToolResult, Sequence[JsonObject]]:
    answer = cast("JsonObject", value)
    return _call_read(answer)[0], cast("Sequence[JsonObject]", answer["made"])


_AGENT_CALL: Final = Codec(_agent_call_written, _agent_call_read)


def _tool_to_json(tool: Tool) -> JsonValue:
    facts: dict[str, JsonValue] = {"source": tool.source, "repeatable": tool.repeatable}
    if tool.server_name is not None:
        facts["server"] = tool.server_name
    return {"spec": tool_to_json(tool.spec), **facts}


def _tools_to_json(tools: Sequence[Tool]) -> JsonValue:
    return [_tool_to_json(tool) for tool in tools]


def _recorded_tools(
    value: JsonValue, live: Callable[[], Awaitable[Sequence[Tool]]]
) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for item in cast("Sequence[JsonObject]", value):
        spec = cast("JsonObject", item["spec"])
        server = item.get("server")
        tools.append(
            RecordedTool(
                tool_from_json(spec),
                cast("ToolSource", item["source"]),
                None if server is None else str(server),
                item.get("repeatable") is True,
                live,
            )
        )
    return tuple(tools)


def _charge(meter: Meter, used: Usage) -> None:
    for _ in range(used.requests):
        meter.count_request()
    for _ in range(used.tool_calls):
        meter.count_tool_call()
    meter.count_answer(replace(used, requests=0, tool_calls=0))
