"""Agent call: one call of an agent's tool, from its arguments to the answer."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from fast_agent.errors import FastAgentError
from fast_agent.resources.provider import ToolAnswer
from fast_agent.serve.agent_progress import reported
from fast_agent.serve.agent_tools import answer_of, answer_of_problem
from fast_agent.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.events import Listener
    from fast_agent.serve.agent_conversation import Conversation
    from fast_agent.serve.agent_progress import Report
    from fast_agent.serve.agent_scopes import Scopes
    from fast_agent.serve.agent_tools import ExposedAgent
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human

log = logging.getLogger(__name__)

_STOPPED = "the server is shutting down and the grace period has expired"


class AgentCall:
    """A call.

    Args:
        scopes: Knows the conversation it belongs to.
        own: The conversation of its connection or session; None where it has none.
        name: The agent.
        door: How it is asked.
        arguments: What is asked.
    """

    __slots__ = ("_arguments", "_door", "_own", "_scopes", "name")

    def __init__(
        self,
        scopes: Scopes,
        own: Conversation | None,
        name: str,
        door: ExposedAgent,
        arguments: JsonObject,
    ) -> None:
        self.name = name
        self._scopes = scopes
        self._own = own
        self._door = door
        self._arguments = arguments

    async def run(self, report: Report | None = None, human: Human | None = None) -> ToolAnswer:
        """Run the call and return the agent's answer.

        Args:
            report: Tells the client how far it is; None where it does not want to know.
            human: The way to the client's person; None where there is none.

        Returns:
            The answer; if the agent failed or was cancelled, the reason.
        """
        redact = self._scopes.redact
        with self._scopes.calling():
            if redact is None:
                return await self._answered(report, human)
            told = None if report is None else _hiding(report, redact)
            return _hidden(await self._answered(told, human), redact)
        return ToolAnswer.of_text(f"agent `{self.name}` was stopped: {_STOPPED}", is_error=True)

    async def _answered(self, report: Report | None, human: Human | None) -> ToolAnswer:
        try:
            message = self._door.message(self.name, self._arguments)
            async with self._scopes.used(self._own) as conversation, reported(report) as listener:
                return await self._ask(conversation, message, listener, human)
        except FastAgentError as error:
            return answer_of_problem(error)
        except Exception:  # a task boundary: the server outlives a turn that broke
            log.exception("agent `%s` could not answer", self.name)
            return ToolAnswer.of_text(f"agent `{self.name}` failed unexpectedly", is_error=True)

    async def _ask(
        self,
        conversation: Conversation,
        message: str,
        listener: Listener | None,
        human: Human | None,
    ) -> ToolAnswer:
        try:
            await conversation.prepare()
            await conversation.take_up(self.name, message)
            agent = conversation.agent(self.name)
            context = None if human is None else replace(conversation.cast.context, human=human)
            return answer_of(await agent.generate(message, context=context, listener=listener))
        except FastAgentError as error:  # here, since what leaves a task group is a group
            return answer_of_problem(error)


def _hidden(answer: ToolAnswer, redact: Callable[[str], str]) -> ToolAnswer:
    """Hide secrets of this program from the client that asked."""
    content = tuple(cast("JsonObject", redacted(block, redact)) for block in answer.content)
    structured = cast("JsonObject | None", redacted(answer.structured, redact))
    return ToolAnswer(content, answer.is_error, structured)


def _hiding(report: Report, redact: Callable[[str], str]) -> Report:
    async def told(steps: float, message: str) -> None:
        await report(steps, redact(message))

    return told
