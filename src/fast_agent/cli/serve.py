"""`fast-agent serve`: agents over MCP."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from fast_agent.cli import options


@click.command()
@options.cards("the default agent")
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
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Accept requests for this host name too; may be repeated (http).",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Let web pages of this origin call; may be repeated (http).",
)
@click.option(
    "--instance-scope",
    "scope",
    type=click.Choice(["shared", "connection", "request"]),
    default="connection",
    show_default=True,
    help="Who shares a conversation: the requests of one connection, all clients, or nobody.",
)
@options.WATCH
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
@options.NO_SESSION
@options.MODEL
@options.servers("Give the default agent configured servers.")
@options.shell()
@options.files()
@options.trust("an agent or a client")
@options.child_history()
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Serve agents to MCP clients: each agent is a tool.

    Over HTTP the address is http://HOST:PORT/mcp; other machines reach it only where --host says
    so. Over stdio, the client starts this command and stops it. Conversations are kept as sessions;
    calls under --instance-scope request are none.
    """
    from fast_agent.cli.serving import Serving

    given = click.get_current_context().get_parameter_source
    for option in ("host", "port"):
        if options["transport"] == "stdio" and given(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} is for --transport http")
    Serving(**options).run()
