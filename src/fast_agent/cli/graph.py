"""`fast-agent graph`."""

from __future__ import annotations

from pathlib import Path

import click

from fast_agent.cli import options
from fast_agent.cli.output import hide_in_errors, standard_output


@click.command()
@click.argument("paths", nargs=-1)
@options.MULTI_CARD
@click.option(
    "--cost",
    is_flag=True,
    help="Show the maximum number of model requests and tool calls of a turn.",
)
@options.CONFIG_PATH
@click.option(
    "--format",
    "output",
    type=click.Choice(["mermaid", "svg", "table", "json"]),
    help="A Mermaid diagram, an SVG image, a table or JSON. The default is a table with --cost, "
    "otherwise Mermaid.",
)
def command(
    paths: tuple[str, ...],
    multi_card: bool,
    cost: bool,
    config_path: Path | None,
    output: str | None,
) -> None:
    """Draw the agents of cards and their references. Nothing is run.

    PATHS are files, directories and addresses that are loaded together. The default is the cards
    that load automatically in this directory, or else the directory itself.
    """
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_graph import CardGraph, render_graph
    from fast_agent.cli.loading import found_cards
    from fast_agent.trust.gate import TrustOptions

    program = FastAgent(
        config_path=config_path,
        trust=TrustOptions(passive=True),
    )
    hide_in_errors(program.redact)
    named: tuple[str | Path, ...] = paths or (*found_cards(program, (), ())[2],) or (".",)
    where = [one if "://" in str(one) else Path(one).absolute() for one in named]
    program.load(cards=where, multi_card=multi_card, found=() if paths else where)
    graph = CardGraph.of(program, cost=cost)
    if output == "svg":
        from fast_agent.cli.graph_svg import draw_graph

        text = draw_graph(graph)
    else:
        text = render_graph(graph, output or ("table" if cost else "mermaid"))
    standard_output().write_facts(text)
