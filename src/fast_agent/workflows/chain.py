"""The workflow of type `chain`: each agent gets the answer of the one before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.agents.turn_context import Outcome
from fast_agent.errors import RunError
from fast_agent.messages.message import Message, TextContent
from fast_agent.workflows.workflow import (
    Workflow,
    WorkflowBlueprint,
    blocks_of,
    excerpt,
    request_text,
    tagged,
)

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Content
    from fast_agent.runtime.blueprint import Blueprint
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonValue
    from fast_agent.workflows.workflow_turn import WorkflowTurn


def chain_blueprint(card: Card, context: RuntimeContext) -> Blueprint:
    """Make the blueprint of a card of type `chain`."""
    return WorkflowBlueprint(card, context, Chain)


class Chain(Workflow):
    """Agents one after another; the answer of the last one is the chain's.

    With `cumulative` each is given the request and every answer so far, between tags; without, the
    answer of the one before it, as it is.
    """

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Ask each member once; see `Workflow.run`."""
        sequence, cumulative = self.config.sequence, self.config.cumulative
        message, answers = request, _Answers(request)
        steps: list[JsonValue] = []
        last = len(sequence) - 1
        result = None
        for index, name in enumerate(sequence):
            output = turn.output if index == last else None
            result = await turn.ask(turn.member(name), message, output=output)
            text = excerpt(result.text)
            turn.emit("step", agent=name, index=index, of=last + 1, text=text)
            steps.append({"agent": name, "text": text})
            if index == last:
                break
            turn.warn_if_early(name, result)
            if cumulative:
                answers.add(name, result.message)
                message = answers.message()
            elif result.text.strip() or blocks_of(result.message):
                message = Message("user", result.message.content)
            else:
                msg = f"chain `{self.name}` stopped: agent `{name}` returned an empty answer"
                raise RunError(
                    msg, hint="the next agent needs input; check the agent's instruction"
                )
        if result is None:
            raise RunError(f"chain `{self.name}` has no agents", hint="list them in `sequence`")
        return Outcome(
            result.message.without_native(),
            {"type": "chain", "steps": steps},
            result.structured,
            result.stop_reason,
        )


class _Answers:
    """The request and the answers so far, for the next agent of a cumulative chain."""

    def __init__(self, request: Message) -> None:
        self._texts = [request_text(request)]
        self._blocks: list[Content] = list(blocks_of(request))

    def add(self, agent: str, answer: Message) -> None:
        self._texts.append(tagged("answer", answer.text, agent=agent))
        self._blocks += blocks_of(answer)

    def message(self) -> Message:
        return Message("user", (TextContent("\n\n".join(self._texts)), *self._blocks))
