"""Real servers, shared by the tests of this room: starting one costs most of a second."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from fast_agent.cards.agent_config import RequestParams
from fast_agent.mcp.client_side import ClientSide
from fast_agent.mcp.pool import ServerPool, need
from fast_agent.mcp.server import HttpTarget, Root, ServerSpec, StdioTarget
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ModelResponse
from fast_agent.tools.human import HumanAnswer, HumanRequest
from fast_agent.tools.tool import ToolContext
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from fast_agent.mcp.client_side import SamplingRequest
    from fast_agent.messages.message import ToolResult

SERVERS = Path(__file__).parent / "servers"
ROOT = Root(uri="file:///srv/space", name="space")


class Person:
    """A person who gives prepared answers and remembers the questions."""

    def __init__(self) -> None:
        self.answers: list[HumanAnswer] = []
        self.asked: list[HumanRequest] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request)
        return self.answers.pop(0) if self.answers else HumanAnswer(action="cancel")


class Oracle:
    """A sampler that answers by what it was asked."""

    def __init__(self) -> None:
        self.requests: list[SamplingRequest] = []

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        self.requests.append(request)
        assert isinstance(request.params, RequestParams)
        text = request.messages[-1].text.upper()
        return "oracle", ModelResponse(Message.assistant(text))


class Servers:
    """A pool with what its servers may ask."""

    def __init__(self, pool: ServerPool, person: Person, oracle: Oracle) -> None:
        self.pool = pool
        self.person = person
        self.oracle = oracle

    async def call(self, server: str, tool: str, **arguments: Any) -> ToolResult:
        toolset = self.pool.toolset(server, ServerFilter())
        return await toolset.call_tool(tool, ToolCall("call-1", tool, arguments), context())


def context(**changes: Any) -> ToolContext:
    fields: dict[str, Any] = {
        "agent_name": "tester",
        "turn_id": "turn-1",
        "call_id": "call-1",
        "correlation_id": "corr-1",
    }
    return ToolContext(**(fields | changes))


def stdio(
    name: str, script: str = "everything.py", argument: str = "stdio", **changes: Any
) -> ServerSpec:
    target = StdioTarget(
        command=sys.executable,
        args=(str(SERVERS / script), argument),
        env={"EXPLICIT": "yes"},
        cwd=SERVERS,
    )
    return ServerSpec(name=name, target=target, **changes)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(60):
        while not await condition():  # noqa: ASYNC110 - the condition is another process's
            await anyio.sleep(0.01)


@pytest.fixture(scope="session", name="eventually")
def eventually_fixture() -> Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]:
    return eventually


@pytest.fixture(scope="session")
def make_context() -> Callable[..., ToolContext]:
    return context


@pytest.fixture(scope="session")
def make_stdio() -> Callable[..., ServerSpec]:
    return stdio


class HttpServer:
    """A server process that listens on a loopback port."""

    def __init__(self, port: int = 0) -> None:
        command = [sys.executable, str(SERVERS / "everything.py"), "http", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="session")
def start_http() -> Callable[..., HttpServer]:
    return HttpServer


@pytest.fixture
def held_port() -> Iterator[int]:
    """Hold a port for servers that listen on it one after the other: nobody else is given it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture(scope="session")
def http_server() -> Iterator[HttpServer]:
    server = HttpServer()
    yield server
    server.stop()


# Not of the session: its event loop would still be there when tests elsewhere start their own.
@pytest.fixture(scope="module")
async def shared(http_server: HttpServer) -> AsyncIterator[Servers]:
    person, oracle = Person(), Oracle()
    web = HttpTarget(url=http_server.url)
    specs = [
        stdio("stdio-new", roots=(ROOT,)),
        stdio("stdio-old", protocol="legacy", roots=(ROOT,)),
        ServerSpec(name="http-new", target=web, roots=(ROOT,)),
        ServerSpec(name="http-old", target=web, protocol="legacy", roots=(ROOT,)),
    ]
    async with ServerPool(specs, offered=ClientSide(sampler=oracle, human=person)) as pool:
        await need(pool.connections(pool.names), "tester")
        yield Servers(pool, person, oracle)


@pytest.fixture
def servers(shared: Servers) -> Servers:
    shared.person.answers.clear()
    shared.person.asked.clear()
    shared.oracle.requests.clear()
    return shared


@pytest.fixture(params=["stdio-new", "stdio-old", "http-new", "http-old"])
def each(request: pytest.FixtureRequest) -> str:
    """The name of a server: both transports, both eras of the protocol."""
    return str(request.param)


@pytest.fixture(scope="session")
def http_spec() -> Callable[..., ServerSpec]:
    def make(url: str, **changes: Any) -> ServerSpec:
        return ServerSpec(name="web", target=HttpTarget(url=url), **changes)

    return make
