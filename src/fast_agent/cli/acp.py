"""`fast-agent acp`: agents in an editor."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import card_options


@click.command()
@card_options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to first.")
@card_options.MODEL
@card_options.servers("Give the agent configured MCP servers.")
@card_options.shell("Let every agent run commands, each with permission.")
@card_options.WATCH
@card_options.NO_SESSION
@card_options.trust("a smart agent")
@card_options.CONFIG_PATH
@card_options.DUMP
@card_options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Offer agents to an editor that speaks the Agent Client Protocol.

    The editor starts this command and stops it; each agent is a mode. Commands, changes of files
    and calls a card marks with `confirm` need the person's permission.
    """
    from fast_agent.cli.editing import Editing

    Editing(**options).run()
