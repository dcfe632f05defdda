"""Names of tools as models see them: `server__tool` and `agent__name`.

Providers take at most 64 characters of letters, digits, `_` and `-`. A name that fits is left as it
is. One that does not is cut and ends in a hash of its full name, so that two tools never get
one name.
"""

from __future__ import annotations

import re
from hashlib import sha256

MAX_LENGTH = 64
"""Most characters of a name that every provider takes."""

SEPARATOR = "__"
AGENT_PREFIX = "agent"

_HASH_DIGITS = 10
_FITS = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_LENGTH}}}")
_LOOKS_HASHED = re.compile(rf"_[0-9a-f]{{{_HASH_DIGITS}}}\Z")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]+")


def server_tool_name(server: str, tool: str) -> str:
    """Name the tool of an MCP server.

    Args:
        server: The server's name.
        tool: The tool's name as the server lists it.

    Returns:
        `server__tool`, or a hashed form where that would not fit or could be read as another pair.
    """
    clear = (
        SEPARATOR not in server
        and not server.endswith("_")
        and not tool.startswith("_")
        and server not in ("", AGENT_PREFIX)
        and tool != ""
    )
    return _name(f"{server}{SEPARATOR}{tool}", ("server", server, tool), clear=clear)


def agent_tool_name(agent: str) -> str:
    """Name the tool that calls a child agent: `agent__` and its name."""
    clear = agent != "" and not agent.startswith("_")
    return _name(f"{AGENT_PREFIX}{SEPARATOR}{agent}", ("agent", agent), clear=clear)


def function_tool_name(function: str) -> str:
    """Name the tool of a Python function: the function's own name."""
    return _name(function, ("function", function), clear=SEPARATOR not in function)


def _name(readable: str, meaning: tuple[str, ...], *, clear: bool) -> str:
    # A clear name that ends like a hashed one is hashed as well: else a server could choose a tool
    # name that equals the hashed name of another.
    if clear and _FITS.fullmatch(readable) and not _LOOKS_HASHED.search(readable):
        return readable
    told_apart = "\0".join(f"{len(part)}:{part}" for part in meaning)
    digest = sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    kept = _OUTSIDE.sub("_", readable)[: MAX_LENGTH - _HASH_DIGITS - 1]
    return f"{kept}_{digest}"
