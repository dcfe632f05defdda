"""A web program with agents: opened and closed by its lifespan, used by its requests."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fast_agent import FastAgent
from fast_agent.mcp.server import ServerSpec, StdioTarget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.responses import Response

fast = FastAgent("web", ignore_config=True)
target = StdioTarget(command=sys.executable, args=(sys.argv[1], "stdio"))
fast.add_server(ServerSpec(name="every", target=target))
fast.agent("slow-one", model="slow?seconds=0.01")
fast.agent("slow-two", model="slow?seconds=0.01")
fast.agent("tooled", model="passthrough", servers=["every"])
fast.parallel("fan", fan_out=["slow-one", "slow-two"])


@asynccontextmanager
async def lifespan(web: Starlette) -> AsyncGenerator[None]:
    async with fast.run() as app:
        web.state.agents = app
        yield
    print("closed", flush=True)


async def ask(request: Request) -> Response:
    """Ask the agent that the path names what the body says."""
    text = (await request.body()).decode()
    return PlainTextResponse(await request.app.state.agents(text, request.path_params["agent"]))


if __name__ == "__main__":
    web = Starlette(routes=[Route("/{agent}", ask, methods=["POST"])], lifespan=lifespan)
    config = uvicorn.Config(web, port=0, log_level="warning")
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    server.run([listening])
