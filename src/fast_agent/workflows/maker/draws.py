"""Draws: answers of fresh clones of a worker, read by the rules of a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError, LimitError
from fast_agent.workflows.maker.ballot import Ballot
from fast_agent.workflows.maker.sample import Sample

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import Message
    from fast_agent.models.model import OutputSchema
    from fast_agent.runtime.output import OutputShape
    from fast_agent.workflows.workflow_turn import WorkflowTurn


class Draws:
    """Draws answers to one request; each comes from a clone of its own, and so knows of no other.

    A limit that is reached ends everything; any other failure of a clone is a sample without an
    answer.

    Args:
        config: The card of type `MAKER`.
        request: The user's message, which each clone gets as it is.
        turn: The turn it is for.
    """

    __slots__ = ("_request", "_shape", "_turn", "_worker", "ballot")

    def __init__(self, config: AgentConfig, request: Message, turn: WorkflowTurn) -> None:
        self.ballot = Ballot(config.match_strategy, config.red_flag_max_length, turn.output)
        self._shape = None if turn.output is None else _Unread(turn.output)
        self._worker = config.worker or ""
        self._request = request
        self._turn = turn

    async def __call__(self, _number: int) -> Sample:
        """Draw an answer.

        Raises:
            LimitError: A usage limit was reached.
        """
        turn = self._turn
        try:
            async with turn.clone(self._worker) as agent:
                result = await turn.ask(agent, self._request, output=self._shape)
        except LimitError:
            raise
        except FastAgentError as error:
            return Sample.failed(error)
        return self.ballot.read(result.text, result.stop_reason)


class _Unread:
    """A shape the worker is told of, whose answers are not corrected but voted on as they are.

    Args:
        shape: The shape.
    """

    def __init__(self, shape: OutputShape) -> None:
        self._shape = shape

    @property
    def schema(self) -> OutputSchema:
        """What the model is told."""
        return self._shape.schema

    def parse(self, text: str) -> object:
        """Leave the answer as it is."""
        return text
