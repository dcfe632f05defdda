"""The workflow of type `orchestrator`: a model plans, agents work, the model answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.workflows.planning import Planning, most_plans, planner_blueprint, routes_of
from fast_agent.workflows.workflow import Outcome, Workflow

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message
    from fast_agent.runtime.blueprint import Blueprint, Workshop
    from fast_agent.workflows.workflow_turn import WorkflowTurn


def orchestrator_blueprint(card: Card, workshop: Workshop) -> Blueprint:
    """Make the blueprint of a card of type `orchestrator`.

    Raises:
        CardError: The card cannot be used.
        RunError: It merges into history files of an agent that has none.
    """
    return planner_blueprint(card, workshop, Orchestrator)


class Orchestrator(Workflow):
    """Its model plans everything first (`full`), or step by step (`iterative`).

    With a full plan, its model sees results only where a task failed and what is left is planned
    anew, and at the end, when it answers from them.
    """

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Plan, have the tasks done, and answer; see `Workflow.run`."""
        config = self.config
        routes = routes_of(config, self._setup.workshop)
        planning = Planning(config, self.brain, routes, request, turn, most_plans(config))
        if config.plan_type == "full":
            end = await planning.all_at_once()
        else:
            end = await planning.step_by_step()
        return await planning.answer(end)
