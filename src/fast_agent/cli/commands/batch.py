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
    help="The items: JSON Lines, CSV or Parquet, by the ending of the file.",
)  # fmt: skip
@click.option(
    "--output", "target", type=options.PATH, metavar="FILE", required=True,
    help="The results, one row an item, in the order of the items.",
)  # fmt: skip
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent that answers instead of the default one.")
@options.MODEL
@click.option(
    "--concurrency", type=click.IntRange(min=1),
    help="Most items at a time.  [default: 10; 80 on Temporal, twice the slots of a worker]",
)  # fmt: skip
@click.option("--id-field", metavar="NAME", help="The field that names an item.")
@click.option(
    "--json-schema", type=options.PATH, metavar="FILE",
    help="Ask for answers of this JSON Schema.",
)  # fmt: skip
@click.option("--offset", type=_COUNT, default=0, help="Leave out the first items.")
@click.option("--limit", type=_COUNT, help="Take at most so many items.")
@click.option("--sample", type=_COUNT, help="Take so many items, chosen by chance.")
@click.option("--seed", type=int, default=0, help="Seed of the random choice of --sample.")
@click.option("--include-input", is_flag=True, help="Put each item into its row.")
@click.option("--retry-failed", is_flag=True, help="Run the items again that failed.")
@click.option(
    "--max-errors", metavar="N|N%", help="Stop when more items failed, or a larger part of them."
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
