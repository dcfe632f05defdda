"""Agent tools: child agents a parent's model calls like tools."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from anyio import Semaphore

from fast_agent.agents.delegation.child_history import call_child
from fast_agent.agents.events import ChildFinished, ChildStarted
from fast_agent.agents.output import JsonSchema
from fast_agent.agents.runtime_options import MAX_DEPTH
from fast_agent.agents.tool_calls import TurnCallContext
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.steps.steps import deadline
from fast_agent.text.frozen import frozen
from fast_agent.tools.tool import agent_tool_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from fast_agent.agents.delegation.child_history import Clone, HistoryRoute
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.tool import ToolContext, ToolSource

MAX_ANSWER = 1_000_000
"""Most characters of text the parent is given of one answer; base64 may be 16 times as long.

The middle of a longer one is left out. What is merged into a history is whole.
"""

EMPTY_ANSWER = "[the agent returned an empty answer]"
"""What the parent receives for an empty answer."""

MAX_DESCRIPTION = 1000
"""Longest description taken from an instruction, in characters."""

MESSAGE_SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "what to send to the agent"}},
    "required": ["message"],
    "additionalProperties": False,
}


class ChildCallLimits:
    """What the children of one parent instance share: its limits, and a count of the clones.

    Args:
        parent: The parent's card.
        max_depth: Deepest nesting of agents.
    """

    def __init__(self, parent: AgentConfig, max_depth: int = MAX_DEPTH) -> None:
        self.parent = parent
        self.max_depth = max_depth
        self._numbers = count(1)
        most = parent.max_parallel
        self.places: AbstractAsyncContextManager[object] = (
            nullcontext() if most is None else Semaphore(most, fast_acquire=True)
        )
        """Entered while a clone runs; waits where `max_parallel` are running."""

    def next_number(self) -> int:
        """Number a clone, from 1."""
        return next(self._numbers)


@frozen
class AgentTool:
    """A child agent as a tool; every call runs on a separate clone.

    Args:
        spec: How the parent's model sees it.
        child: The child's card.
        clone: Makes an instance of it.
        crew: What it shares with the parent's other children.
        route: How histories meet.
        schema: The child's own form of arguments, or None for a `message`.
    """

    spec: ToolSpec
    child: AgentConfig
    clone: Clone
    crew: ChildCallLimits
    route: HistoryRoute
    schema: JsonSchema | None

    @property
    def source(self) -> ToolSource:
        """Where it comes from."""
        return "agent"

    @property
    def server_name(self) -> None:
        """None: it belongs to no server."""
        return

    @property
    def repeatable(self) -> bool:
        """Whether it may be called again after a crash: no, for what the child may have done."""
        return False

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call a clone of the child."""
        if not isinstance(context, TurnCallContext):
            raise RunError(f"agent `{self.child.name}` can only be called in a turn")
        if context.made is not None:
            context.made.append(call.arguments)
        if context.turn.depth >= self.crew.max_depth:
            reason = f"agents may call each other {self.crew.max_depth} deep at most"
            return self._refused(call, reason)
        message, problem = self._message(call.arguments)
        if problem is not None:
            return self._refused(call, problem)
        async with self.crew.places:
            return await self._notify_around(call, context, message)

    def _message(self, arguments: JsonObject) -> tuple[str, str | None]:
        """Return the message for the child, and what is wrong with the arguments."""
        message = arguments.get("message")
        alone = isinstance(message, str) and len(arguments) == 1
        if self.schema is not None:
            problems = self.schema.problems(arguments)
            if problems is not None:
                return "", f"the arguments do not match its schema: {problems}"
        elif not alone:
            return "", "its only argument is `message`, a string"
        return (str(message) if alone else json.dumps(arguments, ensure_ascii=False)), None

    async def _notify_around(
        self, call: ToolCall, context: TurnCallContext, message: str
    ) -> ToolResult:
        """Run the call between the two events that frame it."""
        listener, name = context.turn.listener, self.child.name
        number = self.crew.next_number()
        shown = self.crew.parent.max_display_instances
        listener(ChildStarted(context.origin, call.id, name, number, shown))
        error: str | None = "cancelled"
        try:
            result = await self._run(call, context, message)
            error = result.text.removeprefix(self._failed) if result.is_error else None
        finally:
            listener(ChildFinished(context.origin, call.id, name, number, error))
        return result

    async def _run(self, call: ToolCall, context: TurnCallContext, message: str) -> ToolResult:
        turn = context.turn.below(context.turn_id, (), depth=1, parent=call.id)
        seconds = self.crew.parent.child_timeout_sec
        ask = partial(
            call_child, self.clone, self.route, context.child_calls, message, index=context.index
        )
        try:
            if seconds is None:
                return ToolResult(call.id, answer_of(await ask(context=turn)))
            with deadline(f"agent {call.id}", seconds):
                return ToolResult(call.id, answer_of(await ask(context=turn)))
        except FastAgentError as error:
            return self._refused(call, error.message)
        reason = f"it did not answer within the {seconds:g} s of `child_timeout_sec`"
        return self._refused(call, reason)

    def _refused(self, call: ToolCall, reason: str) -> ToolResult:
        return ToolResult.error(call.id, f"{self._failed}{reason}")

    @property
    def _failed(self) -> str:
        return f"agent `{self.child.name}` failed: "


def agent_tool(
    child: AgentConfig, clone: Clone, crew: ChildCallLimits, route: HistoryRoute
) -> AgentTool:
    """Make the tool that calls a child.

    Args:
        child: The child's card.
        clone: Makes an instance of it.
        crew: What it shares with the parent's other children.
        route: How histories meet.

    Raises:
        RunError: The child is its own parent, or its `tool_input_schema` is not a JSON Schema.
    """
    if child.name == crew.parent.name:
        raise RunError(f"agent `{child.name}` cannot be a tool of itself")
    own = child.tool_input_schema
    schema = None
    if own is not None:
        own = {"type": "object", **own}
        schema = JsonSchema(own, f"`tool_input_schema` of agent `{child.name}`")
    spec = ToolSpec(
        agent_tool_name(child.name), describe(child), MESSAGE_SCHEMA if own is None else own
    )
    return AgentTool(spec, child, clone, crew, route, schema)


def answer_of(turn: TurnResult) -> tuple[Content, ...]:
    """Return a child's answer as the result of a call: bounded, and never empty."""
    content = turn.message.content
    texts = [block.text for block in content if isinstance(block, TextContent)]
    if len(texts) == len(content):
        size = sum(map(len, texts))
        if not size:
            return (TextContent(EMPTY_ANSWER),)
        if size <= MAX_ANSWER:
            return content
    from fast_agent.mcp.content import bounded

    return bounded(content, MAX_ANSWER)


def describe(agent: AgentConfig) -> str:
    """Return what an agent is for: its description, else the first paragraph of its instruction."""
    if agent.description and agent.description.strip():
        return agent.description.strip()
    for paragraph in (agent.instruction or "").split("\n\n"):
        text = " ".join(paragraph.split())
        if text:
            if len(text) <= MAX_DESCRIPTION:
                return text
            return text[:MAX_DESCRIPTION].rsplit(" ", 1)[0] + " …"
    return f"sends a message to the agent `{agent.name}`"
