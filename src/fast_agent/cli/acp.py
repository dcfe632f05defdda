"""`fast-agent acp`: agents in an editor."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import options


@click.command()
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to first.")
@options.MODEL
@options.servers("Give the agent configured MCP servers.")
@options.shell("Let every agent run commands, each with permission.")
@options.files()
@options.WATCH
@options.NO_SESSION
@options.trust("a smart agent")
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Offer agents to an editor that speaks the Agent Client Protocol.

    The editor starts this command and stops it; each agent is a mode. Commands, changes of files
    and calls a card marks with `confirm` need the person's permission.
    """
    from fast_agent.cli.editing import Editing

    Editing(**options).run()
