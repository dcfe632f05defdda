"""Tool calls: running those of one response.

A call always ends in a result. What a tool raises is logged and becomes an error result; so does a
call of a tool that is not there. Only a usage limit and a cancelled turn go further, and both leave
an error result for each call they kept from running.

A `ChildCallBatch` is the parent's side of the calls of one message, as its children meet it.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from dataclasses import KW_ONLY, replace
from logging import getLogger
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.agents.events import ToolFinished, ToolProgressed, ToolStarted
from fast_agent.errors import FastAgentError, LimitError, RunError, SessionError
from fast_agent.messages.message import NO_OBJECT, TextContent, ToolResult
from fast_agent.steps.steps import here
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import describe_error
from fast_agent.tools.tool import MissingDependencyError, ToolContext, no_progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agents.budget import Budget
    from fast_agent.agents.events import Origin
    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.agents.turn_context import SharedConversation, TurnContext
    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.messages.message import Message, ToolCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import Progress, Tool
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)

CANCELLED = "cancelled before it finished"
_MAX_SHOWN = 200


Delivery: TypeAlias = "Callable[[], Awaitable[None]]"
"""Puts what one child leaves where it goes; it does not raise, and no cancellation stops it."""


class ChildCallBatch:
    """The conversation before the calls, and what their children leave behind.

    What children leave is put where it goes when all calls of the message have ended, in the order
    of the calls, not of their ends. What goes into the parent's own conversation lands at the
    end of its turn: before that there is no place in it where providers would accept a user.

    Args:
        before: The parent's conversation before the message that made the calls.
        warn: Called with each problem that did not stop the calls.
        concurrent: Whether the calls run at the same time.
        conversation: The agents of the conversation; None outside a runtime.

    Attributes:
        before: The same.
        warn: The same.
        concurrent: The same.
        conversation: The same.
        external_messages: What is to land in the parent's conversation.
    """

    __slots__ = ("_deliveries", "before", "concurrent", "conversation", "external_messages", "warn")

    def __init__(
        self,
        before: Transcript,
        warn: Callable[[str], None],
        *,
        concurrent: bool = False,
        conversation: SharedConversation | None = None,
    ) -> None:
        self.before = before
        self.warn = warn
        self.concurrent = concurrent
        self.conversation = conversation
        self.external_messages: list[Message] = []
        self._deliveries: list[tuple[int, Delivery]] = []

    def add_external(self, messages: Sequence[Message]) -> None:
        """Add messages to the parent's conversation as one block."""
        self.external_messages.extend(messages)

    def defer(self, index: int, landing: Delivery) -> None:
        """Defer the delivery of messages.

        Args:
            index: Which call of the message it is, from 0.
            landing: Called when its turn has come.
        """
        self._deliveries.append((index, landing))

    async def deliver(self) -> None:
        """Land what was left, in the order of the calls."""
        landings, self._deliveries = self._deliveries, []
        landings.sort(key=itemgetter(0))
        for _, deliver in landings:
            await deliver()


@frozen
class TurnCallContext(ToolContext):
    """The context of a call made in a turn, with what a tool that starts agents needs.

    Args:
        origin: The turn, for events.
        turn: What the agents it starts inherit.
        child_calls: The conversation before the message that made the call, and what agents leave.
        index: Which call of the message it is, from 0.
        made: Where an agent that is called notes the arguments it got, after hooks; None where
            they are not needed.
    """

    _: KW_ONLY
    origin: Origin
    turn: TurnContext
    child_calls: ChildCallBatch
    index: int
    made: list[JsonObject] | None = None


