"""The secrets a program knows: keys, headers, variables and what was interpolated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fast_agent.config.layer import FileLayer
from fast_agent.mcp.server import HttpTarget
from fast_agent.text.environment import variable_names
from fast_agent.text.redaction import (
    address_secrets,
    environment_secrets,
    is_secret_name,
    is_secret_value,
    is_unguessable,
    names_a_file,
    secret_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.cards.card import Card
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.server import ServerSpec, Target

_PLAIN_HEADERS: Final = re.compile(
    r"accept(?:-.*)?|cache-control|connection|content-.*|host|mcp-protocol-version|origin|referer"
    r"|user-agent",
    re.IGNORECASE,
)


def known_secrets(
    settings: Settings,
    environ: Mapping[str, str],
    cards: Iterable[Card] = (),
    servers: Iterable[ServerSpec] = (),
) -> Iterator[str]:
    """Yield every value that must stand in no error, log, session or recording.

    Args:
        settings: The configuration.
        environ: The environment, for the values of `${NAME}` too.
        cards: The cards, which may bring their own keys, headers and variables.
        servers: Further MCP servers, of options or of an editor.
    """
    yield from environment_secrets(environ)
    texts = [layer.source.text for layer in settings.layers if isinstance(layer, FileLayer)]
    for section in settings.providers.values():
        yield section.api_key or ""
        yield from address_secrets(section.base_url)
    yield from address_secrets(settings.sessions.url)
    yield from address_secrets(settings.temporal.parts)
    yield settings.temporal.api_key or ""
    for server in settings.mcp.servers.values():
        yield from _headers(server.headers)
        yield from _variables(server.env)
        yield from address_secrets(server.url)
        yield from _arguments(server.args)
    for spec in servers:
        yield from _target(spec.target)
    for card in cards:
        yield card.config.api_key or ""
        if card.document is not None:
            texts.append(card.document.yaml.text)
        for connect in card.config.mcp_connect:
            yield from _headers(connect.headers or {})
            yield from _variables(connect.env or {})
            yield from address_secrets(connect.target if "://" in connect.target else None)
            yield from _arguments(connect.target.split())
    names: set[str] = set()
    for text in texts:
        names |= variable_names(text)
    for name in names:
        value = environ.get(name, "")
        if is_unguessable(value):
            yield value


def _target(target: Target) -> Iterator[str]:
    if isinstance(target, HttpTarget):
        yield from _headers(target.headers)
        yield from address_secrets(target.url)
    else:
        yield from _variables(target.env)
        yield from _arguments(target.args)


def _headers(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if _PLAIN_HEADERS.fullmatch(name) is None:
            yield from secret_parts(value)


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    # Not everything is: what stands in a variable such as LOG_LEVEL is said in answers too.
    for name, value in env.items():
        secret = is_secret_name(name) and not names_a_file(name, value)
        if secret or is_secret_value(value) or is_unguessable(value):
            yield from secret_parts(value)


def _arguments(args: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line that are secrets, or follow an option named as one."""
    before = ""
    for word in args:
        option, equals, value = word.partition("=")
        if equals and option.startswith("-") and is_secret_name(option):
            yield value
        elif is_secret_value(word) or (before.startswith("-") and is_secret_name(before)):
            yield from secret_parts(word)
        before = word
