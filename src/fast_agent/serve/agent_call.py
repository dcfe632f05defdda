"""Agent call: one call of an agent's tool, from its arguments to the answer.

While the agent works, the client receives its progress. The newest protocol has no requests from
server to client: a call that needs the client's user ends with the questions instead, and with a
token. The client asks again with the token and the answers, and the turn, which waited until then,
continues.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import anyio

from fast_agent.agents.events import (
    ChildFinished,
    ChildStarted,
    ModelRequested,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    Warned,
    WorkflowAdvanced,
    workflow_line,
)
from fast_agent.errors import FastAgentError, SessionInUseError
from fast_agent.resources.problem import bad_params
from fast_agent.resources.provider import ToolAnswer
from fast_agent.rpc.message import NOTHING, RemoteError
from fast_agent.serve.agent_tools import answer_of, answer_of_problem
from fast_agent.serve.fair_share import FairShare
from fast_agent.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

    from fast_agent.agents.events import Event, Listener
    from fast_agent.serve.agent_conversation import ServedConversation
    from fast_agent.serve.agent_scopes import ConversationPool
    from fast_agent.serve.agent_tools import ExposedAgent
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human

    Report = Callable[[float, str], Awaitable[None]]

log = logging.getLogger(__name__)

_STOPPED = "the server is shutting down and the grace period has expired"


class AgentCall:
    """A call.

    Args:
        scopes: Knows the conversation it belongs to.
        own: The conversation of its connection or session; None where it has none.
        name: The agent.
        exposed: How it is asked.
        arguments: What is asked.
    """

    __slots__ = ("_arguments", "_exposed", "_own", "_scopes", "name")

    def __init__(
        self,
        scopes: ConversationPool,
        own: ServedConversation | None,
        name: str,
        exposed: ExposedAgent,
        arguments: JsonObject,
    ) -> None:
        self.name = name
        self._scopes = scopes
        self._own = own
        self._exposed = exposed
        self._arguments = arguments

    def replaces(self, other: AgentCall) -> bool:
        """Whether it needs an agent that an earlier call keeps busy in the same conversation."""
        own = self._own
        if own is None or own is not other._own:
            return False
        return not own.busy_agents(self.name).isdisjoint(own.busy_agents(other.name))

    async def run(self, report: Report | None = None, human: Human | None = None) -> ToolAnswer:
        """Run the call and return the agent's answer.

        Args:
            report: Sends progress to the client; None if it did not ask for it.
            human: Asks the client's user; None where there is none.

        Returns:
            The answer; if the agent failed or was cancelled, the reason.

        Raises:
            SessionInUseError: Another server is using the conversation.
        """
        redact = self._scopes.redact
        with self._scopes.calling():
            if redact is None:
                return await self._answered(report, human)
            forward = None if report is None else _hiding(report, redact)
            return _hidden(await self._answered(forward, human), redact)
        return ToolAnswer.of_text(f"agent `{self.name}` was stopped: {_STOPPED}", is_error=True)

    async def _answered(self, report: Report | None, human: Human | None) -> ToolAnswer:
        try:
            message = self._exposed.message(self.name, self._arguments)
            async with self._scopes.used(self._own) as conversation:
                await conversation.prepare()
                async with reported(report) as listener:
                    return await self._ask(conversation, message, listener, human)
        except SessionInUseError:
            raise  # nothing was asked
        except FastAgentError as error:
            return answer_of_problem(error)
        except Exception:  # a task boundary: the server outlives a turn that broke
            log.exception("agent `%s` could not answer", self.name)
            return ToolAnswer.of_text(f"agent `{self.name}` failed unexpectedly", is_error=True)

    async def _ask(
        self,
        conversation: ServedConversation,
        message: str,
        listener: Listener | None,
        human: Human | None,
    ) -> ToolAnswer:
        try:
            await conversation.take_up(self.name, message)
            agent = conversation.agent(self.name)
            context = (
                None if human is None else replace(conversation.conversation.context, human=human)
            )
            return answer_of(await agent.generate(message, context=context, listener=listener))
        except FastAgentError as error:  # here, since what leaves a task group is a group
            return answer_of_problem(error)


def _hidden(answer: ToolAnswer, redact: Callable[[str], str]) -> ToolAnswer:
    """Hide secrets of this program from the client that asked."""
    content = tuple(cast("JsonObject", redacted(block, redact)) for block in answer.content)
    structured = cast("JsonObject | None", redacted(answer.structured, redact))
    return ToolAnswer(content, answer.is_error, structured)


def _hiding(report: Report, redact: Callable[[str], str]) -> Report:
    async def forward(steps: float, message: str) -> None:
        await report(steps, redact(message))

    return forward


MAX_WAITING = 100
"""Maximum number of calls that wait for answers of their clients."""

ANSWER_SECONDS = 600.0
"""How long a call waits for them."""


TOGETHER_SECONDS = 5.0
"""Calls that begin within so many seconds of each other were sent together."""


class _Question:
    """One question, until it has an answer."""

    def __init__(self, method: str, params: JsonObject) -> None:
        self.wire: JsonObject = {"method": method, "params": params}
        self.answer: JsonValue = None
        self.answered = anyio.Event()


class ResumableCall:
    """A call under way, and the questions its client has to answer.

    Args:
        call: The call.
        seconds: How long the client may take for an answer; None for `ANSWER_SECONDS`.
    """

    def __init__(self, call: AgentCall, seconds: float | None = None) -> None:
        self.call = call
        self.answer: ToolAnswer | None = None
        self.refusal: SessionInUseError | None = None
        self.report: Report | None = None
        self._began = anyio.current_time()
        self._seconds = ANSWER_SECONDS if seconds is None else seconds
        self._scope = anyio.CancelScope()
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._updated = anyio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        has_ended = self.answer is not None or self.refusal is not None
        return has_ended or self._scope.cancel_called

    def is_left_for(self, call: AgentCall) -> bool:
        """Whether its client leaves its questions unanswered, since it made a later call."""
        is_later = anyio.current_time() - self._began > TOGETHER_SECONDS
        return is_later and call.replaces(self.call)

    def cancel(self) -> None:
        """End the turn as if it was cancelled."""
        self._scope.cancel()

    async def run(self, human: Human) -> None:
        """Run the agent; its questions go to the request that waits in `wait_for_update`."""
        with self._scope:
            try:
                self.answer = await self.call.run(
                    self._report_progress if self.report else None, human
                )
            except SessionInUseError as error:  # for its client, not for the tasks of the server
                self.refusal = error
        self._updated.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the client at its next request; see `agent_client.Ask`.

        Raises:
            RemoteError: There was no answer in time.
        """
        self._asked += 1
        name, question = f"q{self._asked}", _Question(method, params)
        self._questions[name] = question
        self._updated.set()
        with anyio.move_on_after(self._seconds):
            await question.answered.wait()
            return question.answer if isinstance(question.answer, Mapping) else NOTHING
        self._questions.pop(name, None)
        self.cancel()
        raise RemoteError("the client gave no answer in time")

    def submit_answers(self, answers: JsonObject) -> None:
        """Take the client's answers; a question without one is asked again."""
        for name, answer in answers.items():
            question = self._questions.pop(name, None)
            if question is not None:
                question.answer = answer
                question.answered.set()

    async def wait_for_update(self) -> JsonObject | None:
        """Wait for the answer, or for questions.

        Returns:
            The questions as the protocol has them; None where there is the answer, or none will be.
        """
        while not self.ended and not self._questions:
            self._updated = anyio.Event()
            await self._updated.wait()
        if self.ended:
            return None
        return {name: one.wire for name, one in self._questions.items()}

    async def _report_progress(self, progress: float, message: str) -> None:
        if self.report is not None:
            await self.report(progress, message)


