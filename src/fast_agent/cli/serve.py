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
    "--token-file",
    metavar="FILE",
    help="A file with the bearer token that clients must send (http).",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Also accept requests for this host name; may be repeated (http).",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Allow web pages of this origin; may be repeated (http).",
)
@click.option(
    "--instance-scope",
    "scope",
    type=click.Choice(["shared", "connection", "request"]),
    default="connection",
    show_default=True,
    help="Which requests share a conversation: those of one connection, those of all clients, "
    "or none.",
)
@options.WATCH
@click.option("--reload", is_flag=True, help="Offer a tool that reloads changed cards.")
@click.option(
    "--allow-load",
    multiple=True,
    metavar="DIR",
    help="Offer a tool that loads cards below a directory; may be repeated.",
)
@click.option("--description", metavar="TEXT", help="The server's description for clients.")
@click.option("--skills", multiple=True, metavar="DIR", help="Also serve skills; may be repeated.")
@click.option("--guide", metavar="DIR|FILE", help="Also serve the documents of a guide.")
@click.option("--internal", is_flag=True, help="Also serve fast-agent's own documents.")
@options.NO_SESSION
@options.MODEL
@options.servers("Add configured MCP servers to the default agent.")
@options.shell()
@options.files()
@options.trust("an agent or a client")
@options.ENGINE
@options.child_history()
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Serve agents to MCP clients: each agent is a tool.

    Over HTTP the address is http://HOST:PORT/mcp. Other machines can connect only if --host allows
    it. Over stdio, the client starts and stops this command. Conversations are saved as sessions,
    except with --instance-scope request.
    """
    from fast_agent.cli.serving import Serving

    given = click.get_current_context().get_parameter_source
    for option in ("host", "port"):
        if options["transport"] == "stdio" and given(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} is for --transport http")
    Serving(**options).run()
