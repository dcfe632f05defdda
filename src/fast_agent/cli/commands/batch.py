"""`fast-agent batch`: one agent over many items, durable and resumable."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import options

_COUNT = click.IntRange(min=0)


@click.command()
@click.argument("card", metavar="CARD", nargs=-1)
@click.option(
    "--input", "source", type=options.PATH, metavar="FILE", required=True,
    help="The items: JSON Lines, CSV or Parquet, by file extension.",
)  # fmt: skip
@click.option(
    "--output", "target", type=options.PATH, metavar="FILE", required=True,
    help="The results, one row per item, in the order of the items.",
)  # fmt: skip
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to use instead of the default one.")
@options.MODEL
@click.option(
    "--concurrency", type=click.IntRange(min=1),
    help="Maximum number of items at a time.  [default: 10; 80 on Temporal, twice the slots of a"
    " worker]",
)  # fmt: skip
@click.option("--id-field", metavar="NAME", help="The field that names an item.")
@click.option(
    "--json-schema", type=options.PATH, metavar="FILE",
    help="Require answers that match this JSON Schema.",
)  # fmt: skip
@click.option("--offset", type=_COUNT, default=0, help="Skip this many items.")
@click.option("--limit", type=_COUNT, help="Take at most this many items.")
@click.option("--sample", type=_COUNT, help="Take this many items, chosen at random.")
@click.option("--seed", type=int, default=0, help="Seed of the random choice of --sample.")
@click.option("--include-input", is_flag=True, help="Include each item in its row.")
@click.option("--retry-failed", is_flag=True, help="Run the failed items again.")
@click.option(
    "--max-errors", metavar="N|N%", help="Stop when more items than this number or fraction failed."
)
@click.option(
    "--limit-cost", type=click.FloatRange(min=0), metavar="DOLLARS",
    help="Stop before the batch costs more.",
)  # fmt: skip
@click.option("--limit-tokens", type=_COUNT, help="Stop before the batch uses more tokens.")
@click.option("--dry-run", is_flag=True, help="Check the items and estimate the cost; run nothing.")
@options.servers("Give the agent configured MCP servers.")
@options.shell()
@options.files()
@options.ALLOW
@options.trust("a smart agent")
@options.ENGINE
@options.CONFIG_PATH
@options.quiet("Print nothing but errors.")
@options.output_format("json", help_text="Print the summary for people, or as JSON.")
def command(card: tuple[str, ...], cards: tuple[str, ...], **settings: Any) -> None:
    """Run an agent over many items, several at a time.

    Each item is one line: a string, an object with a `message`, or the arguments of the agent's
    `tool_input_schema`. Each runs in a fresh conversation and each answer is saved at once: run
    the same command again after a crash to continue without paying for an answer twice.
    """
    from fast_agent.cli.running.batch_run import BatchCommand

    BatchCommand(cards=(*card, *cards), **settings).run()
