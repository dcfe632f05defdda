"""Calibrator: a workflow that measures a worker instead of voting on its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fast_agent.errors import RunError
from fast_agent.messages.message import Message
from fast_agent.workflows.maker.calibration import calibrate
from fast_agent.workflows.maker.draws import Draws
from fast_agent.workflows.workflow import Outcome, Workflow

if TYPE_CHECKING:
    from fast_agent.models.usage import Usage
    from fast_agent.workflows.maker.calibration import Calibration
    from fast_agent.workflows.workflow import WorkflowSetup
    from fast_agent.workflows.workflow_turn import WorkflowTurn


class Calibrator(Workflow):
    """Draws a sample of answers to one message.

    Args:
        setup: What it is made from.
        samples: How many answers are drawn, from 1.
        right: The right answer; None takes the one most answers give for it.
    """

    def __init__(self, setup: WorkflowSetup, samples: int, *, right: str | None = None) -> None:
        super().__init__(setup)
        self._samples = samples
        self._right = right

    async def measure(self, message: Message | str) -> tuple[Calibration, Usage]:
        """Ask the worker, and give what its answers showed and what they used.

        Args:
            message: A typical step of the task.

        Raises:
            FastAgentError: The worker cannot be asked, or no answer could vote.
        """
        result = await self.generate(message)
        return cast("Calibration", result.structured), result.tree_usage

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Measure; see `Workflow.run`."""
        draws = Draws(self.config, request, turn)
        right = None
        if self._right is not None:
            right = draws.ballot.read(self._right)
            if right.flag is not None:
                word = right.flag.replace("_", " ")
                raise RunError(f"the right answer would be thrown away itself: it is {word}")
        calibration = await calibrate(draws, self._samples, right=right)
        said = Message.assistant(f"p is about {calibration.right.share:.3g}")
        return Outcome(said, calibration.to_json(), calibration)
