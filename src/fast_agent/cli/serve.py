"""`fast-agent serve`: agents over MCP."""

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
    help="Load cards as tools of the default agent; may be repeated.",
)
@click.option("--multi-card", is_flag=True, help="Let a file hold several cards.")
@click.option(
    "--transport",
    type=click.Choice(["http", "stdio"]),
    default="http",
    show_default=True,
    help="How clients connect.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on (http)."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 for any free one (http).",
)
@click.option(
    "--token-file", metavar="FILE", help="A file with the token that clients must bear (http)."
)
@click.option(
    "--instance-scope",
    "scope",
    type=click.Choice(["shared", "connection", "request"]),
    default="shared",
    show_default=True,
    help="Who shares a conversation: all clients, the requests of one connection, or nobody.",
)
@click.option("--watch", is_flag=True, help="Take changed cards as soon as they change.")
@click.option("--reload", is_flag=True, help="Offer a tool that reads changed cards again.")
@click.option(
    "--allow-load",
    multiple=True,
    metavar="DIR",
    help="Offer a tool that loads cards below a directory; may be repeated.",
)
@click.option("--description", metavar="TEXT", help="What clients are told of the server.")
@click.option(
    "--skills", multiple=True, metavar="DIR", help="Serve skills beside; may be repeated."
)
@click.option("--guide", metavar="DIR|FILE", help="Serve a guide's documents beside.")
@click.option("--internal", is_flag=True, help="Serve the documents of fast-agent beside.")
@click.option("--no-session", is_flag=True, help="Keep conversations in memory only.")
@click.option("--model", metavar="SPEC", help="The model of every agent, over their cards.")
@click.option(
    "--servers", multiple=True, metavar="NAMES", help="Give the default agent configured servers."
)
@click.option("--shell", is_flag=True, help="Let every agent run commands.")
@click.option(
    "--trust",
    is_flag=True,
    help="Run the code of cards that load by themselves or that an agent or a client loads.",
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
@click.option("--quiet", "-q", is_flag=True, help="Print no warnings.")
def command(**options: Any) -> None:
    """Serve agents to MCP clients: each agent is a tool.

    Over HTTP the address is http://HOST:PORT/mcp; other machines reach it only where --host says
    so. Over stdio, the client starts this command and stops it. Conversations are kept as sessions;
    calls under --instance-scope request are none.
    """
    from fast_agent.cli.serving import Serving

    Serving(**options).run()
