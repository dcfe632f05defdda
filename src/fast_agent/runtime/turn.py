"""Turn: from a user message to the answer that ends it.

One loop: ask the model, run the tools it calls, ask again, until an answer calls none. The turn
works on a draft of the conversation and hands it over in one step, so that nobody ever sees a tool
call without its result:

* an answered turn leaves all its messages;
* a cancelled turn leaves what was said and done so far: open calls get a "cancelled" error result,
  and a note in the assistant's place ends the turn, so that the next user message may follow;
* a turn that fails before its first answer leaves nothing, so that the same message can be sent
  again; one that fails later is kept and closed like a cancelled one.
"""

from __future__ import annotations

from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING, Protocol

from fast_agent.errors import FastAgentError, ModelError, RunError
from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest, TextDelta
from fast_agent.runtime.budget import Budget, Meter
from fast_agent.runtime.events import (
    ModelAnswered,
    ModelRequested,
    Origin,
    TextStreamed,
    ThinkingStreamed,
    TurnFinished,
    TurnStarted,
)
from fast_agent.runtime.output import correction
from fast_agent.runtime.scope import Scope
from fast_agent.runtime.tool_calls import ToolCalls, told
from fast_agent.runtime.view import error_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fast_agent.cards.request_params import RequestParams
    from fast_agent.messages.message import StopReason
    from fast_agent.models.model import Delta, DeltaSink, Model, ModelResponse
    from fast_agent.models.usage import Usage
    from fast_agent.runtime.conversation import Conversation
    from fast_agent.runtime.events import Listener
    from fast_agent.runtime.output import OutputShape
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)


class ToolSource(Protocol):
    """Where the tools of an agent come from."""

    async def table(self) -> ToolTable:
        """Give the tools now; cheap when nothing changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSetup:
    """What all turns of one agent instance have in common.

    Args:
        agent: The agent's name.
        model: Its model.
        render: Gives the system prompt.
        tools: Its tools.
        params: Request parameters; those of the loop itself are set too.
        max_iterations: Most model requests of one turn.
    """

    agent: str
    model: Model
    render: Callable[[], Awaitable[str]]
    tools: ToolSource
    params: RequestParams
    max_iterations: int


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn gave.

    Args:
        turn_id: The turn.
        message: The answer.
        stop_reason: Why it ended.
        usage: What the agent itself used.
        tree_usage: The same with everything the turn started.
        messages: Every message of the turn, the user's first.
        structured: The value of a structured answer, or None.
    """

    turn_id: str
    message: Message
    stop_reason: str
    usage: Usage
    tree_usage: Usage
    messages: tuple[Message, ...]
    structured: object = None

    @property
    def text(self) -> str:
        """The answer's text."""
        return self.message.text


