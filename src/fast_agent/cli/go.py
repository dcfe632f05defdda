"""`fast-agent go`: run an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fast_agent.cards.agent_config import HISTORIES

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
@click.option("--agent", metavar="NAME", help="The agent to talk to instead of the default one.")
@click.option("--model", metavar="SPEC", help="The model of every agent, over their cards.")
@click.option("--message", "-m", metavar="TEXT", help="What to say; `-` reads standard input.")
@click.option(
    "--prompt-file", "-p", type=_PATH, metavar="FILE", help="Load a prompt or history and run it."
)
@click.option("--session", is_flag=True, help="Keep the conversation as a session.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Go on with a session; without ID, with the newest of this directory.",
)
@click.option("--results", type=_PATH, metavar="FILE", help="Write the conversation to a file.")
@click.option(
    "--json-schema", type=_PATH, metavar="FILE", help="Ask for an answer of this JSON Schema."
)
@click.option(
    "--servers", multiple=True, metavar="NAMES", help="Give the agent configured MCP servers."
)
@click.option(
    "--url", "urls", multiple=True, metavar="URL", help="Give it an MCP server over HTTP."
)
@click.option(
    "--stdio", "commands", multiple=True, metavar="COMMAND", help="Give it an MCP server to start."
)
@click.option("--shell", is_flag=True, help="Let every agent run commands.")
@click.option(
    "--trust",
    is_flag=True,
    help="Run the code of cards that load by themselves or that a smart agent loads.",
)
@click.option(
    "--child-history-source",
    type=click.Choice(HISTORIES),
    help="What called agents start with, over all cards.",
)
@click.option(
    "--child-history-merge-target",
    type=click.Choice(HISTORIES),
    help="Where the new messages of called agents go, over all cards.",
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
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but the answer.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="Print the answer alone, or a JSON object with its facts.",
)
@click.option("--record", type=_PATH, metavar="FILE", help="Record the run, to replay it later.")
@click.option(
    "--replay", type=_PATH, metavar="FILE", help="Replay a recorded run; nothing outside is asked."
)
def command(**options: Any) -> None:
    """Run an agent: load cards, send one message, print the answer.

    Without cards there is one plain assistant. Cards in .fast-agent/agent-cards/ and
    .fast-agent/tool-cards/ load by themselves.
    """
    from fast_agent.cli.one_shot import OneShot

    OneShot(**options).run()
