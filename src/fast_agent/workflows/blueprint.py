"""Workflow blueprint: a card of a workflow's type made ready once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.request_params import NO_PARAMS
from fast_agent.runtime.blueprint import templates_of
from fast_agent.workflows.workflow import WorkflowSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.workflows.brain import CoordinatorModel
    from fast_agent.workflows.workflow import Workflow

MakeWorkflow: TypeAlias = "Callable[[WorkflowSetup], Workflow]"
"""Makes an instance of a type: its class, as a rule."""


class WorkflowBlueprint:
    """The blueprint of a card of a workflow's type.

    Args:
        card: The card.
        context: What it is made with.
        make: Makes an instance of the type.
        brain: The workflow's own model; None for a type that has none.

    Raises:
        HistoryError: A file of its `messages` cannot be read.
    """

    def __init__(
        self,
        card: Card,
        context: RuntimeContext,
        make: MakeWorkflow,
        *,
        brain: CoordinatorModel | None = None,
    ) -> None:
        self._config = card.config
        self._context = context
        self._make = make
        self._brain = brain
        options = context.options
        own = card.config.request_params or NO_PARAMS
        params = options.params.over(own).over(context.settings.request_params)
        self._limits = params.usage_limits
        self._templates = templates_of(card.config, options.workspace)

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the MCP servers its own model uses; its members need their own."""
        return () if self._brain is None else self._brain.servers

    def instance(
        self,
        messages: Iterable[Message] | None = None,
        *,
        shared: bool = False,
        turn: TurnContext | None = None,
    ) -> Workflow:
        """Make an instance; see `Blueprint.instance`."""
        return self._make(
            WorkflowSetup(
                config=self._config,
                context=self._context,
                turn=self._context.turn if turn is None else turn,
                templates=self._templates if messages is None else messages,
                shared=shared,
                limits=self._limits,
                brain=self._brain,
            )
        )