class ResumableCalls:
    """The calls that wait for their clients.

    Args:
        new_id: Returns unguessable tokens.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._waiting: dict[str, ResumableCall] = {}
        self._shares: FairShare[str] = FairShare(MAX_WAITING)

    async def begin(
        self, tasks: TaskGroup, exchange: ResumableCall, human: Human, owner: str
    ) -> JsonObject | None:
        """Start a call; otherwise like `resume`."""
        tasks.start_soon(exchange.run, human)
        return await self.resume(exchange, owner)

    async def resume(self, exchange: ResumableCall, owner: str) -> JsonObject | None:
        """Wait until a call has its answer or needs one of the client.

        Args:
            exchange: The call.
            owner: Its client.

        Returns:
            What the client is to be given instead of an answer; None if there is the answer.
        """
        try:
            questions = await exchange.wait_for_update()
        except BaseException:
            exchange.cancel()  # the client has gone, or cancelled the call
            raise
        if questions is None:
            return None
        self._make_room(owner)
        token = self._new_id()
        self._waiting[token] = exchange
        self._shares.add(token, owner)
        return {"resultType": "input_required", "inputRequests": questions, "requestState": token}

    def end_for(self, call: AgentCall) -> None:
        """Cancel the calls that a new one replaces: their client left their questions unanswered.

        The new one would wait for their turns otherwise, up to `ANSWER_SECONDS`. A model may call
        an agent several times at once: calls that were sent together wait for one another.
        """
        for token in [name for name, one in self._waiting.items() if one.is_left_for(call)]:
            self._forget(token).cancel()

    def find(self, token: object, name: str) -> ResumableCall:
        """Find the call a request continues.

        Raises:
            RequestRefused: There is none, or it is of another tool.
        """
        found = self._waiting.get(token) if isinstance(token, str) else None
        if found is None or found.call.name != name or found.ended:
            raise bad_params("`requestState` is unknown to this server; call again")
        self._forget(str(token))
        return found

    def _make_room(self, owner: str) -> None:
        """Cancel a call of the client with the most of them, if as many wait as may."""
        for token in [name for name, one in self._waiting.items() if one.ended]:
            self._forget(token)
        while self._shares.full:
            token = self._shares.to_end(owner, lambda _: True)
            if token is None:
                return
            self._forget(token).cancel()

    def _forget(self, token: str) -> ResumableCall:
        self._shares.remove(token)
        return self._waiting.pop(token)


MAX_MESSAGE_CHARACTERS = 200
"""Most characters of one message."""


class Progress:
    """Steps of a turn on their way to one client.

    A slow client receives only the newest step, so it delays no other and costs no memory.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._message = ""
        self._reported = 0
        self._updated = anyio.Event()
        self._ended = False

    def on_event(self, event: Event) -> None:
        """Take an event of the turn or of one below it."""
        message = step_of(event)
        if message is not None:
            self._steps += 1
            self._message = message[:MAX_MESSAGE_CHARACTERS]
            self._updated.set()

    def end(self) -> None:
        """End `notify` when the newest step was sent."""
        self._ended = True
        self._updated.set()

    async def notify(self, report: Report) -> None:
        """Report every step that was not overtaken by another, until `end`."""
        while True:
            if self._steps > self._reported:
                self._reported = self._steps
                await report(self._reported, self._message)
            elif self._ended:
                return
            else:
                self._updated = anyio.Event()
                await self._updated.wait()


