"""Tool sizes: how long the tools of servers were when they were last listed.

`check` starts no server. What it says of a context window that the tools of servers fill rests on
what earlier runs recorded here.
"""

from __future__ import annotations

import json
import logging
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from fast_agent.errors import os_reason
from fast_agent.mcp.server import HttpTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from fast_agent.mcp.listed import ListedTool
    from fast_agent.mcp.server import ServerSpec

FILE: Final = "tool-sizes.json"
"""Where they are in the home."""

_MAX_FILE: Final = 4 << 20
_MAX_SERVERS: Final = 200
_MAX_TOOLS: Final = 1_000

log = logging.getLogger(__name__)


class ToolSizes:
    """The lengths of servers' tools, by what starts or reaches the server.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, int, int], dict[str, dict[str, int]]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no tools are recorded."""
        return not self._read()

    def of(self, spec: ServerSpec) -> Mapping[str, int]:
        """Return the length of each tool in characters, by name; empty for an unknown server."""
        return self._read().get(_key(spec), {})

    def remember(self, spec: ServerSpec, tools: Iterable[ListedTool]) -> None:
        """Record the tools of a server; a home that cannot be written keeps none."""
        sizes = {tool.name: _length(tool) for tool in list(tools)[:_MAX_TOOLS]}
        known, key = self._read().copy(), _key(spec)
        if known.get(key) == sizes:
            return
        known.pop(key, None)
        known[key] = sizes
        while len(known) > _MAX_SERVERS:
            del known[next(iter(known))]
        from fast_agent.text.atomic_file import write_atomic

        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self._path, json.dumps(known).encode("utf-8", "surrogatepass"))
        except OSError as error:
            reason = os_reason(error)
            log.info("the sizes of tools are not kept: %s", reason)

    def _read(self) -> dict[str, dict[str, int]]:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - fast
        except OSError:
            return {}
        stamp = found.st_ino, found.st_size, found.st_mtime_ns
        if self._known is None or self._known[0] != stamp:
            self._known = stamp, self._parsed()
        return self._known[1]

    def _parsed(self) -> dict[str, dict[str, int]]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self._path.parent, self._path.name, _MAX_FILE).data
            value: object = json.loads(data)
        except (RefusedFileError, ValueError, RecursionError):
            return {}
        return cast("dict[str, dict[str, int]]", value) if _is_table(value) else {}


def _length(tool: ListedTool) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema, default=dict))


def _key(spec: ServerSpec) -> str:
    """Identify a server without writing down its arguments, which may hold a secret."""
    from fast_agent.trust.programs import is_launcher

    target = spec.target
    if isinstance(target, HttpTarget):
        facts = (target.url,)
    else:
        # Where a launcher starts is decided at each start, and does not change what it starts.
        moves = is_launcher(target.command, target.args)
        place = "" if moves else os.path.abspath(target.cwd or "")  # noqa: PTH100
        facts = (place, target.command, *target.args)
    return sha256("\0".join(facts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _is_table(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    servers = cast("dict[str, object]", value).values()
    return all(
        isinstance(tools, dict)
        and all(type(size) is int for size in cast("dict[str, object]", tools).values())
        for tools in servers
    )
