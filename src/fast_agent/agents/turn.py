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

from logging import getLogger
from typing import TYPE_CHECKING, Final

from fast_agent.agents.budget import Budget, Meter
from fast_agent.agents.call_site import CallSite
from fast_agent.agents.events import (
    ModelAnswered,
    ModelRequested,
    Origin,
    Steered,
    TextStreamed,
    ThinkingStreamed,
    TurnFinished,
    TurnStarted,
    Warned,
)
from fast_agent.agents.output import correction
from fast_agent.agents.tool_calls import ToolCalls
from fast_agent.agents.turn_setup import MAX_WITHOUT_TOOLS, TurnResult
from fast_agent.config.bounds import MAX_ITERATIONS
from fast_agent.errors import ContextError, FastAgentError, ModelError, RunError, ToolError
from fast_agent.messages.message import Message
from fast_agent.messages.view import error_result
from fast_agent.models.model import ModelRequest, TextDelta
from fast_agent.models.usage import ContextUse
from fast_agent.sessions.cumulative import Entry
from fast_agent.tools.result import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import Listener
    from fast_agent.agents.journal import MemoryRecord, TurnJournal
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.scope import Scope
    from fast_agent.agents.steering import Steering
    from fast_agent.agents.turn_setup import TurnSetup
    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.messages.message import StopReason
    from fast_agent.models.model import Delta, DeltaSink, ModelResponse
    from fast_agent.models.usage import Usage
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)