@asynccontextmanager
async def reported(report: Report | None) -> AsyncGenerator[Listener | None]:
    """Report the events that the listener given here hears.

    Args:
        report: Sends progress (steps so far, message) to the client; None if it did not ask.
    """
    if report is None:
        yield None
        return
    progress = Progress()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.notify, report)
        try:
            yield progress.on_event
        finally:
            progress.end()


def step_of(event: Event) -> str | None:
    """Describe a step of a turn in one line; None for anything that is not a separate step."""
    agent = event.origin.agent
    match event:
        case ModelRequested(model=model):
            return f"{agent}: asks {model}"
        case ToolStarted(call=call):
            return f"{agent}: calls {call.name}"
        case ToolFinished(call=call, result=result):
            return f"{agent}: {call.name} {'failed' if result.is_error else 'is done'}"
        case ToolProgressed(progress=progress, total=total, message=message):
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            last = (message or "").rpartition("\n")[2]
            return f"{agent}: {share} {last}".rstrip()
        case ChildStarted(child=child):
            return f"{agent}: {child} starts"
        case ChildFinished(child=child, error=error):
            return f"{agent}: {child} {'is done' if error is None else 'failed'}"
        case WorkflowAdvanced(kind=kind, facts=facts):
            line = " ".join(workflow_line(kind, facts).split())
            return f"{agent}: {line}" if line else None
        case Warned(message=message):
            return f"{agent}: {message}"
        case _:
            return None
