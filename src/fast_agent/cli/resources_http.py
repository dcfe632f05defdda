"""`fast-agent resources serve --transport http`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
import click

from fast_agent.cli.output import standard_error
from fast_agent.cli.resource_options import roots_of
from fast_agent.cli.resources_fast import SERVER_NAME
from fast_agent.serve.connections import raise_descriptor_limit
from fast_agent.serve.http import MCP_PATH, open_socket, read_token, serve_http
from fast_agent.serve.http_access import HttpSettings
from fast_agent.serve.resource_server import ResourceServer
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_PORT = 65535


def serve_over_http(values: Mapping[str, object]) -> None:
    """Serve over HTTP what the values of the command name, until it is interrupted."""
    token_file = cast("str | None", values["token_file"])
    settings = HttpSettings(
        host=str(values["host"]),
        port=_port(str(values["port"])),
        token=None if token_file is None else read_token(token_file),
        allow_hosts=cast("tuple[str, ...]", values["allow_host"]),
        allow_origins=cast("tuple[str, ...]", values["allow_origin"]),
    )
    settings.check()
    raise_descriptor_limit()
    service = roots_of(values).open().service(SERVER_NAME, __version__)
    listening = open_socket(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    standard_error().line(f"serving at http://{host}:{listening.getsockname()[1]}{MCP_PATH}")
    anyio.run(partial(serve_http, ResourceServer(service), settings, listening))


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _MAX_PORT:
        return int(text)
    raise click.UsageError(f"`--port {text}` is no number from 0 to {_MAX_PORT}")