class Turn:
    """One turn, run once.

    Args:
        setup: What all turns of the instance share.
        turn_id: Its id.
        draft: The conversation it adds to; nobody else holds it.
        keep: Takes the draft when the turn ends and something of it is to stay; says whether it is
            remembered.
        scope: Where it stands.
        meters: The agent's own meter, and the one its limits hold for.
        output: The shape the answer must have, or None.
        record: What a journal holds of the history it goes into, or None.
        steering: The messages a user sends into it, or None.
    """

    __slots__ = (
        "_adopted",
        "_answered",
        "_below",
        "_budget",
        "_corrected",
        "_draft",
        "_journal",
        "_keep",
        "_kept",
        "_limited",
        "_listener",
        "_origin",
        "_output",
        "_own",
        "_requests",
        "_running",
        "_scope",
        "_settled",
        "_setup",
        "_start",
        "_steering",
        "_structured",
        "_unheard",
    )

    def __init__(
        self,
        setup: TurnSetup,
        turn_id: str,
        draft: Conversation,
        keep: Callable[[Conversation], bool],
        scope: Scope,
        meters: tuple[Meter, Meter],
        output: OutputShape | None,
        record: MemoryRecord | None = None,
        steering: Steering | None = None,
    ) -> None:
        self._setup = setup
        self._draft = draft
        self._keep = keep
        self._listener: Listener | None = scope.listener
        self._origin = Origin(setup.agent, turn_id, scope.parent_call_id)
        self._own = Meter(setup.agent)
        own, self._limited = meters
        self._budget = Budget((self._own, own, self._limited, *scope.meters))
        self._scope = scope
        self._below: tuple[Meter, Scope] | None = None
        self._output = output
        self._requests = 0
        self._answered = False
        self._corrected = False
        self._structured: object = None
        self._running: ToolCalls | None = None
        self._start = len(draft.history)
        self._settled = False
        self._unheard: ModelAnswered | None = None
        self._kept = False
        self._steering = steering
        self._adopted: list[Message] = []
        self._journal: TurnJournal | None = None
        if scope.journal is not None:
            from fast_agent.agents.journal import TurnJournal

            self._journal = TurnJournal(
                scope.journal,
                self._origin,
                scope,
                record=record,
                start=self._start,
                spent=self._spent,
            )

    async def run(self, message: Message) -> TurnResult:
        """Run the turn.

        Args:
            message: The user's message.

        Raises:
            ModelError: The model did not answer.
            LimitError: A usage limit was reached.
            SessionError: It could not be written down.
            RunError: The turn failed otherwise.
        """
        listener, journal = self._listener, self._journal
        if journal is not None:
            journal.began(message)
        if listener is not None:
            listener(TurnStarted(self._origin, message))
        try:
            answer = await self._converse(message)
            said = self._settle()
            if journal is not None:
                reason, history = answer.stop_reason or "endTurn", self._draft.history
                await journal.end_surely(reason, history, kept=self._kept, adopted=self._adopted)
                self._tell_unheard()
            if self._setup.hooks is not None:
                history = self._draft.history
                before = history.prefix(len(history) - 1)
                await self._hooked("after_turn_complete", answer, before)
        except FastAgentError as error:
            self._hide_in(error)
            self._abandon("error", error.message)
            raise
        except Exception as error:
            log.exception("a turn of agent `%s` failed", self._origin.agent)
            problem = RunError(f"agent `{self._origin.agent}` failed: {describe_error(error)}")
            problem.__cause__ = error
            self._hide_in(problem)
            self._abandon("error", problem.message)
            raise problem  # noqa: B904 (its cause is left out where it names a secret)
        except BaseException:
            self._abandon("cancelled", None)
            raise
        own, tree = self._usages()
        result = TurnResult(
            self._origin.turn_id,
            answer,
            answer.stop_reason or "endTurn",
            own,
            tree,
            said,
            self._structured,
            adopted=tuple(self._adopted),
            context=self._draft.use,
        )
        if listener is not None:
            listener(TurnFinished(self._origin, result.stop_reason, answer, own, tree))
        return result

    def _hide_in(self, error: FastAgentError) -> None:
        if self._scope.redact is not None:
            error.hide(self._scope.redact)

    async def _converse(self, message: Message) -> Message:
        setup = self._setup
        if setup.hooks is None:
            self._draft.append(message)
        else:
            await self._add(message)
        tools = await setup.tools.table(reads_results=self._draft.has_cut)
        system = await setup.render()
        while True:
            answer = await self._ask(system, tools)
            if not answer.tool_calls:
                self._draft.append(answer)
                if self._output is None:
                    return answer
                problem = self._read(answer, self._output, tools)
                if problem is None:
                    return answer
                await self._add(Message.user(problem))
            elif self._requests < self._most(tools):
                await self._run_tools(answer, tools)
                if self._steering is not None and self._steering.waits:
                    await self._take_steering(self._steering)
                tools = await self._tools_now(tools)
            else:
                return self._stop(answer, self._most(tools))

    async def _take_steering(self, steering: Steering) -> None:
        for message in steering.take():
            await self._add(message)
            if self._journal is not None:
                self._journal.reached(self._draft.history)
            if self._listener is not None:
                self._listener(Steered(self._origin, message))

    def _most(self, tools: ToolTable) -> int:
        """Give the most model requests of this turn."""
        given = self._setup.max_iterations
        return given or (MAX_ITERATIONS if tools.specs else MAX_WITHOUT_TOOLS)

    async def _tools_now(self, before: ToolTable) -> ToolTable:
        """Give the tools for the next request; those of before where a server is lost meanwhile."""
        try:
            return await self._setup.tools.table(reads_results=self._draft.has_cut)
        except ToolError as error:
            self._warn(error.message)
            return before

    async def _ask(self, system: str, tools: ToolTable) -> Message:
        if self._journal is not None:
            self._journal.reached(self._draft.history)
        if self._budget.bounds_tokens:
            await self._budget.wait_for_room()
        self._budget.take_request()
        self._requests += 1
        setup, listener = self._setup, self._listener
        try:
            response = await self._answer_of(system, tools)
        except BaseException:
            self._budget.give_up()
            raise
        self._budget.settle(response.usage)
        self._answered = True
        used = response.usage.total_tokens
        self._draft.use = use = ContextUse(used, setup.window or response.window)
        answer = self._draft.with_own_ids(response.message)
        if setup.hooks is not None:
            wanted = await self._hooked("after_llm_call", answer, self._draft.history)
            if wanted is not answer:
                self._draft.free_ids(answer)
                answer = self._draft.with_own_ids(wanted)
        journal = self._journal
        # The last answer is written with the end of the turn at once, and heard of after that.
        last = journal is not None and not answer.tool_calls and self._output is None
        if journal is not None:
            journal.answered(answer, self._draft.history, last=last)
        if listener is not None:
            event = ModelAnswered(self._origin, answer, response.usage, self._requests, use)
            if last:
                self._unheard = event
            else:
                listener(event)
        return answer

    async def _answer_of(self, system: str, tools: ToolTable) -> ModelResponse:
        """Ask the model, with what it has room for."""
        use, share = self._draft.use, self._setup.compaction.share
        if use is not None and use.window is not None and share is not None:
            tools = await self._make_room(use.used, use.window, share, tools)
        try:
            return await self._request(system, tools)
        except ContextError as error:
            return await self._request_with_less(error, system, tools)

    async def _make_room(self, used: int, window: int, share: float, tools: ToolTable) -> ToolTable:
        """Leave out what a conversation has no room for, before the model refuses it.

        Returns:
            The tools to ask with.
        """
        from fast_agent.agents.context_size import size_of_view, size_since_answer

        most = share * window
        now = used + size_since_answer(self._draft.view)
        if now < most:
            return tools
        whole = size_of_view(self._draft.view)
        if self._draft.shorten():
            self._warn(_FILLING.format(model=self._setup.model.name, share=share))
            now -= whole - size_of_view(self._draft.view)
        if now >= most:
            why = _AT_SHARE.format(model=self._setup.model.name, share=share)
            await self._compact(why, window)
        return await self._tools_now(tools)

    async def _request_with_less(
        self, error: ContextError, system: str, tools: ToolTable
    ) -> ModelResponse:
        """Ask the model again, with less of a conversation that is too long for it each time.

        Raises:
            ContextError: There is no less to ask it with.
        """
        if self._setup.compaction.share is None:
            raise error
        while True:
            if self._draft.shorten():
                self._warn(_SHORTENED.format(model=self._setup.model.name))
            elif not await self._compact(_TOO_LONG.format(model=self._setup.model.name)):
                raise error
            tools = await self._tools_now(tools)
            try:
                return await self._request(system, tools)
            except ContextError as again:
                error = again

    async def _compact(self, why: str, window: int | None = None) -> bool:
        """Put a summary in the place of what was said first; whether that could be done."""
        from fast_agent.agents.compaction import asking, compact, start_for

        start = start_for(self._draft, self._start)
        if start is None:
            return False
        try:
            ask = asking(self._setup, self._budget, self._scope_below())
            compaction = await compact(self._draft, start, ask, window=window)
        except ModelError as error:
            self._warn(f"the conversation could not be summarized: {error.message}")
            return False
        self._draft.compact(compaction)
        self._warn(f"{why}: {_COMPACTED.format(messages=start)}")
        return True

    async def _request(self, system: str, tools: ToolTable) -> ModelResponse:
        setup, output = self._setup, self._output
        request = ModelRequest(
            system,
            self._draft.view,
            tools.specs,
            setup.params,
            None if output is None else output.schema,
        )
        if self._listener is not None:
            self._listener(ModelRequested(self._origin, setup.model.name, self._requests))
        if setup.params.timeout_seconds is None:
            return await setup.model.request(request, self._sink())
        return await self._ask_in_time(request, setup.params.timeout_seconds)

    async def _ask_in_time(self, request: ModelRequest, seconds: float) -> ModelResponse:
        from anyio import move_on_after

        with move_on_after(seconds):
            return await self._setup.model.request(request, self._sink())
        msg = f"model `{self._setup.model.name}` did not answer within {seconds:g} s"
        raise ModelError(msg, hint="raise `request_params.timeout_seconds`")

    async def _run_tools(self, answer: Message, tools: ToolTable) -> None:
        draft, scope = self._draft, self._scope_below()
        await self._hooked("before_tool_call", answer, draft.history)
        calls = answer.tool_calls
        concurrent = len(calls) > 1 and self._setup.params.parallel_tool_calls is not False
        self._running = running = ToolCalls(
            calls,
            tools,
            origin=self._origin,
            scope=scope,
            budget=self._budget,
            site=CallSite(draft.draft(), self._warn, concurrent=concurrent, cast=scope.cast),
            record=None if self._journal is None else self._journal.tool_answered,
        )
        draft.append(answer)
        await running.run()
        self._adopted += running.site.adopted
        results = Message("user", tool_results=running.results())
        await self._hooked("after_tool_call", results, draft.history)
        self._running = None
        await self._add(results)

    def _scope_below(self) -> Scope:
        """Give where the agents stand that tools start."""
        if self._below is None:
            below = Meter(self._setup.agent)
            meters = below, self._limited
            self._below = below, self._scope.below(self._origin.turn_id, meters)
        return self._below[1]

    def _usages(self) -> tuple[Usage, Usage]:
        """Give what the agent itself used, and the same with everything below it."""
        own = self._own.usage
        return own, own if self._below is None else own + self._below[0].usage

    def _spent(self) -> Usage:
        return self._usages()[1]

    def _stop(self, answer: Message, limit: int) -> Message:
        """End the turn at an answer whose calls may not be run any more."""
        reason = f"not run: the turn reached its {limit} model requests (`max_iterations`)"
        results = tuple(error_result(call.id, reason) for call in answer.tool_calls)
        text = answer.text or f"[stopped after {limit} model requests (`max_iterations`)]"
        last = Message.assistant(text, "maxIterations")
        self._draft.append(answer)
        self._draft.append(Message("user", tool_results=results))
        self._draft.append(last)
        return last

    def _read(self, answer: Message, output: OutputShape, tools: ToolTable) -> str | None:
        """Take the value of a structured answer; else say what the model is told, but only once."""
        agent = self._origin.agent
        if answer.stop_reason == "refusal":
            msg = f"agent `{agent}` refused to answer: {_begin(answer.text)}"
            raise RunError(msg, hint="change the message, or use another model")
        try:
            self._structured = output.parse(answer.text)
        except ValueError as error:
            if answer.stop_reason == "maxTokens":
                msg = f"the structured answer of agent `{agent}` was cut: {_begin(answer.text)}"
                raise RunError(msg, hint="raise `request_params.max_tokens`") from error
            if self._corrected or self._requests >= self._most(tools):
                msg = f"agent `{self._origin.agent}` returned an invalid structured answer: {error}"
                raise RunError(msg, hint=_OTHER_FORM) from error
            self._corrected = True
            self._warn("the structured answer was wrong and is asked for once more")
            return correction(error)
        return None

    async def _add(self, message: Message) -> None:
        """Add what the model is to answer next, or what a hook puts in its place."""
        hooks = self._setup.hooks
        if hooks is None or not hooks.has("before_llm_call"):
            self._draft.append(message)
            return
        before = self._draft.draft()
        self._draft.append(message)
        wanted = await self._hooked("before_llm_call", message, before.history)
        if wanted is not message:
            before.append(wanted)
            self._draft = before

    async def _hooked(
        self, point: HookPoint, message: Message, history: Sequence[Message]
    ) -> Message:
        """Run the hooks of a point; returns the message, or what they put in its place."""
        hooks = self._setup.hooks
        if hooks is None or not hooks.has(point):
            return message
        return await hooks.run(
            point,
            message,
            message_history=history,
            iteration=self._requests + (point == "before_llm_call"),
            agent_name=self._origin.agent,
            usage=self._own.usage,
        )

    def _sink(self) -> DeltaSink | None:
        listener = self._listener
        if listener is None:
            return None

        def tell(delta: Delta) -> None:
            kind = TextStreamed if isinstance(delta, TextDelta) else ThinkingStreamed
            listener(kind(self._origin, delta.text))

        return tell

    def _warn(self, message: str) -> None:
        if self._listener is None:
            log.warning("agent `%s`: %s", self._origin.agent, message)
        else:
            self._listener(Warned(self._origin, message))

    def _abandon(self, stop_reason: StopReason, error: str | None) -> None:
        """End a turn that has no answer, without waiting for anything."""
        if not self._settled and (self._answered or stop_reason == "cancelled"):
            self._close(stop_reason)
            self._settle()
        journal = self._journal
        if journal is not None and self._settled:
            history = self._draft.history
            journal.end_quietly(stop_reason, history, kept=self._kept, adopted=self._adopted)
            if journal.ended:
                self._tell_unheard()
        elif journal is not None:
            journal.dropped(stop_reason)
        listener = self._listener
        if listener is not None:
            own, tree = self._usages()
            listener(TurnFinished(self._origin, stop_reason, None, own, tree, error))

    def _tell_unheard(self) -> None:
        event, self._unheard = self._unheard, None
        if event is not None and self._listener is not None:
            self._listener(event)

    def _settle(self) -> tuple[Message, ...]:
        """Hand the conversation over as it stays; returns the messages of the turn.

        What children leave in it stands behind the turn: within, no provider would accept it.
        """
        self._settled = True
        draft = self._draft
        if self._setup.trims:
            draft.trim()
        said = tuple(draft.history.iterate(self._start))
        transcript = self._scope.transcript
        if transcript is not None:
            origin = self._origin
            transcript.append(Entry(origin.agent, origin.turn_id, origin.parent_call_id, said))
        if self._adopted:
            draft = draft.draft()
            behind = len(draft.history)
            draft.append_block(self._adopted)
            self._adopted = list(draft.history[behind:])
        self._kept = self._keep(draft)
        return said

    def _close(self, stop_reason: StopReason) -> None:
        draft = self._draft
        if self._running is not None:
            draft.append(Message("user", tool_results=self._running.results()))
            self._adopted += self._running.site.adopted
        if len(draft.history) and draft.history[-1].role == "user":
            draft.append(Message.assistant(NOTES[stop_reason], stop_reason))


_SHORTENED: Final = (
    "the conversation is too long for `{model}`: most of the tool results is left out of what it"
    " is given, and `read_result` reads them"
)


def _begin(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


_LONGEST_QUOTE: Final = 300
_FILLING: Final = (
    "the conversation takes {share:.0%} of what `{model}` has room for: most of the tool results is"
    " left out of what it is given, and `read_result` reads them"
)
_AT_SHARE: Final = "the conversation takes {share:.0%} of what `{model}` has room for"
_TOO_LONG: Final = "the conversation is too long for `{model}`"
_COMPACTED: Final = (
    "it is given a summary in the place of the first {messages} messages, which stay in the history"
)
_OTHER_FORM: Final = "say in its instruction how to answer, or name another `model`"

NOTES: Mapping[StopReason, str] = {
    "cancelled": "[cancelled before an answer]",
    "error": "[no answer: the turn failed]",
}
"""What stands in the answer's place."""
