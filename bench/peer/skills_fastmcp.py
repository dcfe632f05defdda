"""Serve a directory of skills with fastmcp's provider: `DIR` over stdio, `DIR PORT` over HTTP."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main(root: str, port: int | None) -> None:
    # Imported by name, because this runs in another environment than the type checker sees.
    fastmcp: Any = import_module("fastmcp")
    skills: Any = import_module("fastmcp.server.providers.skills")
    server = fastmcp.FastMCP("bench")
    server.add_provider(skills.SkillsDirectoryProvider(roots=Path(root)))
    if port is None:
        server.run(transport="stdio", show_banner=False, log_level="ERROR")
    else:
        server.run(
            transport="http",
            host="127.0.0.1",
            port=port,
            path="/mcp",
            show_banner=False,
            log_level="ERROR",
            json_response=True,
        )


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
