"""Draws: answers of fresh clones of a worker, read by the rules of a card."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.agents.output import unfenced
from fast_agent.errors import FastAgentError, LimitError
from fast_agent.messages.json_text import JsonTextError, parse_json
from fast_agent.workflows.maker.race import Sample

if TYPE_CHECKING:
    from fast_agent.agents.output import OutputShape
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import Message
    from fast_agent.models.model import OutputSchema
    from fast_agent.text.json_value import JsonValue
    from fast_agent.workflows.workflow_turn import WorkflowTurn


class Draws:
    """Draws answers to one request; each comes from a separate clone, independent of all others.

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
    """A shape described to the worker; its answers are not corrected but voted on as they are.

    Args:
        shape: The shape.
    """

    def __init__(self, shape: OutputShape) -> None:
        self._shape = shape

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        return self._shape.schema

    def parse(self, text: str) -> object:
        """Leave the answer as it is."""
        return text


Match: TypeAlias = Literal["exact", "normalized", "structured"]
"""When two answers count as the same."""

_CUT_SHORT = frozenset(
    {"maxTokens", "maxIterations", "repetition", "timeout", "cancelled", "error"}
)
"""Why an answer ends before it is whole."""

_WRITER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Ballot:
    """Reads answers by the rules of one vote.

    An answer with a red flag is thrown away, never repaired: a model that slips in the form has
    more often slipped in the matter too.

    Args:
        match: When two answers count as the same: `exact`, the same text; `normalized`, the same
            but for letter case, white space and Unicode forms; `structured`, the same JSON value.
        max_length: Most characters of an answer, or None.
        shape: The shape a structured answer must have, or None.
    """

    __slots__ = ("_match", "_max_length", "_shape")

    def __init__(
        self,
        match: Match = "exact",
        max_length: int | None = None,
        shape: OutputShape | None = None,
    ) -> None:
        self._match: Match = match
        self._max_length = max_length
        self._shape = shape

    def read(self, text: str, stop_reason: str | None = None) -> Sample:
        """Return what an answer votes for.

        Args:
            text: The answer.
            stop_reason: Why it ended, or None.
        """
        if not text or text.isspace():
            return Sample(text, "", flag="empty")
        if self._max_length is not None and len(text) > self._max_length:
            return Sample(text, "", flag="too_long")
        if stop_reason in _CUT_SHORT:
            return Sample(text, "", flag="cut_short")
        if stop_reason == "refusal":
            return Sample(text, "", flag="refused")
        if self._match == "structured" or self._shape is not None:
            return self._read_value(text)
        return Sample(text, text if self._match == "exact" else normalized(text))

    def _read_value(self, text: str) -> Sample:
        try:
            found = parse_json(unfenced(text))
            value = found if self._shape is None else self._shape.parse(text)
        except (JsonTextError, ValueError):
            return Sample(text, "", flag="unparseable")
        match self._match:
            case "exact":
                key = text
            case "normalized":
                key = normalized(text)
            case "structured":
                key = canonical(found)
        return Sample(text, key, value)


def normalized(text: str) -> str:
    """Return `text` without what `normalized` answers may differ in."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def canonical(value: JsonValue) -> str:
    """Return one text for all ways to write a JSON value; the order of keys is none of it."""
    return _WRITER.encode(_plain_numbers(value))


def _plain_numbers(value: JsonValue) -> JsonValue:
    """Write 1.0 and 1e0 as 1, for JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    return value
