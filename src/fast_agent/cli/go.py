"""`fast-agent go`: run an agent."""

from __future__ import annotations

from typing import Any

import click

from fast_agent.cli import options


@click.command()
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to instead of the default one.")
@options.MODEL
@click.option("--message", "-m", metavar="TEXT", help="What to say; `-` reads standard input.")
@click.option(
    "--prompt-file",
    "-p",
    type=options.PATH,
    metavar="FILE",
    help="Load a prompt or history and run it.",
)
@click.option("--session", is_flag=True, help="Keep the conversation as a session.")
@click.option("--no-session", is_flag=True, help="Keep no session of a conversation.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Go on with a session; without ID, with the newest of this directory.",
)
@click.option(
    "--results", type=options.PATH, metavar="FILE", help="Write the conversation to a file."
)
@click.option(
    "--json-schema",
    type=options.PATH,
    metavar="FILE",
    help="Ask for an answer of this JSON Schema.",
)
@options.servers("Give the agent configured MCP servers.")
@click.option(
    "--url", "urls", multiple=True, metavar="URL", help="Give it an MCP server over HTTP."
)
@click.option(
    "--stdio", "commands", multiple=True, metavar="COMMAND", help="Give it an MCP server to start."
)
@options.shell()
@options.files()
@options.trust("a smart agent")
@click.option("--plain", is_flag=True, help="Talk line by line, without drawing.")
@click.option("--watch", is_flag=True, help="Reload cards when their files change.")
@click.option("--reload", is_flag=True, help="Reload cards at the command `/reload`.")
@options.child_history()
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print nothing but the answer.")
@options.output_format(
    "json",
    "events",
    told="Print the answer alone, a JSON object with its facts, or every event as a JSON line.",
)
@click.option(
    "--record", type=options.PATH, metavar="FILE", help="Record the run, to replay it later."
)
@click.option(
    "--replay",
    type=options.PATH,
    metavar="FILE",
    help="Replay a recorded run; nothing outside is asked.",
)
def command(**options: Any) -> None:
    """Run an agent: load cards, send one message, print the answer.

    Without a message it opens a conversation at the terminal, which is kept as a session.

    Without cards there is one plain assistant. Cards in .fast-agent/agent-cards/ and
    .fast-agent/tool-cards/ load by themselves.
    """
    from fast_agent.cli.one_shot import OneShot

    OneShot(**options).run()
