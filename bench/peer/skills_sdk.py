"""Serve a directory of skills with the SDK's low-level server: `DIR`, or `DIR PORT` over HTTP.

The lists and contents are made once, before the first request: the SDK at its best.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any


def make_server(root: str) -> Any:
    # Imported by name: in the environment this runs in, the SDK has another version than in ours.
    types: Any = import_module("mcp.types")
    lowlevel: Any = import_module("mcp.server.lowlevel")
    resources: list[Any] = []
    texts: dict[str, Any] = {}
    for entry in os.scandir(root):
        uri = f"skill://{entry.name}/SKILL.md"
        with open(f"{entry.path}/SKILL.md", encoding="utf-8", newline="") as file:  # noqa: PTH123
            text = file.read()
        about = text.split("\n", 3)[2].partition(": ")[2]
        for found, kind in ((uri, "text/markdown"), (f"skill://{entry.name}/_manifest", "x/y")):
            resources.append(
                types.Resource(uri=found, name=entry.name, description=about, mime_type=kind)
            )
        content = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        texts[uri] = types.ReadResourceResult(contents=[content])
    listed = types.ListResourcesResult(resources=resources)

    async def list_resources(context: Any, params: Any) -> Any:  # noqa: ARG001
        return listed

    async def read_resource(context: Any, params: Any) -> Any:  # noqa: ARG001
        return texts[str(params.uri)]

    return lowlevel.Server(
        "bench", on_list_resources=list_resources, on_read_resource=read_resource
    )


def main(root: str, port: int | None) -> None:
    server = make_server(root)
    if port is None:
        anyio: Any = import_module("anyio")
        stdio: Any = import_module("mcp.server.stdio")

        async def run() -> None:
            async with stdio.stdio_server() as (reader, writer):
                await server.run(reader, writer, server.create_initialization_options())

        anyio.run(run)
        return
    uvicorn: Any = import_module("uvicorn")
    app = server.streamable_http_app(streamable_http_path="/mcp", json_response=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
