"""A server whose lists never end: `repeat` gives one cursor again and again, `pages` new ones."""

from __future__ import annotations

import sys
from itertools import count
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult, Tool

numbers = count()


async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
    number = next(numbers)
    cursor = "again" if sys.argv[1] == "repeat" else f"page {number}"
    tool = Tool(name=f"tool{number}", input_schema={"type": "object"})
    return ListToolsResult(tools=[tool], next_cursor=cursor)


async def main() -> None:
    server: Server[Any] = Server("endless", on_list_tools=list_tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
