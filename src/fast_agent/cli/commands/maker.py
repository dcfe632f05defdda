"""`fast-agent maker`."""

from __future__ import annotations

import json
from itertools import zip_longest
from math import ceil
from typing import TYPE_CHECKING, Any, cast

import click

from fast_agent.cli import options
from fast_agent.cli.output import hide_in_errors, prints_apart, standard_output
from fast_agent.errors import CardError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject
    from fast_agent.workflows.maker.calibration import Calibration
    from fast_agent.workflows.maker.maker import Maker

TARGET = 0.95
"""How likely all steps shall be right, where nothing is said."""


def plan_by_formula(p: float, steps: int, target: float | None, valid: float | None) -> JsonObject:
    """Choose k for a worker that is known.

    Args:
        p: How often one answer is right.
        steps: How many steps the task has.
        target: How likely all shall be right; None is 0.95.
        valid: Share of answers that are not discarded; None is all.

    Raises:
        RunError: No k can do it, or a number is out of its range.
    """
    from fast_agent.workflows.maker.calibration import make_plan

    aim = TARGET if target is None else target
    return make_plan(p, steps, aim, valid=1.0 if valid is None else valid).to_json()


@frozen(kw_only=True)
class PlanCommand:
    """The options of `fast-agent maker plan CARD`, and what it does with them."""

    cards: tuple[str, ...]
    step_count: int | None
    target: float | None
    agent: str | None
    messages: tuple[str, ...]
    rights: tuple[str, ...]
    samples: int | None
    model: str | None
    config_path: Path | None

    def run(self) -> JsonObject:
        """Ask the worker, and choose k.

        Raises:
            FastAgentError: A card is wrong, the worker cannot be asked, or its answers agree too
                little.
            click.UsageError: The options do not go together.
        """
        if not self.messages or not all(message.strip() for message in self.messages):
            raise click.UsageError("pass a typical step of the task with --message TEXT")
        if self.rights and len(self.rights) != len(self.messages):
            raise click.UsageError("pass --right as often as --message, or not at all")
        from fast_agent.app import FastAgent
        from fast_agent.cli import process as event_loop
        from fast_agent.workflows.maker.calibration import check_steps, check_target, usual_samples

        program = FastAgent(config_path=self.config_path)
        hide_in_errors(program.redact)
        program.load(cards=self.cards)
        config = self._voter(program)
        steps = config.steps if self.step_count is None else self.step_count
        target = config.target_success if self.target is None else self.target
        check_steps(steps)
        check_target(target)
        samples = self.samples or config.calibration_samples or usual_samples(steps)
        # Standard output is for the plan.
        with prints_apart():
            calibration, usage = event_loop.run(self._measure, program, config.name, samples)
        return _facts(calibration, usage, steps, target)

    def _voter(self, program: FastAgent) -> AgentConfig:
        cards = program.load_set.cards
        voters = {name: card.config for name, card in cards.items() if card.config.type == "MAKER"}
        if self.agent is not None:
            if self.agent in voters:
                return voters[self.agent]
            known = ", ".join([f"`{name}`" for name in voters]) or "there is none"
            raise CardError(
                f"`{self.agent}` is not a card of type `MAKER`", hint=f"such cards: {known}"
            )
        if len(voters) != 1:
            names = ", ".join([f"`{name}`" for name in voters])
            raise CardError(
                f"{len(voters) or 'no'} cards of type `MAKER` were loaded",
                hint=f"choose with --agent from {names}" if voters else "load one, with its worker",
            )
        return next(iter(voters.values()))

    async def _measure(
        self, program: FastAgent, name: str, samples: int
    ) -> tuple[Calibration, Usage]:
        each = ceil(samples / len(self.messages))
        async with program.run(model=self.model) as app:
            voter = cast("Maker", app[name])
            parts = [
                await voter.calibrator(each, right=right).measure(message)
                for message, right in zip_longest(self.messages, self.rights)
            ]
        (first, used), *others = parts
        for calibration, usage in others:
            first, used = first + calibration, used + usage
        return first, used


