"""Brain: a workflow's own model, which routes and plans but calls none of the workflow's agents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast, overload

from anyio import CancelScope

from fast_agent.errors import RunError
from fast_agent.runtime.blueprint import LlmBlueprint
from fast_agent.runtime.output import JsonOutput, shape_of
from fast_agent.runtime.placeholder import parse_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.cards.card import Card
    from fast_agent.messages.content import Content
    from fast_agent.messages.message import Message
    from fast_agent.models.model import OutputSchema
    from fast_agent.runtime.blueprint import Workshop
    from fast_agent.runtime.output import OutputShape
    from fast_agent.runtime.turn_setup import TurnResult
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.workflows.workflow_turn import WorkflowTurn

T = TypeVar("T")

_AGENTS = "{{agents}}"


class Brain:
    """The model of a workflow's card, with the card's servers and request parameters.

    It always sees the list of the card's agents, where the instruction puts `{{agents}}` or else
    at its end, and the conversation of the workflow so far.

    Args:
        card: The workflow's card.
        workshop: What it is made with.
        instruction: The system prompt; None is the card's own instruction.

    Raises:
        CardError: The card cannot be used.
        ToolError: A server it names is not known.
    """

    def __init__(self, card: Card, workshop: Workshop, instruction: str | None = None) -> None:
        config = card.config
        text = (config.instruction or "") if instruction is None else instruction
        if not parse_template(text).uses("agents"):
            text = f"{text.rstrip()}\n\n{_AGENTS}\n"
        # What a workflow's own model may do is what its type has fields for.
        own = replace(config, type="agent", messages=(), skills=())
        around = replace(workshop.surroundings, shell=False)
        self._name = config.name
        self._blueprint = LlmBlueprint(
            replace(card, config=own),
            replace(workshop, surroundings=around),
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
        self, message: Message | str, turn: WorkflowTurn, *, output: OutputShape | None = None
    ) -> TurnResult:
        """Ask it once; it sees the workflow's conversation, but nothing else of this turn.

        Args:
            message: The user's message.
            turn: The workflow's turn.
            output: The shape its answer must have, or None.

        Raises:
            FastAgentError: It gave no answer, or twice one of another shape.
        """
        agent = self._blueprint.instance(turn.history)
        try:
            return await turn.ask_own(agent, message, output=output)
        finally:
            with CancelScope(shield=True):
                await agent.aclose()

    @overload
    async def choose(
        self,
        message: Message | str,
        shape: type[T],
        turn: WorkflowTurn,
        *,
        check: Callable[[T], str | None] | None = None,
    ) -> T: ...
    @overload
    async def choose(
        self,
        message: Message | str,
        shape: JsonObject | JsonOutput,
        turn: WorkflowTurn,
        *,
        check: Callable[[JsonValue], str | None] | None = None,
    ) -> JsonValue: ...
    async def choose(
        self,
        message: Message | str,
        shape: type[T] | JsonObject | JsonOutput,
        turn: WorkflowTurn,
        *,
        check: Callable[[T], str | None] | Callable[[JsonValue], str | None] | None = None,
    ) -> object:
        """Ask it for a structured answer.

        One that is not of the shape, or that `check` refuses, is asked for once more with what is
        wrong about it.

        Args:
            message: The user's message.
            shape: A type, or a JSON Schema, which may be compiled already.
            turn: The workflow's turn.
            check: Says what is wrong with a value, naming what would be right; None is nothing.

        Raises:
            RunError: The second answer was wrong too.
            FastAgentError: It gave no answer.
        """
        output: OutputShape = shape if isinstance(shape, JsonOutput) else _shape(shape)
        if check is not None:
            output = CheckedOutput(output, cast("Callable[[object], str | None]", check))
        result = await self.ask(message, turn, output=output)
        if result.stop_reason == "maxIterations":
            msg = f"agent `{self._name}` stopped before it gave a structured answer"
            raise RunError(msg, hint="raise `request_params.max_iterations`")
        return result.structured


def _shape(wanted: type[T] | JsonObject) -> OutputShape:
    return cast("OutputShape", shape_of(wanted))


class CheckedOutput(Generic[T]):
    """A shape whose values must also pass a check.

    Args:
        shape: The shape.
        check: Says what is wrong with a value; None is nothing.
    """

    def __init__(self, shape: OutputShape, check: Callable[[T], str | None]) -> None:
        self._shape = shape
        self._check = check

    @property
    def schema(self) -> OutputSchema:
        """What the model is told."""
        return self._shape.schema

    def parse(self, text: str) -> T:
        """Read the value.

        Raises:
            ValueError: The text is not of the shape, or the check refused the value.
        """
        value = cast("T", self._shape.parse(text))
        problem = self._check(value)
        if problem is not None:
            raise ValueError(problem)
        return value
