"""The workflow of type `parallel`: agents that work at the same time on the same message."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fast_agent.agents.turn_context import Outcome
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.message import Message, TextContent
from fast_agent.text.frozen import frozen
from fast_agent.workflows.workflow import (
    Workflow,
    WorkflowBlueprint,
    blocks_of,
    excerpt,
    request_text,
    tagged,
)
from fast_agent.workflows.workflow_turn import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Content
    from fast_agent.runtime.blueprint import Blueprint
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.workflows.workflow_turn import WorkflowTurn


def parallel_blueprint(card: Card, context: RuntimeContext) -> Blueprint:
    """Make the blueprint of a card of type `parallel`."""
    return WorkflowBlueprint(card, context, Parallel)


@frozen
class _Branch:
    """How one branch ended.

    Args:
        agent: Who worked on it.
        text: The answer, or why there is none.
        blocks: What is not text in the answer.
        failed: Whether there is no answer.
    """

    agent: str
    text: str
    blocks: tuple[Content, ...] = ()
    failed: bool = False

    @property
    def facts(self) -> JsonObject:
        """What there is to know of it, as plain JSON."""
        return {"agent": self.agent, "error" if self.failed else "text": excerpt(self.text)}


class Parallel(Workflow):
    """Agents at the same time; `fan_in` makes one answer of theirs, or they stand under headings.

    A branch that fails is reported in its place; if all fail, the turn does.
    """

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Ask each member once, and the one that joins the answers; see `Workflow.run`."""
        config = self.config
        if turn.output is not None and config.fan_in is None:
            msg = f"agent `{self.name}` cannot return a structured answer: it only joins answers"
            raise RunError(msg, hint="name the agent that returns it as `fan_in`")
        branches = await self._branches(request, turn)
        record: list[JsonValue] = [branch.facts for branch in branches]
        workflow: dict[str, JsonValue] = {"type": "parallel", "branches": record}
        if config.fan_in is None:
            return Outcome(_joined(branches), workflow)
        asked = _fan_in_message(request if config.include_request else None, branches)
        result = await turn.ask(turn.member(config.fan_in), asked, output=turn.output)
        workflow["fan_in"] = config.fan_in
        answer = result.message.without_native()
        return Outcome(answer, workflow, result.structured, result.stop_reason)

    async def _branches(self, request: Message, turn: WorkflowTurn) -> Sequence[_Branch]:
        async def branch(index: int) -> _Branch:
            name = names[index]
            done = _Branch(name, "cancelled", failed=True)
            try:
                if name in repeated:
                    result = await self._ask_clone(name, request, turn)
                else:
                    result = await turn.ask(turn.member(name), request)
                turn.warn_if_early(name, result)
                done = _Branch(name, result.text, blocks_of(result.message))
            except FastAgentError as error:
                done = _Branch(name, error.message, failed=True)
            finally:
                if turn.life.is_heard:
                    turn.emit("branch", index=index, **done.facts)
            return done

        names = self.config.fan_out
        repeated = {name for name in names if names.count(name) > 1}
        branches = await together([partial(branch, index) for index in range(len(names))])
        failed = [one for one in branches if one.failed]
        if len(failed) == len(branches):
            reasons = "; ".join([f"`{one.agent}`: {one.text}" for one in failed])
            raise RunError(f"every branch of `{self.name}` failed: {excerpt(reasons)}")
        for one in failed:
            turn.warn(f"branch `{one.agent}` failed: {excerpt(one.text)}")
        return branches

    async def _ask_clone(self, name: str, request: Message, turn: WorkflowTurn) -> TurnResult:
        # Branches of one agent run concurrently only if each has a separate instance.
        async with turn.clone(name) as agent:
            return await turn.ask(agent, request)


def _joined(branches: Sequence[_Branch]) -> Message:
    """Join the answers under the names of their agents."""
    texts: list[str] = []
    blocks: list[Content] = []
    for one in branches:
        said = f"[failed: {one.text}]" if one.failed else one.text.strip() or "[no text]"
        texts.append(f"## {one.agent}\n\n{said}")
        blocks += one.blocks
    content = (TextContent("\n\n".join(texts)), *blocks)
    return Message("assistant", content, stop_reason="endTurn")


def _fan_in_message(request: Message | None, branches: Sequence[_Branch]) -> Message:
    """Return the message for the agent that joins the answers: the request, and each answer."""
    texts = [] if request is None else [request_text(request)]
    blocks = [] if request is None else list(blocks_of(request))
    for one in branches:
        said = one.text if one.failed else one.text.strip() or "[no text]"
        texts.append(tagged("failure" if one.failed else "answer", said, agent=one.agent))
        blocks += one.blocks
    return Message("user", (TextContent("\n\n".join(texts)), *blocks))
