"""One MCP server: its keys seen together, and what a `target` names."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fast_agent.config.settings import OAuthSettings, RootSettings, ServerSettings
from fast_agent.diagnostics.rules import WRONG_CONFIG_VALUE, WRONG_SERVER
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fast_agent.config.layer import Place
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.json_value import Keys

_STDIO_ONLY = ("args", "env", "cwd")
_HTTP_ONLY = ("headers", "oauth")


class PlaceOf(Protocol):
    """Finds where a setting is written."""

    def __call__(self, keys: Keys, *, key: bool = False) -> Place:
        """Return the place of a setting, or of its key."""
        ...


def make_server(
    name: str, values: Mapping[str, Any], place_of: PlaceOf, *, complete: bool = True
) -> tuple[ServerSettings | None, list[Diagnostic]]:
    """Make a server of its checked values.

    Args:
        name: Its key in `mcp.servers`.
        values: Its values, each checked separately.
        place_of: Finds where a setting is written.
        complete: Whether `values` is all that was written. Otherwise what is missing may only be
            misspelt, which was reported, and is not a separate problem.

    Returns:
        The server, or None and what is wrong.
    """
    problems = list(_problems(name, values, ("mcp", "servers", name), place_of))
    if not complete and not {"command", "url"} & values.keys():
        return None, [problem for problem in problems if problem.code != WRONG_SERVER.code]
    if problems:
        return None, problems
    plain = dict(values)
    plain["transport"] = "stdio" if "command" in values else values.get("transport", "http")
    if isinstance(values.get("oauth"), bool):
        plain["oauth"] = OAuthSettings(enabled=values["oauth"])
    elif "oauth" in values and values["oauth"].enabled is None:
        plain["oauth"] = replace(values["oauth"], enabled=True)
    plain["roots"] = tuple(map(_root, values.get("roots", ())))
    sampling = values.get("sampling", True)
    if not isinstance(sampling, bool):
        plain["sampling"] = True
        plain["sampling_model"] = sampling.get("model")
        plain["sampling_limit"] = sampling.get("max_answers")
    elicitation = values.get("elicitation", True)
    if not isinstance(elicitation, bool):
        plain["elicitation"] = elicitation["mode"] != "none"
    return ServerSettings(name=name, **plain), []


def _problems(
    name: str, values: Mapping[str, Any], at: Keys, place_of: PlaceOf
) -> Iterator[Diagnostic]:
    if "__" in name or not name.isprintable():
        yield place_of(at, key=True).problem(
            WRONG_CONFIG_VALUE,
            f"the server name `{name}` holds {'`__`' if '__' in name else 'a control character'}",
            "use letters, digits, `-` and single `_`",
        )
    command, url = "command" in values, "url" in values
    if command == url:
        both = "both `command` and `url`" if command else "neither `command` nor `url`"
        yield place_of(at, key=True).problem(
            WRONG_SERVER,
            f"the server `{name}` has {both}",
            "set its `command`, or the `url` of a running one",
        )
        return
    fitting, needed = (("stdio",), "command") if command else (("http", "sse"), "url")
    if values.get("transport", fitting[0]) not in fitting:
        shown = " or ".join(f"`{one}`" for one in fitting)
        yield place_of((*at, "transport")).problem(
            WRONG_SERVER,
            f"the server `{name}` has a `{needed}`, so its transport is {shown}",
            f"write `transport: {fitting[0]}`, or leave it out",
        )
    oauth = values.get("oauth")
    if isinstance(oauth, OAuthSettings):
        yield from _oauth_problems(name, oauth, (*at, "oauth"), place_of)
    for key in _HTTP_ONLY if command else _STDIO_ONLY:
        if key in values:
            yield place_of((*at, key), key=True).problem(
                WRONG_SERVER,
                f"`{key}` does not apply to the server `{name}`, which has a `{needed}`",
                f"leave `{key}` out",
            )
    if url and not _is_address(values["url"]) and "${" not in values["url"]:
        yield place_of((*at, "url")).problem(
            WRONG_CONFIG_VALUE,
            f"the `url` of the server `{name}` is not an `http` or `https` address",
            "start it with `http://` or `https://`",
        )


def _oauth_problems(
    name: str, oauth: OAuthSettings, at: Keys, place_of: PlaceOf
) -> Iterator[Diagnostic]:
    if oauth.issuer is not None and "${" not in oauth.issuer and not _is_address(oauth.issuer):
        yield place_of((*at, "issuer")).problem(
            WRONG_CONFIG_VALUE,
            f"the `issuer` of the server `{name}` is not an `http` or `https` address",
            "start it with `http://` or `https://`",
        )
    if oauth.client_secret is not None and oauth.issuer is None:
        # A hostile server would have the secret sent to its own authorization server.
        yield place_of((*at, "client_secret"), key=True).problem(
            WRONG_SERVER,
            f"the server `{name}` has a `client_secret` without the `issuer` it is for",
            "name the authorization server in `issuer`",
        )
    if oauth.client_secret is not None and oauth.client_id is None:
        yield place_of((*at, "client_secret"), key=True).problem(
            WRONG_SERVER,
            f"the server `{name}` has a `client_secret` without a `client_id`",
            "add the `client_id` it belongs to",
        )


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def _root(value: object) -> RootSettings:
    """Make a root of a path, a URI, or a record whose `uri` was read as a path."""
    if isinstance(value, RootSettings):
        return RootSettings(uri=str(value.uri), name=value.name)
    return RootSettings(uri=str(value) if isinstance(value, str | Path) else "")


def is_url(target: str) -> bool:
    """Return whether a target is an address, not a command line."""
    return "://" in target.strip().partition(" ")[0]


def split_command(command_line: str, declared: str) -> tuple[str, tuple[str, ...]]:
    """Split a command line into program and arguments.

    Raises:
        ConfigError: The line is empty or its quotes do not match.
    """
    try:
        words = shlex.split(command_line)
    except ValueError as problem:
        raise ConfigError(
            f"`{command_line}` is not a command line: {str(problem).lower()}",
            hint=f"check the quotes of {declared}",
        ) from problem
    if not words:
        raise ConfigError(
            f"{declared} names no command", hint="write the program and its arguments as one string"
        )
    return words[0], tuple(words[1:])