class Turn:
    """One turn, run once.

    Args:
        setup: What all turns of the instance share.
        turn_id: Its id.
        draft: The conversation it adds to; nobody else holds it.
        keep: Takes the draft when the turn ends and something of it is to stay.
        scope: Where it stands.
        meters: The agent's own meter, and the one its limits hold for.
        output: The shape the answer must have, or None.
    """

    __slots__ = (
        "_answered",
        "_budget",
        "_corrected",
        "_draft",
        "_keep",
        "_listener",
        "_origin",
        "_output",
        "_own",
        "_requests",
        "_running",
        "_scope",
        "_setup",
        "_structured",
        "_tree",
    )

    def __init__(
        self,
        setup: TurnSetup,
        turn_id: str,
        draft: Conversation,
        keep: Callable[[Conversation], None],
        scope: Scope,
        meters: tuple[Meter, Meter],
        output: OutputShape | None,
    ) -> None:
        self._setup = setup
        self._draft = draft
        self._keep = keep
        self._listener: Listener | None = scope.listener
        self._origin = Origin(setup.agent, turn_id, scope.parent_call_id)
        self._own = Meter(setup.agent)
        self._tree = Meter(setup.agent)
        own, limited = meters
        self._budget = Budget((self._own, self._tree, own, limited, *scope.meters))
        self._scope = Scope(
            meters=(self._tree, limited, *scope.meters),
            listener=scope.listener,
            depth=scope.depth,
            parent_call_id=scope.parent_call_id,
            correlation_id=scope.correlation_id or turn_id,
        )
        self._output = output
        self._requests = 0
        self._answered = False
        self._corrected = False
        self._structured: object = None
        self._running: ToolCalls | None = None

    async def run(self, message: Message) -> TurnResult:
        """Run the turn.

        Args:
            message: The user's message.

        Raises:
            ModelError: The model did not answer.
            LimitError: A usage limit was reached.
            RunError: The turn failed otherwise.
        """
        listener = self._listener
        if listener is not None:
            listener(TurnStarted(self._origin, message))
        start = len(self._draft.history)
        try:
            answer = await self._converse(message)
        except FastAgentError as error:
            self._abandon("error", error.message)
            raise
        except Exception as error:
            log.exception("a turn of agent `%s` failed", self._origin.agent)
            self._abandon("error", told(error))
            msg = f"agent `{self._origin.agent}` failed: {told(error)}"
            raise RunError(msg) from error
        except BaseException:
            self._abandon("cancelled", None)
            raise
        self._keep(self._draft)
        result = TurnResult(
            self._origin.turn_id,
            answer,
            answer.stop_reason or "endTurn",
            self._own.usage,
            self._tree.usage,
            self._draft.history[start:],
            self._structured,
        )
        if listener is not None:
            listener(
                TurnFinished(
                    self._origin, result.stop_reason, answer, result.usage, result.tree_usage
                )
            )
        return result

    async def _converse(self, message: Message) -> Message:
        setup = self._setup
        self._draft.append(message)
        tools = await setup.tools.table()
        system = await setup.render()
        while True:
            answer = await self._ask(system, tools)
            if not answer.tool_calls:
                self._draft.append(answer)
                if self._output is None or self._conforms(answer, self._output):
                    return answer
            elif self._requests < setup.max_iterations:
                await self._run_tools(answer, tools)
                tools = await setup.tools.table()
            else:
                return self._stop(answer)

    async def _ask(self, system: str, tools: ToolTable) -> Message:
        self._budget.take_request()
        self._requests += 1
        setup, listener, output = self._setup, self._listener, self._output
        request = ModelRequest(
            system,
            self._draft.view,
            tools.specs,
            setup.params,
            None if output is None else output.schema,
        )
        if listener is not None:
            listener(ModelRequested(self._origin, setup.model.name, self._requests))
        if setup.params.timeout_seconds is None:
            response = await setup.model.request(request, self._sink())
        else:
            response = await self._ask_in_time(request, setup.params.timeout_seconds)
        self._budget.settle(response.usage)
        self._answered = True
        answer = response.message
        if answer.tool_calls:
            answer = self._draft.with_own_ids(answer)
        if listener is not None:
            listener(ModelAnswered(self._origin, answer, response.usage, self._requests))
        return answer

    async def _ask_in_time(self, request: ModelRequest, seconds: float) -> ModelResponse:
        from anyio import move_on_after

        with move_on_after(seconds):
            return await self._setup.model.request(request, self._sink())
        msg = f"model `{self._setup.model.name}` did not answer within {seconds:g} s"
        raise ModelError(msg, hint="raise `request_params.timeout_seconds`")

    async def _run_tools(self, answer: Message, tools: ToolTable) -> None:
        self._running = running = ToolCalls(
            answer.tool_calls,
            tools,
            origin=self._origin,
            scope=self._scope,
            budget=self._budget,
            history=self._draft.history,
        )
        self._draft.append(answer)
        await running.run(parallel=self._setup.params.parallel_tool_calls is not False)
        self._running = None
        self._draft.append(Message("user", tool_results=running.results()))

    def _stop(self, answer: Message) -> Message:
        """End the turn at an answer whose calls may not be run any more."""
        limit = self._setup.max_iterations
        reason = f"not run: the turn reached its {limit} model requests (`max_iterations`)"
        results = tuple(error_result(call.id, reason) for call in answer.tool_calls)
        text = answer.text or f"[stopped after {limit} model requests (`max_iterations`)]"
        last = Message.assistant(text, "maxIterations")
        self._draft.append(answer)
        self._draft.append(Message("user", tool_results=results))
        self._draft.append(last)
        return last

    def _conforms(self, answer: Message, output: OutputShape) -> bool:
        """Take the value of a structured answer; the first wrong one is sent back once."""
        try:
            self._structured = output.parse(answer.text)
        except ValueError as error:
            if self._corrected or self._requests >= self._setup.max_iterations:
                msg = f"agent `{self._origin.agent}` gave no valid structured answer: {error}"
                raise RunError(msg) from error
            self._corrected = True
            self._draft.append(Message.user(correction(error)))
            return False
        return True

    def _sink(self) -> DeltaSink | None:
        listener = self._listener
        if listener is None:
            return None

        def tell(delta: Delta) -> None:
            kind = TextStreamed if isinstance(delta, TextDelta) else ThinkingStreamed
            listener(kind(self._origin, delta.text))

        return tell

    def _abandon(self, stop_reason: StopReason, error: str | None) -> None:
        """End a turn that has no answer, without waiting for anything."""
        if self._answered or stop_reason == "cancelled":
            self._close(stop_reason)
            self._keep(self._draft)
        listener = self._listener
        if listener is not None:
            own, tree = self._own.usage, self._tree.usage
            listener(TurnFinished(self._origin, stop_reason, None, own, tree, error))

    def _close(self, stop_reason: StopReason) -> None:
        draft = self._draft
        if self._running is not None:
            draft.append(Message("user", tool_results=self._running.results()))
        if len(draft.history) and draft.history[-1].role == "user":
            draft.append(Message.assistant(NOTES[stop_reason], stop_reason))


NOTES: Mapping[StopReason, str] = {
    "cancelled": "[cancelled before an answer]",
    "error": "[no answer: the turn failed]",
}
"""What stands in the answer's place."""
