"""A server over HTTP that was restarted between calls: the session of before is unknown to it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent import ConfigError, FastAgent
from fast_agent.mcp.server import StdioTarget, declared_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, unknown: tuple[int, str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.unknown = unknown
        self.sessions: set[str] = set()
        self.opened = 0
        self.calls = 0
        self.knows_ping = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"


class Handler(BaseHTTPRequestHandler):
    """Answers as the reference server in TypeScript does, which keeps its sessions in memory."""

    protocol_version = "HTTP/1.1"
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride] (the only one it is used with)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session, method = self.headers.get("Mcp-Session-Id", ""), message.get("method")
        if method == "initialize":
            self.server.opened += 1
            session = f"s{self.server.opened}"
            self.server.sessions.add(session)
            version = message["params"]["protocolVersion"]
            info = {"name": "r", "version": "1"}
            capabilities: dict[str, Any] = {"tools": {}}
            self._answer(
                message,
                {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info},
                session,
            )
        elif method == "ping" and self.server.knows_ping:
            self._answer(message, {})
        elif session not in self.server.sessions:
            status, said = self.server.unknown
            self._reply(
                status, {"jsonrpc": "2.0", "error": {"code": -32000, "message": said}, "id": None}
            )
        elif method == "tools/list":
            schema = {"type": "object"}
            self._answer(message, {"tools": [{"name": "count", "inputSchema": schema}]})
        elif method == "tools/call":
            self.server.calls += 1
            text = f"call {self.server.calls} in {session}"
            self._answer(message, {"content": [{"type": "text", "text": text}]})
        else:
            self._reply(202, None)

    def do_GET(self) -> None:
        self._reply(405, None)

    def do_DELETE(self) -> None:
        self._reply(405, None)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args

    def _answer(self, message: dict[str, Any], result: dict[str, Any], session: str = "") -> None:
        self._reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, session)

    def _reply(self, status: int, answer: dict[str, Any] | None, session: str = "") -> None:
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(name="server")
def _server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(request.param)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def program(server: Server, path: Path) -> FastAgent:
    fast = FastAgent("test", cwd=path, environ={"FAST_AGENT_HOME": str(path / "home")})
    fast.server("r", url=server.url, read_timeout_seconds=20)
    fast.agent("ann", model="passthrough", servers=["r"], default=True)
    return fast


@pytest.mark.spec("PYAPI-5", "PYAPI-6")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "server",
    [(400, "Bad Request: No valid session ID provided"), (404, "Session not found"), (400, "no")],
    indirect=True,
)
async def test_calls_go_on_after_a_restart(server: Server, tmp_path: Path) -> None:
    async with program(server, tmp_path).run() as app:
        for number in range(1, 4):
            assert await app("***CALL_TOOL r__count {}") == f"call {number} in s{number}"
            server.sessions.clear()
    assert server.opened == 3


@pytest.mark.spec("PYAPI-6")
@pytest.mark.anyio
@pytest.mark.parametrize("server", [(400, "the name of the session is too long")], indirect=True)
async def test_another_400_is_an_answer(server: Server, tmp_path: Path) -> None:
    server.knows_ping = True
    async with program(server, tmp_path).run() as app:
        assert await app("***CALL_TOOL r__count {}") == "call 1 in s1"
        server.sessions.clear()
        assert "the name of the session is too long" in await app("***CALL_TOOL r__count {}")
    assert server.opened == 1


@pytest.mark.spec("PYAPI-5")
def test_a_server_declared_wrongly_says_what_to_do(tmp_path: Path) -> None:
    fast = FastAgent("test", cwd=tmp_path, environ={"FAST_AGENT_HOME": str(tmp_path / "home")})
    with pytest.raises(ConfigError, match="neither `command` nor `url`"):
        fast.server("a")
    with pytest.raises(ConfigError, match="`cwd` does not apply"):
        fast.server("a", url="http://127.0.0.1/", cwd=".")
    with pytest.raises(ConfigError, match="`args` does not apply"):
        fast.server("a", url="http://127.0.0.1/", args=[])
    with pytest.raises(ConfigError, match="must be a list of strings"):
        fast.server("a", command="x", args="-v")
    with pytest.raises(ConfigError, match="must be more than 0"):
        fast.server("a", command="x", read_timeout_seconds=0)
    fast.agent("ann", model="passthrough")
    with pytest.raises(ConfigError, match="before cards are loaded"):
        fast.server("a", command="x")


def test_arguments_of_a_command_are_words_in_it_or_a_list(tmp_path: Path) -> None:
    def target(command: str, args: Sequence[str | Path] | None = None) -> object:
        return declared_server("a", workspace=tmp_path, command=command, args=args).target

    assert target("run --name 'a b'") == target("run", ["--name", "a b"])
    assert target("/opt/my tools/run", [tmp_path]) == StdioTarget(
        command="/opt/my tools/run", args=(str(tmp_path),), cwd=tmp_path
    )
    assert target("my run", []) == StdioTarget(command="my run", cwd=tmp_path)


@pytest.mark.spec("PYAPI-7")
@pytest.mark.anyio
@pytest.mark.parametrize("server", [(404, "Session not found")], indirect=True)
async def test_a_filter_that_matches_nothing_is_warned_of(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fast = FastAgent("test", cwd=tmp_path, environ={"FAST_AGENT_HOME": str(tmp_path / "home")})
    fast.server("r", url=server.url)
    tools = {"r": ["cuont", "c*"]}
    fast.agent("ann", model="passthrough", servers=["r"], tools=tools, default=True)
    async with fast.run() as app:
        assert await app("***CALL_TOOL r__count {}") == "call 1 in s1"
        assert await app("***CALL_TOOL r__count {}") == "call 2 in s1"
    said = "`cuont` under `tools` of the card matches none of its 1 tools; did you mean `count`?"
    assert caplog.text.count(said) == 1
    assert "`c*`" not in caplog.text


@pytest.mark.spec("MCPS-5")
@pytest.mark.anyio
@pytest.mark.parametrize("server", [(404, "Session not found")], indirect=True)
@pytest.mark.parametrize("form", ["list", "names", "mapping"])
async def test_an_agent_made_in_python_brings_servers(
    server: Server, tmp_path: Path, form: str
) -> None:
    fast = FastAgent("test", cwd=tmp_path, environ={"FAST_AGENT_HOME": str(tmp_path / "home")})
    forms: dict[str, Any] = {
        "list": [{"target": server.url, "name": "r", "headers": {"X-Who": "ann"}}],
        "names": {"r": server.url},
        "mapping": {"r": {"target": server.url}},
    }
    fast.agent("ann", model="passthrough", mcp_connect=forms[form], default=True)
    async with fast.run() as app:
        assert await app("***CALL_TOOL r__count {}") == "call 1 in s1"
