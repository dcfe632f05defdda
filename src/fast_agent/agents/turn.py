"""Turn: from a user message to the answer that ends it.

One loop: ask the model, run the tools it calls, ask again, until an answer calls none. The turn
works on a draft of the conversation and hands it over in one step, so that no one sees a tool
call without its result:

* an answered turn leaves all its messages;
* a cancelled turn leaves what was said and done so far: open calls get a "cancelled" error result,
  and a note in the assistant's place ends the turn, so that the next user message may follow;
* a turn that fails before its first answer leaves nothing, so that the same message can be sent
  again; one that fails later is kept and closed like a cancelled one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final

from anyio import CancelScope

from fast_agent.agents.budget import Budget
from fast_agent.agents.events import (
    ModelAnswered,
    ModelRequested,
    Steered,
    TextStreamed,
    ThinkingStreamed,
)
from fast_agent.agents.tool_calls import ChildCallBatch, ToolCalls
from fast_agent.agents.turn_context import MAX_WITHOUT_TOOLS
from fast_agent.config.settings import FULL_START_SHARE, MAX_ITERATIONS, TOKEN_CHARACTERS
from fast_agent.errors import (
    ContextError,
    FastAgentError,
    LimitError,
    ModelError,
    RunError,
    ToolError,
)
from fast_agent.messages.json_message import message_from_wire
from fast_agent.messages.message import Message, ToolResult
from fast_agent.models.model import ContextUse, ModelRequest, TextDelta, compacts, size_of_text
from fast_agent.models.step_model import usage_to_json
from fast_agent.steps.steps import Codec, Step, deadline, here
from fast_agent.tools.result import SKILL_MODEL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agents.history.transcript import Compaction
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import SteeringQueue, TurnContext, TurnSetup
    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.messages.message import ToolCall
    from fast_agent.models.model import Delta, DeltaSink, Model, ModelResponse
    from fast_agent.resources.skill_client.entry import SkillFields
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.toolbox import ToolTable

log = getLogger(__name__)


class Turn:
    """The work of one turn of an agent that asks a model; run once.

    Args:
        setup: What all turns of the instance share.
        life: The turn.
        output: The shape the answer must have, or None.
    """

    __slots__ = (
        "_below",
        "_budget",
        "_corrected",
        "_journal",
        "_life",
        "_model",
        "_models",
        "_output",
        "_requests",
        "_running",
        "_setup",
        "_structured",
    )

    def __init__(self, setup: TurnSetup, life: TurnLife, output: OutputShape | None) -> None:
        self._setup = setup
        self._model = setup.model
        self._models: dict[str, Model] = {}
        self._life = life
        self._journal = life.journal
        self._budget = Budget(life.meters)
        self._below: TurnContext | None = None
        self._output = output
        self._requests = 0
        self._corrected = False
        self._structured: object = None
        self._running: ToolCalls | None = None
        life.trims = setup.config.trim_tool_history

    async def run(self) -> None:
        """Do the work.

        Raises:
            ModelError: The model did not answer.
            LimitError: A usage limit was reached.
            SessionError: It could not be recorded.
            RunError: The turn failed otherwise.
        """
        life = self._life
        life.steering.enter()
        try:
            if life.context.skill is not None:
                self._use_skill(life.context.skill.fields)
            answer = await self._converse(life.message)
        except BaseException:
            self._close_calls()
            raise
        finally:
            life.steering.leave()
            await self._close_models()
        await life.finish(answer, structured=self._structured)
        if self._setup.hooks is not None:
            history = life.draft.history
            before = history.prefix(len(history) - 1)
            await self._hooked("after_turn_complete", answer, before)

    async def _converse(self, message: Message) -> Message:
        setup, life = self._setup, self._life
        if setup.hooks is None:
            life.draft.append(message)
        else:
            await self._add(message)
        tools = await setup.tools.table(reads_results=life.draft.has_cut)
        system = await setup.render()
        while True:
            answer = await self._ask(system, tools)
            if not answer.tool_calls:
                life.draft.append(answer)
                if self._output is None:
                    return answer
                problem = self._read(answer, self._output, tools)
                if problem is None:
                    return answer
                await self._add(Message.user(problem))
            elif self._requests < self._max_requests(tools):
                await self._run_tools(answer, tools)
                if life.steering.waits:
                    await self._take_steering(life.steering)
                tools = await self._tools_now(tools)
            else:
                return self._stop(answer, self._max_requests(tools))

    async def _take_steering(self, steering: SteeringQueue) -> None:
        for message in steering.take():
            await self._add(message)
            await self._journal.reached(self._life.draft.history)
            self._life.notify(Steered, message)

    def _use_skill(self, skill: SkillFields) -> None:
        """Work as the skill says that a user called by the message."""
        if self._setup.permits is not None:
            self._setup.permits.add(self._life.origin.turn_id, skill.allowed_tools)
        if skill.model is not None:
            self._use_model(skill.model)

    def _use_model(self, name: str) -> None:
        """Ask another model from now on; where it cannot be asked, the current one answers on."""
        make = self._setup.model_named
        if make is None:
            return
        try:
            if name not in self._models:
                self._models[name] = make(name)
            unpriced = None if self._budget.money_bound is None else self._setup.unpriced(name)
            if unpriced is None:
                self._model = self._models[name]
                return
            why = "`max_cost` is set, and its price is not known"
        except FastAgentError as error:
            why = error.message
        self._warn(f"`{self._model.name}` answers in place of the skill's model `{name}`: {why}")

    async def _close_models(self) -> None:
        if self._models:
            with CancelScope(shield=True):
                for model in self._models.values():
                    await model.aclose()

    def _max_requests(self, tools: ToolTable) -> int:
        """Return the maximum number of model requests of this turn."""
        given = self._setup.params.max_iterations
        return given or (MAX_ITERATIONS if tools.specs else MAX_WITHOUT_TOOLS)

    async def _tools_now(self, before: ToolTable) -> ToolTable:
        """Return the tools for the next request; the previous ones if a server is lost."""
        try:
            return await self._setup.tools.table(reads_results=self._life.draft.has_cut)
        except ToolError as error:
            self._warn(error.message)
            return before

    async def _ask(self, system: str, tools: ToolTable) -> Message:
        life = self._life
        await self._journal.reached(life.draft.history)
        if self._requests == 0:
            self._check_price()
            if len(life.draft.history) == 1:
                self._warn_of_full_start(system, tools)
        if self._budget.bounds_tokens:
            await self._budget.wait_for_room()
        self._budget.take_request()
        self._requests += 1
        setup = self._setup
        try:
            response = await self._answer_of(system, tools)
        except BaseException:
            self._budget.give_up()
            raise
        self._budget.record_usage(response.usage)
        for note in response.notes:
            life.warn(note)
        life.keeps_failure = True
        draft, used = life.draft, response.usage.total_tokens
        window = setup.window if self._model is setup.model else None
        draft.use = use = ContextUse(used, window or response.window)
        answer = draft.with_own_ids(response.message)
        if setup.hooks is not None:
            wanted = await self._hooked("after_llm_call", answer, draft.history)
            if wanted is not answer:
                draft.free_ids(answer)
                answer = draft.with_own_ids(wanted)
        # The last answer is recorded together with the end of the turn, and reported after that.
        last = not answer.tool_calls and self._output is None
        await self._journal.answered(answer, draft.history, last=last)
        if not last:
            life.notify(ModelAnswered, answer, response.usage, self._requests, use)
        elif life.is_heard:
            event = ModelAnswered(life.origin, answer, response.usage, self._requests, use)
            life.notify_at_end(event)
        return answer

    def _warn_of_full_start(self, system: str, tools: ToolTable) -> None:
        """Warn where the system prompt and the tools leave little room for a conversation."""
        taken = size_of_text(system) + tools.size
        if taken < _SHORT_START // TOKEN_CHARACTERS:
            return
        # A skill may have named another model, of which nothing is known before it answers.
        is_own = self._model is self._setup.model
        window = self._setup.known_window() if is_own else None
        if window is not None and taken > FULL_START_SHARE * window:
            from fast_agent.agents.history.compaction import share_of_start

            parts = share_of_start(system, tools.specs)
            name = self._model.name
            self._warn(_START_IS_FULL.format(model=name, window=window, parts=parts))

    def _check_price(self) -> None:
        """Raise LimitError if a caller bounds money and the price of the model is unknown."""
        owner = self._budget.money_bound
        unpriced = None if owner is None else self._setup.unpriced(None)
        if unpriced is not None:
            raise LimitError(
                f"agent `{owner}` has a `max_cost`, and the price of `{unpriced}` is not known",
                hint=f"set `input_cost` and `output_cost` in `model_facts` of `{unpriced}`",
            )

    async def _answer_of(self, system: str, tools: ToolTable) -> ModelResponse:
        """Ask the model, with what it has room for."""
        made = self._life.draft.compaction
        if made is not None and made.native is not None:
            await self._restore_foreign(made, made.native)
        use, share = self._life.draft.use, self._setup.compaction.share
        if use is not None and use.window is not None and share is not None:
            most = share * use.window
            # Hardly ever near, and asked before every request: a character is a token at most.
            if use.used + self._life.draft.most_since_answer >= most:
                tools = await self._make_room(use.used, use.window, share, system, tools)
        try:
            return await self._request(system, tools)
        except ContextError as error:
            return await self._request_with_less(error, system, tools)

    async def _make_room(
        self, used: int, window: int, share: float, system: str, tools: ToolTable
    ) -> ToolTable:
        """Leave out what a conversation has no room for, before the model refuses it.

        Args:
            used: Tokens in the window at the last answer.
            window: Tokens the window holds.
            share: The part of it that may be used.
            system: The system prompt.
            tools: The tools.

        Returns:
            The tools to ask with.
        """
        from fast_agent.agents.history.compaction import size_of_view, size_since_answer

        most = share * window
        now = used + size_since_answer(self._life.draft.view)
        if now < most:
            return tools
        whole = size_of_view(self._life.draft.view)
        if self._life.draft.shorten():
            self._warn(_FILLING.format(model=self._model.name, share=share))
            now -= whole - size_of_view(self._life.draft.view)
        if now >= most:
            why = _AT_SHARE.format(model=self._model.name, share=share)
            native = ModelRequest(system, (), tools.specs, self._setup.params, compaction="")
            await self._compact(why, window, native)
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
            if self._life.draft.shorten():
                self._warn(_SHORTENED.format(model=self._model.name))
            elif not await self._compact(_TOO_LONG.format(model=self._model.name)):
                raise self._too_long(error, system, tools)
            tools = await self._tools_now(tools)
            try:
                return await self._request(system, tools)
            except ContextError as again:
                error = again

    def _too_long(self, error: ContextError, system: str, tools: ToolTable) -> ContextError:
        """Return the error of a conversation that cannot be shortened, with what fills it."""
        from fast_agent.agents.history import compaction as sizes

        start = size_of_text(system) + tools.size
        if start <= sizes.size_of_view(self._life.draft.view):
            return error
        parts = sizes.share_of_start(system, tools.specs)
        return ContextError(error.message, hint=f"{_FEWER_TOOLS}: {parts}")

    async def _restore_foreign(self, made: Compaction, native: JsonObject) -> None:
        """Replace a compact form that another model cannot read by a summary or the messages."""
        draft, window = self._life.draft, self._setup.window
        if native.get("model") == self._model.name:
            return
        from fast_agent.agents.history.compaction import asking, compact

        summarized = replace(made, native=None)
        if not made.summary:
            try:
                ask = asking(self._setup, self._budget, self._scope_below())
                summarized = await compact(draft, made.start, ask, window=window)
            except ModelError as error:
                self._warn(f"the conversation could not be summarized: {error.message}")
                draft.compact(None)
                return
        draft.compact(summarized)

    async def _compact(
        self, why: str, window: int | None = None, native: ModelRequest | None = None
    ) -> bool:
        """Replace the oldest messages by a summary; return whether that could be done.

        Args:
            why: Why it is done, for a user.
            window: Tokens the model's window holds, or None.
            native: Asks the provider for its own compact form first, if it has one; None asks for
                a summary.
        """
        from fast_agent.agents.history import compaction as how

        draft = self._life.draft
        start = how.start_for(draft, self._life.start)
        if start is None:
            return False
        try:
            compaction = None
            if native is not None and self._setup.compaction.native and compacts(self._model):
                compaction = await how.compact_natively(
                    draft, start, self._model, self._budget, native
                )
            if compaction is None:
                ask = how.asking(self._setup, self._budget, self._scope_below())
                compaction = await how.compact(draft, start, ask, window=window)
        except ModelError as error:
            self._warn(f"the conversation could not be summarized: {error.message}")
            return False
        self._life.draft.compact(compaction)
        self._warn(f"{why}: {_COMPACTED.format(messages=start)}")
        return True

    async def _request(self, system: str, tools: ToolTable) -> ModelResponse:
        setup, output = self._setup, self._output
        request = ModelRequest(
            system,
            self._life.draft.view,
            tools.specs,
            setup.params,
            None if output is None else output.schema,
            notify=self._warn,
        )
        name = self._model.name
        self._life.journal.asks(name)
        self._life.notify(ModelRequested, name, self._requests)
        if setup.params.timeout_seconds is None:
            return await self._model.request(request, self._sink())
        return await self._ask_in_time(request, setup.params.timeout_seconds)

    async def _ask_in_time(self, request: ModelRequest, seconds: float) -> ModelResponse:
        with deadline("model", seconds):
            return await self._model.request(request, self._sink())
        msg = f"model `{self._model.name}` did not answer within {seconds:g} s"
        raise ModelError(msg, hint="raise `request_params.timeout_seconds`")

    async def _run_tools(self, answer: Message, tools: ToolTable) -> None:
        life, context = self._life, self._scope_below()
        draft = life.draft
        await self._hooked("before_tool_call", answer, draft.history)
        calls = answer.tool_calls
        concurrent = len(calls) > 1 and self._setup.params.parallel_tool_calls is not False
        self._running = running = ToolCalls(
            calls,
            tools,
            life=life,
            turn=context,
            budget=self._budget,
            child_calls=ChildCallBatch(
                draft.draft(), self._warn, concurrent=concurrent, conversation=context.conversation
            ),
        )
        draft.append(answer)
        await running.run()
        life.external_messages += running.child_calls.external_messages
        results = Message("user", tool_results=running.results())
        await self._hooked("after_tool_call", results, draft.history)
        self._running = None
        for result in results.tool_results:
            if result.extra:
                self._follow_skill(result, calls, tools)
        await self._add(results)

    def _follow_skill(
        self, result: ToolResult, calls: Sequence[ToolCall], tools: ToolTable
    ) -> None:
        """Ask the model that a loaded skill names; no other tool can name one."""
        name = result.extra.get(SKILL_MODEL)
        if isinstance(name, str):
            call = next((one for one in calls if one.id == result.id), None)
            tool = None if call is None else tools.get(call.name)
            if tool is not None and tool.source == "runtime":
                self._use_model(name)

    def _scope_below(self) -> TurnContext:
        """Return the context of agents that tools start."""
        if self._below is None:
            self._below = self._life.context_below()
        return self._below

    def _stop(self, answer: Message, limit: int) -> Message:
        """End the turn at an answer whose calls may not be run any more."""
        reason = f"not run: the turn reached its {limit} model requests (`max_iterations`)"
        results = tuple(ToolResult.error(call.id, reason) for call in answer.tool_calls)
        text = answer.text or f"[stopped after {limit} model requests (`max_iterations`)]"
        last = Message.assistant(text, "maxIterations")
        self._life.draft.append(answer)
        self._life.draft.append(Message("user", tool_results=results))
        self._life.draft.append(last)
        return last

    def _read(self, answer: Message, output: OutputShape, tools: ToolTable) -> str | None:
        """Read the value of a structured answer; else return the correction, but only once."""
        agent = self._life.origin.agent
        if answer.stop_reason == "refusal":
            msg = f"agent `{agent}` refused to answer: {_begin(answer.text)}"
            raise RunError(msg, hint="change the message, or use another model")
        try:
            self._structured = output.parse(answer.text)
        except ValueError as error:
            if answer.stop_reason == "maxTokens":
                msg = f"the structured answer of agent `{agent}` was cut: {_begin(answer.text)}"
                raise RunError(msg, hint="raise `request_params.max_tokens`") from error
            if self._corrected or self._requests >= self._max_requests(tools):
                agent = self._life.origin.agent
                msg = f"agent `{agent}` returned an invalid structured answer: {error}"
                echoes = self._model.name.partition("?")[0] in _ECHOES
                raise RunError(msg, hint=_ECHOED if echoes else _OTHER_FORM) from error
            from fast_agent.agents.output import correction

            self._corrected = True
            self._warn("the structured answer was invalid and is requested again")
            return correction(error)
        return None

    async def _add(self, message: Message) -> None:
        """Add what the model is to answer next, or what a hook puts in its place."""
        hooks = self._setup.hooks
        if hooks is None or not hooks.has("before_llm_call"):
            self._life.draft.append(message)
            return
        before = self._life.draft.draft()
        self._life.draft.append(message)
        wanted = await self._hooked("before_llm_call", message, before.history)
        if wanted is not message:
            before.append(wanted)
            self._life.draft = before

    async def _hooked(
        self, point: HookPoint, message: Message, history: Sequence[Message]
    ) -> Message:
        """Run the hooks of a point; returns the message, or what they put in its place."""
        hooks = self._setup.hooks
        if hooks is None or not hooks.has(point):
            return message
        iteration = self._requests + (point == "before_llm_call")
        agent, usage = self._life.origin.agent, self._life.own.usage
        run = partial(
            hooks.run,
            point,
            message,
            message_history=history,
            iteration=iteration,
            agent_name=agent,
            usage=usage,
        )
        place = here()
        if place.silent:
            return await run()
        parts = place.steps.parts
        asked: JsonObject = {
            "message": parts.digest_of_message(message),
            "messages": parts.digest_of_conversation(history),
            "iteration": iteration,
            "usage": usage_to_json(usage),
        }
        return await _hook_in_step(place.steps, Step("hook", point, asked, agent), message, run)

    def _sink(self) -> DeltaSink | None:
        life = self._life
        if not life.is_heard:
            return None

        def notify(delta: Delta) -> None:
            kind = TextStreamed if isinstance(delta, TextDelta) else ThinkingStreamed
            life.notify(kind, delta.text)

        return notify

    def _warn(self, message: str) -> None:
        self._life.warn(message)

    def _close_calls(self) -> None:
        """Add the results there are of calls that did not end."""
        if self._running is not None:
            life = self._life
            life.draft.append(Message("user", tool_results=self._running.results()))
            life.external_messages += self._running.child_calls.external_messages


_SHORTENED: Final = (
    "the conversation is too long for `{model}`: most tool output is left out of what the"
    " model receives; `read_result` reads it"
)


async def _hook_in_step(
    steps: Steps, step: Step, message: Message, run: Callable[[], Awaitable[Message]]
) -> Message:
    """Run the hooks of a point as one step; returns the message itself where none replaced it."""
    same = steps.parts.digest_of_message(message)

    def read(value: JsonValue) -> Message:
        digest = str(value)
        return message if digest == same else message_from_wire(steps.part(digest))

    return await steps.ask(step, run, Codec(steps.parts.digest_of_message, read))


def _begin(text: str) -> str:
    """Return the start of a string in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTE else f"{line[:_MAX_QUOTE]}…"


_MAX_QUOTE: Final = 300
_FILLING: Final = (
    "the conversation fills {share:.0%} of the context window of `{model}`: most tool output is"
    " left out of what the model receives; `read_result` reads it"
)
_SHORT_START: Final = 4_000
"""Characters that do not fill half of any window."""

_START_IS_FULL: Final = (
    "most of the context window of `{model}` ({window:,} tokens) is in use before the conversation"
    " starts: {parts}; use fewer servers, or limit the `tools` of the card"
)
_FEWER_TOOLS: Final = "use fewer servers, or limit the `tools` of the card"
_AT_SHARE: Final = "the conversation fills {share:.0%} of the context window of `{model}`"
_TOO_LONG: Final = "the conversation is too long for `{model}`"
_COMPACTED: Final = (
    "the model receives a summary in place of the first {messages} messages, which stay in the"
    " history"
)
_ECHOES: Final = frozenset({"passthrough", "slow"})
_ECHOED: Final = (
    "its model only repeats the message; use a model that can answer, or write the answers of a "
    "test into a script: `--model 'scripted?file=FILE'`"
)
_OTHER_FORM: Final = "say in its instruction how to answer, or name another `model`"
