"""`fast-agent acp`: agents in an editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.option(
    "--card",
    "--agent-cards",
    "cards",
    multiple=True,
    metavar="PATH|URL",
    help="Load cards from a file, a directory or an address; may be repeated.",
)
@click.option(
    "--card-tool",
    "card_tools",
    multiple=True,
    metavar="PATH|URL",
    help="Load cards as tools of the agent; may be repeated.",
)
@click.option("--multi-card", is_flag=True, help="Let a file hold several cards.")
@click.option("--agent", metavar="NAME", help="The agent to talk to first.")
@click.option("--model", metavar="SPEC", help="The model of every agent, over their cards.")
@click.option(
    "--servers", multiple=True, metavar="NAMES", help="Give the agent configured MCP servers."
)
@click.option("--shell", is_flag=True, help="Let every agent run commands, each with permission.")
@click.option("--watch", is_flag=True, help="Take changed cards as soon as they change.")
@click.option("--no-session", is_flag=True, help="Keep conversations in memory only.")
@click.option(
    "--trust",
    is_flag=True,
    help="Run the code of cards that load by themselves or that a smart agent loads.",
)
@click.option("--config-path", "-c", type=_PATH, metavar="FILE", help="The configuration file.")
@click.option(
    "--dump", "--dump-agents", "dump", type=_PATH, metavar="DIR", help="Write cards as Markdown."
)
@click.option(
    "--dump-yaml", "--dump-agents-yaml", type=_PATH, metavar="DIR", help="Write cards as YAML."
)
@click.option("--dump-agent", metavar="NAME", help="Write one card, to --dump-agent-path.")
@click.option("--dump-agent-path", type=_PATH, metavar="FILE", help="Where --dump-agent writes.")
@click.option("--dump-agent-yaml", is_flag=True, help="Write that one as YAML.")
@click.option("--quiet", "-q", is_flag=True, help="Print no warnings.")
def command(**options: Any) -> None:
    """Offer agents to an editor that speaks the Agent Client Protocol.

    The editor starts this command and stops it; each agent is a mode. Commands, changes of files
    and calls a card marks with `confirm` need the person's permission.
    """
    from fast_agent.cli.editing import Editing

    Editing(**options).run()
