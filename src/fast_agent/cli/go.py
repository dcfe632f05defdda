"""`fast-agent go`: run an agent."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import card_options


@click.command()
@card_options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to instead of the default one.")
@card_options.MODEL
@click.option("--message", "-m", metavar="TEXT", help="What to say; `-` reads standard input.")
@click.option(
    "--prompt-file",
    "-p",
    type=card_options.PATH,
    metavar="FILE",
    help="Load a prompt or history and run it.",
)
@click.option("--session", is_flag=True, help="Keep the conversation as a session.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Go on with a session; without ID, with the newest of this directory.",
)
@click.option(
    "--results", type=card_options.PATH, metavar="FILE", help="Write the conversation to a file."
)
@click.option(
    "--json-schema",
    type=card_options.PATH,
    metavar="FILE",
    help="Ask for an answer of this JSON Schema.",
)
@card_options.servers("Give the agent configured MCP servers.")
@click.option(
    "--url", "urls", multiple=True, metavar="URL", help="Give it an MCP server over HTTP."
)
@click.option(
    "--stdio", "commands", multiple=True, metavar="COMMAND", help="Give it an MCP server to start."
)
@card_options.shell()
@card_options.trust("a smart agent")
@card_options.child_history()
@card_options.CONFIG_PATH
@card_options.DUMP
@card_options.quiet("Print nothing but the answer.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="Print the answer alone, or a JSON object with its facts.",
)
@click.option(
    "--record", type=card_options.PATH, metavar="FILE", help="Record the run, to replay it later."
)
@click.option(
    "--replay",
    type=card_options.PATH,
    metavar="FILE",
    help="Replay a recorded run; nothing outside is asked.",
)
def command(**options: Any) -> None:
    """Run an agent: load cards, send one message, print the answer.

    Without cards there is one plain assistant. Cards in .fast-agent/agent-cards/ and
    .fast-agent/tool-cards/ load by themselves.
    """
    from fast_agent.cli.one_shot import OneShot

    OneShot(**options).run()