def _facts(calibration: Calibration, used: Usage, steps: int, target: float) -> JsonObject:
    """Return the plan, its measurements, and the expected usage of the whole task."""
    plan = calibration.plan(steps, target)
    times = plan.draws_total / calibration.valid.trials
    return {
        **plan.to_json(),
        **calibration.to_json(),
        "input_tokens_total": used.input_tokens * times,
        "output_tokens_total": used.output_tokens * times,
        "requests_total": used.requests * times,
    }


def render(facts: JsonObject, output: str) -> str:
    """Write the facts of a plan.

    Args:
        facts: The facts.
        output: `human` or `json`.
    """
    if output == "json":
        return json.dumps(facts) + "\n"
    value = cast("dict[str, float]", facts)
    lines: list[tuple[str, str]] = []
    if "p" in facts:
        thrown = f"{value['discarded_samples']} of them discarded"
        lines.append(("measured on", f"{value['samples']} answers, {thrown}"))
        between = f"{value['p_low']:.1%} to {value['p_high']:.1%}"
        lines.append(("right answers", f"{value['p']:.1%}, at 95 % confidence {between}"))
    lines += [
        ("k", f"{value['k']} votes ahead"),
        ("all steps right", f"{value['p_full']:.2%} likely"),
        ("answers a step", f"{value['draws_per_step']:.2f}"),
        ("answers in all", f"{value['draws_total']:,.0f}"),
    ]
    if "p" in facts:
        received = f"{value['output_tokens_total']:,.0f} out"
        lines.append(("tokens in all", f"{value['input_tokens_total']:,.0f} in, {received}"))
    return "".join([f"{name:<17}{text}\n" for name, text in lines])


@click.group()
def command() -> None:
    """Plan the votes of MAKER cards: the required margin and its cost."""


@command.command()
@click.argument("cards", nargs=-1, metavar="[CARD]...")
@click.option(
    "--p", type=float, metavar="P", help="Probability that one answer is right; replaces the cards."
)
@click.option("--steps", "step_count", type=int, metavar="S", help="Number of steps in the task.")
@click.option(
    "--target",
    type=float,
    metavar="T",
    help="Target probability that every step is right. [default: 0.95]",
)
@click.option(
    "--valid", type=float, metavar="V", help="Fraction of answers that are valid; only with --p."
)
@click.option("--agent", metavar="NAME", help="The MAKER card to measure, if there are several.")
@click.option(
    "--message",
    "-m",
    "messages",
    multiple=True,
    metavar="TEXT",
    help="A typical step for the worker to answer; may be repeated.",
)
@click.option(
    "--right",
    "rights",
    multiple=True,
    metavar="TEXT",
    help="The right answer to each message; default: the most frequent answer.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Total number of answers to draw.",
)
@options.MODEL
@options.CONFIG_PATH
@options.output_format("json")
def plan(
    cards: tuple[str, ...],
    p: float | None,
    step_count: int | None,
    target: float | None,
    valid: float | None,
    output: str,
    **asked: Any,
) -> None:
    """Choose k for a task of many steps, and print the expected result.

    With --p, by the formula alone. With CARDs, the worker of a MAKER card first answers each
    --message some times, which shows how often it is right; the answers are asked of its model and
    cost what they cost. k then holds even at the low end of what p may be.
    """
    if (p is None) == (not cards):
        raise click.UsageError("pass either --p or the cards of a worker to measure")
    if p is not None:
        given = [name for name, value in asked.items() if value not in {None, ()}]
        if given:
            option = {"messages": "message", "rights": "right"}.get(given[0], given[0])
            name = option.replace("_", "-")
            raise click.UsageError(f"--{name} goes with cards, not with --p")
        if step_count is None:
            raise click.UsageError("--p requires --steps, the number of steps of the task")
        facts = plan_by_formula(p, step_count, target, valid)
    elif valid is not None:
        raise click.UsageError("--valid requires --p; with cards it is measured")
    else:
        facts = PlanCommand(cards=cards, step_count=step_count, target=target, **asked).run()
    standard_output().write(render(facts, output))
