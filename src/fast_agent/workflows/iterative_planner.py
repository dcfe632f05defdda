"""The workflow of type `iterative_planner`: a model plans step after step until all is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.workflows.planning import Planning, most_plans, planner_blueprint, routes_of
from fast_agent.workflows.workflow import Outcome, Workflow

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message
    from fast_agent.runtime.blueprint import Blueprint, Workshop
    from fast_agent.workflows.workflow_turn import WorkflowTurn


def iterative_planner_blueprint(card: Card, workshop: Workshop) -> Blueprint:
    """Make the blueprint of a card of type `iterative_planner`.

    Raises:
        CardError: The card cannot be used.
        RunError: It merges into history files of an agent that has none.
    """
    return planner_blueprint(card, workshop, IterativePlanner)


class IterativePlanner(Workflow):
    """Its model plans one step, sees the results, and plans the next, until the request is met.

    It ends where the model says so, at `plan_iterations`, at a usage limit, where nothing new
    comes of its steps any more, or at the most tasks of one request.
    """

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Plan and have done step after step, and answer; see `Workflow.run`."""
        config = self.config
        routes = routes_of(config, self._setup.workshop)
        planning = Planning(config, self.brain, routes, request, turn, most_plans(config))
        return await planning.answer(await planning.step_by_step())
