"""`fast-agent auth`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import report_note, standard_error, standard_output
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.mcp.oauth.authorization import Authorization, Authorizations, Place
    from fast_agent.mcp.server import ServerSpec

_SERVER = click.argument("server", metavar="NAME|URL")
_DAY_SECONDS = 86_400


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Authorize this program at remote MCP servers by OAuth.

    Tokens are kept in the keyring of the system where there is one (`fast-agent[keyring]`), else in
    `authorizations.json` of the home, which only you can read.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_authorizations)


@command.command("list")
@options.output_format("json")
def list_authorizations(output: str = "human") -> None:
    """List the servers that this program is authorized at."""
    known = _authorizations().all()
    if output == "json":
        standard_output().write_json([_facts(one) for one in known])
        return
    for one in known:
        scope = f", {one.scope}" if one.scope else ""
        line = f"{one.server}   by {one.issuer}{scope}, {_expiry(one)}, in the {one.place}"
        standard_output().line(visible(line))
    if not known:
        standard_output().line("this program is not authorized at any server")


@command.command()
@_SERVER
@click.option("--scope", metavar="SCOPES", help="Ask for these scopes, separated by spaces.")
@click.option(
    "--store",
    type=click.Choice(["keyring", "file"]),
    help="Where to keep the tokens.  [default: the keyring, if there is one]",
)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum wait for your answer in the browser.",
)
@options.CONFIG_PATH
def login(
    server: str,
    *,
    scope: str | None,
    store: Place | None,
    no_browser: bool,
    timeout: float,
    config_path: Path | None,
) -> None:
    """Authorize this program at a server, in your browser.

    NAME is a server of the configuration; the address of any other server is given as it is. The
    address to open is printed before a browser opens it.
    """
    from fast_agent.cli import process as event_loop
    from fast_agent.mcp.oauth.login import LoginOptions, log_in, open_browser

    _refuse_if_started()
    program = _program(config_path)
    spec = _spec(program, server)
    authorizations = _authorizations_of(program)

    async def show(address: str) -> None:
        standard_error().line(f"open this address to authorize fast-agent at `{spec.name}`:")
        standard_error().line(f"  {address}")
        standard_error().line(f"waiting for your answer, {timeout:g} s at most")

    async def browse(address: str) -> bool:
        return await open_browser(address, os.environ)

    asked = LoginOptions(
        show=show,
        browse=None if no_browser else browse,
        scope=scope or " ".join(_scopes(spec)) or None,
        place=store,
        seconds=timeout,
    )
    granted = event_loop.run(log_in, spec, authorizations, asked)
    scopes = f" for {granted.scope}" if granted.scope else ""
    where = "the keyring" if granted.place == "keyring" else f"`{authorizations.path}`"
    standard_output().line(
        visible(f"authorized at `{spec.name}` by {granted.issuer}{scopes}; kept in {where}")
    )
    if spec.lacks_oauth:
        report_note(
            "note: the project that brings this server uses it once `oauth: true` is written there"
            " and approved"
        )


@command.command()
@_SERVER
@options.CONFIG_PATH
def logout(server: str, *, config_path: Path | None) -> None:
    """Revoke an authorization at its server, and forget it here."""
    from fast_agent.cli import process as event_loop
    from fast_agent.errors import ConfigError
    from fast_agent.mcp.oauth.login import revoke
    from fast_agent.mcp.server import HttpTarget

    _refuse_if_started()
    program = _program(config_path)
    authorizations = _authorizations_of(program)
    address = server
    if "://" not in server:
        target = _spec(program, server).target
        address = target.url if isinstance(target, HttpTarget) else ""
    with authorizations.exclusive():
        known = authorizations.get(address) if address else None
        if known is None:
            raise ConfigError(
                f"this program is not authorized at `{server}`",
                hint="`fast-agent auth list` lists where it is",
            )
        revoked = event_loop.run(revoke, known, server)
        authorizations.remove(address)
    standard_output().line(visible(f"logged out of {known.server}"))
    if not revoked:
        report_note(
            f"note: {known.issuer} did not confirm that the authorization is revoked; "
            "end it there if it must no longer be used"
        )


def _spec(program: FastAgent, server: str) -> ServerSpec:
    """Return the server of a name or an address.

    Raises:
        ConfigError: There is none of that name.
        TrustError: A project brings it, and may not act yet.
    """
    from fast_agent.errors import ConfigError
    from fast_agent.mcp.server import from_settings, from_url
    from fast_agent.text.wording import closest, did_you_mean

    if "://" in server:
        return from_url(server, declared="the address")
    specs = {spec.name: spec for spec in from_settings(program.settings.mcp)}
    found = specs.get(server)
    if found is None:
        program.admission.decisions.check_server(server)
        near = closest(server, specs)
        raise ConfigError(
            f"the configuration has no MCP server `{server}`",
            hint=did_you_mean(near, "give its address instead"),
        )
    return found


def _scopes(spec: ServerSpec) -> tuple[str, ...]:
    from fast_agent.mcp.server import HttpTarget

    return spec.target.oauth.scopes if isinstance(spec.target, HttpTarget) else ()


def _program(config_path: Path | None) -> FastAgent:
    from fast_agent.app import FastAgent

    return FastAgent(config_path=config_path)


def _authorizations() -> Authorizations:
    from fast_agent.config.home import home_directory
    from fast_agent.mcp.oauth.authorization import Authorizations

    return Authorizations(home_directory(os.environ))


def _authorizations_of(program: FastAgent) -> Authorizations:
    """Return what keeps the tokens.

    Raises:
        ConfigError: The home is not the user's own.
    """
    from fast_agent.errors import ConfigError

    known = program.servers.authorizations()
    if known is None:
        raise ConfigError(
            f"the home {program.gate.fault}, so it cannot keep tokens",
            hint="set FAST_AGENT_HOME to a directory of yours outside the project",
        )
    return known


def _refuse_if_started() -> None:
    from fast_agent.errors import ConfigError
    from fast_agent.trust.policy import STARTED_VARIABLE

    if os.environ.get(STARTED_VARIABLE):
        raise ConfigError(
            "nothing is authorized here: this process was started by an agent or its server",
            hint="authorize it at a terminal of your own",
        )


def _expiry(one: Authorization) -> str:
    import time

    if one.expires_at is None:
        return "without an end"
    left = one.expires_at - time.time()
    if left <= 0:
        return "expired, renewed at the next use"
    if left < 2 * _DAY_SECONDS:
        return f"expires in {max(1, round(left / 60))} min"
    return f"expires in {round(left / _DAY_SECONDS)} days"


def _facts(one: Authorization) -> dict[str, object]:
    return {
        "server": one.server,
        "issuer": one.issuer,
        "scope": one.scope,
        "granted_at": one.granted_at,
        "expires_at": one.expires_at,
        "place": one.place,
    }
