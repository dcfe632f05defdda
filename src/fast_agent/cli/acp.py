"""`fast-agent acp`: agents in an editor."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import options


@click.command()
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to first.")
@options.MODEL
@options.servers("Add configured MCP servers to the agent.")
@options.shell("Allow every agent to run shell commands, each with permission.")
@options.files()
@options.WATCH
@options.NO_SESSION
@options.trust("a smart agent")
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Run agents in an editor that speaks the Agent Client Protocol.

    The editor starts and stops this command. Each agent is a mode. Shell commands, file changes and
    tools that a card lists under `confirm` need the user's permission.
    """
    from fast_agent.cli.editing import Editing

    Editing(**options).run()
