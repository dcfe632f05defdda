"""`fast-agent maker`."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_output


@click.group()
def command() -> None:
    """Plan the votes of MAKER cards: the required margin and its cost."""


@command.command()
@click.argument("cards", nargs=-1, metavar="[CARD]...")
@click.option(
    "--p", type=float, metavar="P", help="Probability that one answer is right; replaces the cards."
)
@click.option("--steps", type=int, metavar="S", help="Number of steps in the task.")
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
    steps: int | None,
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
    from fast_agent.cli.vote_plan import Measuring, plan_by_formula, render

    if (p is None) == (not cards):
        raise click.UsageError("give either --p or the cards of a worker to measure")
    if p is not None:
        given = [name for name, value in asked.items() if value not in {None, ()}]
        if given:
            option = {"messages": "message", "rights": "right"}.get(given[0], given[0])
            name = option.replace("_", "-")
            raise click.UsageError(f"--{name} goes with cards, not with --p")
        if steps is None:
            raise click.UsageError("--p goes with --steps, the number of steps of the task")
        facts = plan_by_formula(p, steps, target, valid)
    elif valid is not None:
        raise click.UsageError("--valid goes with --p; of cards it is measured")
    else:
        facts = Measuring(cards=cards, steps=steps, target=target, **asked).run()
    standard_output().write(render(facts, output))
