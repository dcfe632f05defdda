"""The workflow of type `MAKER`: one small step, decided by a vote of independent answers."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, cast

from anyio import Lock

from fast_agent.agents.turn_context import Outcome
from fast_agent.errors import RunError
from fast_agent.messages.message import Message
from fast_agent.workflows.maker.calibration import calibrate, usual_samples
from fast_agent.workflows.maker.race import Draws, hold_vote
from fast_agent.workflows.workflow import Workflow, WorkflowBlueprint, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.models.model import Usage
    from fast_agent.runtime.blueprint import Blueprint
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.workflows.maker.calibration import Calibration
    from fast_agent.workflows.maker.race import Draw, Sample, Tally, Verdict
    from fast_agent.workflows.workflow import WorkflowSetup
    from fast_agent.workflows.workflow_turn import WorkflowTurn


def maker_blueprint(card: Card, context: RuntimeContext) -> Blueprint:
    """Make the blueprint of a card of type `MAKER`; its instances share one calibration."""
    return WorkflowBlueprint(card, context, partial(Maker, measured=SharedCalibration()))


class SharedCalibration:
    """The calibration all instances of a card share, made when one first needs it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calibration: Calibration | None = None

    async def get(self, config: AgentConfig, draw: Draw) -> Calibration:
        """Return it; the first caller measures.

        Raises:
            FastAgentError: It could not be measured; the next to ask measures again.
        """
        async with self._lock:
            if self._calibration is None:
                samples = config.calibration_samples or usual_samples(config.steps)
                self._calibration = await calibrate(draw, samples)
            return self._calibration


class Maker(Workflow):
    """Asks fresh clones of its worker until one answer is `k` votes ahead of every other.

    Args:
        setup: What it is made from.
        measured: The calibration it shares with other instances of the card.
    """

    def __init__(self, setup: WorkflowSetup, *, measured: SharedCalibration) -> None:
        super().__init__(setup)
        self._measured = measured

    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Hold one vote; see `Workflow.run`."""
        config = self.config
        draw = Draws(config, request, turn)
        calibration, k = await self._choose_k(draw)
        if k > config.max_samples:
            raise RunError(
                f"agent `{self.name}` cannot get {k} votes ahead in `max_samples` of"
                f" {config.max_samples}",
                hint=f"raise `max_samples` well above {k}",
            )
        heard = _SampleReporter(turn, k)
        verdict = await hold_vote(draw, k=k, max_samples=config.max_samples, on_sample=heard)
        winner = self._winner(verdict, heard)
        if not verdict.converged:
            turn.warn(
                f"the vote did not converge: after {verdict.total_samples} answers the winner is"
                f" {verdict.margin} of {k} votes ahead"
            )
        workflow = {"type": "MAKER", **_record(verdict, winner)}
        if calibration is not None:
            workflow |= {"k": k, "calibration": calibration.to_json()}
        structured = winner.value if turn.output is not None else None
        return Outcome(Message.assistant(winner.text), workflow, structured)

    def calibrator(self, samples: int, *, right: str | None = None) -> Calibrator:
        """Return what measures the worker instead of voting; see `Calibrator`."""
        return Calibrator(self._setup, samples, right=right)

    async def _choose_k(self, draw: Draw) -> tuple[Calibration | None, int]:
        config = self.config
        if isinstance(config.k, int):
            return None, config.k
        calibration = await self._measured.get(config, draw)
        return calibration, calibration.k_for(config.steps, config.target_success)

    def _winner(self, verdict: Verdict, heard: _SampleReporter) -> Sample:
        winner = verdict.winner
        if winner is None:
            worker, name = self.config.worker, self.config.name
            why = ", ".join([f"{count} {flag}" for flag, count in heard.flags.items()])
            raise RunError(
                f"none of the {verdict.total_samples} answers of `{worker}` could vote: {why}",
                hint=f"change the instruction of `{worker}`, or `red_flag_max_length` of `{name}`",
            )
        return winner


class _SampleReporter:
    """Emits an event for each draw, in order, and counts the flags."""

    def __init__(self, turn: WorkflowTurn, k: int) -> None:
        self._turn = turn
        self._k = k
        self._flags: Counter[str] = Counter()

    @property
    def flags(self) -> Mapping[str, int]:
        """How often each flag was raised, in words."""
        return self._flags

    def __call__(self, number: int, sample: Sample, tally: Tally) -> None:
        if sample.flag is not None:
            self._flags[sample.flag.replace("_", " ")] += 1
            why = {} if sample.failure is None else {"error": excerpt(sample.failure.message)}
            self._turn.emit("flag", draw=number, reason=sample.flag, **why)
            return
        self._turn.emit(
            "vote",
            draw=number,
            answer=excerpt(sample.text),
            votes=tally.votes[sample.key],
            leads=sample.key == tally.leader,
            margin=tally.margin,
            k=self._k,
        )


def _record(verdict: Verdict, winner: Sample) -> JsonObject:
    """Return the result of a vote as JSON."""
    votes: dict[str, JsonValue] = {}
    for sample, count in verdict.votes:
        text = excerpt(sample.text)
        # Long answers may differ only behind what is shown of them.
        while text in votes:
            text += " (another)"
        votes[text] = count
    return {
        "winner": excerpt(winner.text),
        "votes": votes,
        "total_samples": verdict.total_samples,
        "discarded_samples": verdict.discarded_samples,
        "margin": verdict.margin,
        "converged": verdict.converged,
    }


class Calibrator(Workflow):
    """Draws a sample of answers to one message.

    Args:
        setup: What it is made from.
        samples: How many answers are drawn, from 1.
        right: The right answer; None takes the most frequent answer for it.
    """

    def __init__(self, setup: WorkflowSetup, samples: int, *, right: str | None = None) -> None:
        super().__init__(setup)
        self._samples = samples
        self._right = right

    async def measure(self, message: Message | str) -> tuple[Calibration, Usage]:
        """Ask the worker, and return what its answers showed and what they used.

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
                raise RunError(f"the right answer would be discarded itself: it is {word}")
        calibration = await calibrate(draws, self._samples, right=right)
        said = Message.assistant(f"p is about {calibration.right.share:.3g}")
        return Outcome(said, calibration.to_json(), calibration)
