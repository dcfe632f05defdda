"""Brain: a workflow's own model, which routes and plans but calls none of the workflow's agents.

The JSON object in its answer is read by hand, so that a mistake can be located.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from anyio import CancelScope

from fast_agent.agents.output import unfenced
from fast_agent.cards.placeholder import parse_template
from fast_agent.errors import RunError
from fast_agent.runtime.blueprint import LlmBlueprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Content, Message
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonObject
    from fast_agent.workflows.workflow_turn import WorkflowTurn

_AGENTS = "{{agents}}"


class CoordinatorModel:
    """The model of a workflow's card, with the card's servers and request parameters.

    It always sees the list of the card's agents, where the instruction puts `{{agents}}` or else
    at its end, and the conversation of the workflow so far.

    Args:
        card: The workflow's card.
        context: What it is made with.
        role: What the type of the workflow asks of it, after the card's own instruction.

    Raises:
        CardError: The card cannot be used.
        ToolError: A server it names is not known.
    """

    def __init__(self, card: Card, context: RuntimeContext, role: str) -> None:
        config = card.config
        text = (config.instruction or "").rstrip() + role
        if not parse_template(text).uses("agents"):
            text = f"{text.rstrip()}\n\n{_AGENTS}\n"
        # What a workflow's own model may do is what its type has fields for.
        own = replace(config, type="agent", messages=(), skills=())
        options = replace(context.options, shell=False, files=None, fetch=False)
        self._name = config.name
        self._blueprint = LlmBlueprint(
            replace(card, config=own),
            replace(context, options=options),
            instruction=text,
            calls_agents=False,
        )

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the MCP servers it uses."""
        return self._blueprint.servers

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of its servers; see `Agent.read_resource`."""
        return await self._blueprint.read_resource(server, uri)

    async def ask(
        self,
        message: Message | str,
        turn: WorkflowTurn,
        *,
        output: OutputShape | None = None,
        history: Sequence[Message] | None = None,
    ) -> TurnResult:
        """Ask it once; it sees the workflow's conversation, but nothing else of this turn.

        Args:
            message: The user's message.
            turn: The workflow's turn.
            output: The shape its answer must have, or None.
            history: What it is given of the workflow's conversation; None is all of it.

        Raises:
            FastAgentError: It gave no answer, or twice one of another shape.
        """
        agent = self._blueprint.instance(turn.history if history is None else history)
        try:
            return await turn.ask_own(agent, message, output=output)
        finally:
            with CancelScope(shield=True):
                await agent.aclose()

    async def choose(
        self,
        message: Message | str,
        shape: OutputShape,
        turn: WorkflowTurn,
        *,
        history: Sequence[Message] | None = None,
    ) -> object:
        """Ask it for a structured answer; one that is wrong is asked for once more.

        Args:
            message: The user's message.
            shape: The shape of the answer.
            turn: The workflow's turn.
            history: What it is given of the workflow's conversation; None is all of it.

        Raises:
            RunError: The second answer was wrong too.
            FastAgentError: It gave no answer.
        """
        result = await self.ask(message, turn, output=shape, history=history)
        if result.stop_reason == "maxIterations":
            msg = f"agent `{self._name}` stopped before it gave a structured answer"
            raise RunError(msg, hint="raise `request_params.max_iterations`")
        return result.structured


def object_in(text: str) -> JsonObject:
    """Read the JSON object in an answer; text around it does not matter.

    Raises:
        ValueError: There is none.
    """
    whole = unfenced(text)
    start, end = whole.find("{"), whole.rfind("}")
    if start < 0:
        raise ValueError("the answer holds no JSON object")
    if end < start:
        raise ValueError("the answer is not JSON: the object in it has no end")
    try:
        return cast("JsonObject", json.loads(whole[start : end + 1]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the answer is not JSON: {error}") from error