class ToolCalls:
    """The calls of one response, and what came of them.

    Args:
        calls: The calls, in order; ids are unique.
        tools: The tools offered, by name.
        life: The turn.
        turn: What agents started by a call inherit.
        budget: What to charge.
        child_calls: What agents the calls start see of the conversation, and what they leave in it.

    Attributes:
        child_calls: The same.
    """

    __slots__ = (
        "_budget",
        "_calls",
        "_exceeded",
        "_life",
        "_results",
        "_tools",
        "_turn",
        "child_calls",
    )

    def __init__(
        self,
        calls: Sequence[ToolCall],
        tools: ToolTable,
        *,
        life: TurnLife,
        turn: TurnContext,
        budget: Budget,
        child_calls: ChildCallBatch,
    ) -> None:
        self._calls = calls
        self._tools = tools
        self._life = life
        self._turn = turn
        self._budget = budget
        self.child_calls = child_calls
        self._results: list[ToolResult | None] = [None] * len(calls)
        self._exceeded: RunError | SessionError | None = None

    async def run(self) -> None:
        """Run every call; `results` then holds what came of each.

        Raises:
            LimitError: A call would have exceeded a limit; the calls before it were made.
            RunError: A tool needs a value the program did not pass.
            SessionError: A result could not be written; the calls were made.
        """
        try:
            # A task group costs more than a whole turn without one.
            if not self.child_calls.concurrent:
                for index in range(len(self._calls)):
                    await self._run_one(index)
            else:
                from anyio import create_task_group

                async with create_task_group() as group:
                    for index in range(len(self._calls)):
                        group.start_soon(self._run_one, index)
        finally:
            await self.child_calls.deliver()
        if self._exceeded is not None:
            raise self._exceeded

    def results(self) -> tuple[ToolResult, ...]:
        """Return one result for each call, in call order; what did not finish was cancelled."""
        return tuple(
            result if result is not None else ToolResult.error(call.id, CANCELLED)
            for call, result in zip(self._calls, self._results, strict=True)
        )

    async def _run_one(self, index: int) -> None:
        call = self._calls[index]
        tool = self._tools.get(call.name)
        if tool is None:
            result = self._tools.unknown(call)
        elif NO_OBJECT in call.arguments:
            written = str(call.arguments[NO_OBJECT])[:_MAX_SHOWN]
            reason = f"the arguments of `{call.name}` are not a JSON object: {written}"
            result = ToolResult.error(call.id, reason)
        else:
            result = await self._attempt(call, tool, index)
        self._results[index] = result
        try:
            await self._life.journal.tool_answered(result)
        except SessionError as error:
            self._exceeded = self._exceeded or error
            return
        self._life.notify(ToolFinished, call, result)

    async def _attempt(self, call: ToolCall, tool: Tool, index: int) -> ToolResult:
        try:
            self._budget.take_tool_call()
        except LimitError as error:
            self._exceeded = self._exceeded or error
            return ToolResult.error(call.id, f"not run: {error.message}")
        self._life.notify(ToolStarted, call, tool.source, tool.server_name)
        try:
            result = await self._call(call, tool, index)
        except CancelledError:
            task = current_task()
            if task is None or task.cancelling():
                raise
            # This turn was not cancelled: the tool let its own cancellation escape.
            result = ToolResult.error(call.id, f"tool `{call.name}` was cancelled")
        except MissingDependencyError as error:  # the program's fault: no model can do anything
            self._exceeded = self._exceeded or error
            result = ToolResult.error(call.id, error.message)
        except FastAgentError as error:
            log.warning("tool `%s` failed", call.name, exc_info=True)
            result = ToolResult.error(call.id, error.message)
        except Exception as error:  # the boundary of a tool call
            log.exception("tool `%s` failed", call.name)
            result = ToolResult.error(
                call.id, f"tool `{call.name}` failed: {describe_error(error)}"
            )
        if result.is_error and self._turn.redact is not None:
            result = _redacted(result, self._turn.redact)
        return result if result.id == call.id else replace(result, id=call.id)

    async def _call(self, call: ToolCall, tool: Tool, index: int) -> ToolResult:
        place = here()
        if not place.silent:
            from fast_agent.agents.step_tools import call_agent_in_step, call_in_step

            context = self._context(call, index)
            if tool.source == "agent":
                made: list[JsonObject] = []
                noting = replace(context, made=made), made
                return await call_agent_in_step(tool, call, place, context, noting)
            return await call_in_step(tool, call, place, context, self._turn)
        charges = self._turn.charges
        if charges is None or tool.server_name is None:
            return await tool.call(call, self._context(call, index))
        with charges.entered(self._life.origin.agent, self._turn.meters):
            return await tool.call(call, self._context(call, index))

    def _context(self, call: ToolCall, index: int) -> TurnCallContext:
        origin, conversation = self._life.origin, self._turn.conversation
        return TurnCallContext(
            agent_name=origin.agent,
            turn_id=origin.turn_id,
            call_id=call.id,
            correlation_id=self._turn.correlation_id or origin.turn_id,
            progress=self._progress_of(call.id),
            human=self._turn.human,
            conversation=None if conversation is None else conversation.conversation,
            origin=origin,
            turn=self._turn,
            child_calls=self.child_calls,
            index=index,
            deps=self._turn.deps,
        )

    def _progress_of(self, call_id: str) -> Progress:
        life = self._life
        if not life.is_heard:
            return no_progress

        def notify(progress: float, total: float | None, message: str | None) -> None:
            life.notify(ToolProgressed, call_id, progress, total, message)

        return notify


def _redacted(result: ToolResult, redact: Callable[[str], str]) -> ToolResult:
    """Hide secrets in the texts of an error: messages of libraries name addresses and passwords."""
    content = tuple(
        replace(block, text=redact(block.text)) if isinstance(block, TextContent) else block
        for block in result.content
    )
    return replace(result, content=content)
