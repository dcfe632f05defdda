"""`fast-agent serve`: agents over MCP."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from fast_agent.cli import card_options, options
from fast_agent.cli.card_options import DumpOptions, check_dump, dump_agents, wants_dump
from fast_agent.cli.output import (
    CLIENT_EXPECTED,
    ErrorCollector,
    report_input,
    report_note,
    standard_error,
)
from fast_agent.cli.process import show_log
from fast_agent.cli.resource_options import http_option
from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import HistorySource, HistoryTarget
    from fast_agent.serve.agent_scopes import InstanceScope
    from fast_agent.serve.agent_server import ServedResources
    from fast_agent.serve.http_access import HttpSettings


@frozen(kw_only=True)
class ServeCommand(DumpOptions):
    """The options of `fast-agent serve`, and what it does with them."""

    transport: Literal["http", "stdio"]
    host: str
    port: int
    token_file: str | None
    allow_host: tuple[str, ...]
    allow_origin: tuple[str, ...]
    trusted_proxy: tuple[str, ...]
    scope: InstanceScope
    watch: bool
    reload: bool
    allow_load: tuple[str, ...]
    description: str | None
    skills: tuple[str, ...]
    guide: str | None
    internal: bool
    no_session: bool
    child_history_source: HistorySource | None
    child_history_merge_target: HistoryTarget | None
    engine: str = "embedded"
    temporal_address: str | None = None

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong; nothing was served.
            click.UsageError: The options do not go together.
        """
        self._check_usage()
        show_log(quiet=self.quiet)
        http = resources = None
        with ErrorCollector() as faults:
            program = self.program(faults)
            with faults.collect():
                _check_directories("--allow-load", self.allow_load)
            with faults.collect():
                http = self._http()
            with faults.collect():
                resources = self._resources()
        if wants_dump(self):
            dump_agents(program, self)
            return
        if self.engine == "temporal":
            from fast_agent.cli.running.temporal import carry_turns

            carry_turns(program, self, self.temporal_address)
        self._serve(program, http, resources)

    def load(self, program: FastAgent) -> None:
        """Load the cards, and see that something is left to be served."""
        self.load_cards(program)
        program.admission.require_some(program.names())

    def _serve(
        self, program: FastAgent, http: HttpSettings | None, resources: ServedResources | None
    ) -> None:
        from functools import partial

        from fast_agent.cli import process as event_loop
        from fast_agent.serve.agent_serving import ServeOptions, serve
        from fast_agent.serve.http_access import HttpSettings

        if self.transport == "http":
            from fast_agent.serve.connections import raise_descriptor_limit

            raise_descriptor_limit()
        else:
            report_input(CLIENT_EXPECTED)

        options = ServeOptions(
            transport=self.transport,
            http=http or HttpSettings(),
            scope=self.scope,
            description=self.description,
            watch=self.watch,
            reload=self.reload,
            allow_load=self.allow_load,
            trust=self.trust,
            model=self.model,
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            child_history=card_options.child_history(
                self.child_history_source, self.child_history_merge_target
            ),
            sessions=None if self.no_session else card_options.session_store(program, waits=True),
            resources=resources,
        )
        ready = partial(_print_address, "serving at {}")
        event_loop.run(partial(serve, program, options, ready=ready, notify=report_note))

    def _check_usage(self) -> None:
        check_dump(self)
        if self.transport == "stdio" and (option := http_option(asdict(self))):
            raise click.UsageError(f"{option} applies only to --transport http")

    def _http(self) -> HttpSettings:
        from fast_agent.serve.http import read_token
        from fast_agent.serve.http_access import HttpSettings

        settings = HttpSettings(
            host=self.host,
            port=self.port,
            token=None if self.token_file is None else read_token(self.token_file),
            allow_hosts=self.allow_host,
            allow_origins=self.allow_origin,
            trusted_proxies=self.trusted_proxy,
        )
        settings.check()
        return settings

    def _resources(self) -> ServedResources | None:
        from fast_agent.resources.roots import ResourceRoots

        _check_directories("--skills", self.skills)
        roots = ResourceRoots(skills=self.skills, guide=self.guide, internal=self.internal)
        if roots.empty:
            return None
        from fast_agent.serve.agent_server import ServedResources

        opened = roots.open(
            report=lambda found: report_note(f"{found.severity}: {found.path}: {found.message}")
        )
        return ServedResources(opened.catalog, opened.additions)


def _check_directories(option: str, named: tuple[str, ...]) -> None:
    for one in named:
        if not os.path.isdir(one):  # noqa: PTH112
            raise ConfigError(
                f"{option} names `{one}`, which is not a directory",
                hint="make it, or correct the path",
            )


def _print_address(form: str, address: str) -> None:
    standard_error().line(form.format(address))


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
    "--trusted-proxy",
    multiple=True,
    metavar="ADDRESS",
    help="Take the client's address from X-Forwarded-For of this proxy or network; may be repeated "
    "(http).",
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
    given = click.get_current_context().get_parameter_source
    for option in ("host", "port"):
        if options["transport"] == "stdio" and given(option) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} applies only to --transport http")
    ServeCommand(**options).run()
