"""The HTTP edge as it is served: who is let in, what is bounded, and what clients are answered."""

from __future__ import annotations

import json
import resource
import signal
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.serve.served import ACCEPT, HELLO, META, Served, write_skill

from fast_agent.errors import ConfigError, RunError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.serve.http import open_socket, read_token, serve_http
from fast_agent.serve.http_access import HttpSettings
from fast_agent.serve.http_sessions import MAX_SESSIONS, HttpSessions
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from collections.abc import Generator

TOKEN = "a-token-of-some-length"
ONE = "skill://one/SKILL.md"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = tmp_path_factory.mktemp("skills")
    write_skill(root, "one")
    with Served(root) as server:
        yield server
        code, err = server.stop()
        assert code == 0
        assert "Traceback" not in err


def test_reads_of_both_eras(served: Served) -> None:
    status, answer = served.modern("resources/read", uri=ONE)
    assert (status, answer["result"]["resultType"]) == (200, "complete")
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    status, answer = served.post(opening)
    assert status == 200
    capabilities = answer["result"]["capabilities"]
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert capabilities["extensions"] == {"io.modelcontextprotocol/skills": {"directoryRead": True}}


def test_statuses(served: Served) -> None:
    status, answer = served.modern("resources/read", uri="skill://one/none")
    assert (status, answer["error"]["code"]) == (400, -32602)
    assert answer["error"]["data"]["uri"] == "skill://one/none"
    status, answer = served.modern("no/such")
    assert (status, answer["error"]["code"]) == (404, -32601)
    status, answer = served.modern("initialize", **HELLO)
    assert (status, answer["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32600),
        (b"[" * 100_000, -32700),
    ],
)
def test_malformed_bodies_are_refused_as_over_stdio(served: Served, body: bytes, code: int) -> None:
    status, answer = served.post(body, {"MCP-Protocol-Version": "2026-07-28"})
    assert (status, answer["error"]["code"]) == (400, code)


@pytest.mark.spec("T-14")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_strange_requests_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    assert served.modern("resources/read", headers, uri=ONE)[0] == status


def test_a_local_page_may_call(served: Served) -> None:
    headers = {"Host": f"localhost:{served.port}", "Origin": f"http://localhost:{served.port}"}
    assert served.modern("resources/read", headers, uri=ONE)[0] == 200


def test_large_bodies_are_refused(served: Served) -> None:
    assert served.post(b" " * ((4 << 20) + 1))[0] == 413


def test_heads_without_an_end_are_refused(served: Served) -> None:
    line = b"X-More: " + b"x" * 8000 + b"\r\n"
    beginnings = (
        b"GET /mcp HTTP/1.1\r\n",
        b"GET /mcp HTTP/1.1\r\nX-One: ",
        b"POST /mcp HTTP/1.1\r\nHost: one\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    )
    for start in beginnings:
        answer, sent = b"", 0
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as one:
            with suppress(ConnectionError):
                one.sendall(start)
                while sent < 1 << 20:
                    one.sendall(line if not start.endswith(b": ") else line[8:-2])
                    sent += len(line)
            with suppress(ConnectionError):
                while chunk := one.recv(1 << 16):
                    answer += chunk
        assert sent < 1 << 20 or answer.startswith(b"HTTP/1.1 4"), start
        assert served.modern("resources/read", uri=ONE)[0] == 200


def test_a_body_of_many_chunks_is_no_head(served: Served) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "ping",
        "params": {"_meta": {"x": "y" * 200_000}},
    }
    body = json.dumps(message).encode()
    connection = served.connect()
    pieces = (body[at : at + 1000] for at in range(0, len(body), 1000))
    sent = {**ACCEPT, "MCP-Protocol-Version": "2025-11-25"}
    connection.request("POST", "/mcp", pieces, sent, encode_chunked=True)
    answer = connection.getresponse()
    assert b"too long" not in answer.read()
    connection.close()
    assert served.modern("resources/read", uri=ONE)[0] == 200


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": ONE}),
        ("resources/read", {"uri": "skill://one/none"}),
        ("resources/read", {"uri": "SKILL://one/SKILL.md"}),
        ("resources/list", {}),
        ("resources/list", {"cursor": "x"}),
        ("resources/templates/list", {}),
        ("server/discover", {}),
        ("skills/list", {}),
    ],
)
def test_the_short_way_says_what_the_long_one_does(
    served: Served, method: str, params: dict[str, Any]
) -> None:
    long_way = {"Accept": "application/json;q=1.0, text/event-stream"}
    assert served.modern(method, **params) == served.modern(method, long_way, **params)


def test_headers_that_say_something_else_are_refused(served: Served) -> None:
    for wrong in (
        {"Mcp-Name": "skill://one/other"},
        {"Mcp-Method": "resources/list"},
        {"MCP-Protocol-Version": "2031-01-01"},
    ):
        status, answer = served.modern("resources/read", wrong, uri=ONE)
        assert (status, answer["error"]["code"]) == (400, -32020)


def test_blanks_around_a_header_are_no_part_of_it(served: Served) -> None:
    status, answer = served.modern("resources/read", {"Mcp-Name": f" {ONE}  \t"}, uri=ONE)
    assert (status, "result" in answer) == (200, True)


def test_small_answers_are_sent_at_once(served: Served) -> None:
    """Without TCP_NODELAY each answer on a kept connection would wait 40 ms."""
    connection = served.connect()
    params = {"uri": ONE, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})
    headers = {
        **ACCEPT,
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "resources/read",
        "Mcp-Name": ONE,
    }
    times: list[float] = []
    while min(times, default=1) > 0.03 and len(times) < 1000:
        begun = time.perf_counter()
        connection.request("POST", "/mcp", body, headers)
        connection.getresponse().read()
        times.append(time.perf_counter() - begun)
    connection.close()
    assert min(times) < 0.03  # one that is quick is enough: not one would be


@pytest.mark.spec("TR-N2.1a")
@pytest.mark.parametrize(
    ("trusted", "sent", "status"),
    [
        ("127.0.0.1", "10.0.0.1, 10.0.0.9", 200),
        ("127.0.0.0/8", "10.0.0.9, 127.0.0.2", 200),
        ("127.0.0.1", "10.0.0.9, 10.0.0.1", 404),  # it says itself that it is another one
        ("127.0.0.2", "10.0.0.9", 404),
    ],
)
def test_a_trusted_proxy_says_which_client_asks(
    tmp_path: Path, trusted: str, sent: str, status: int
) -> None:
    with Served(tmp_path, "--trusted-proxy", trusted) as server:
        with closing(server.connect()) as connection:

            def send(method: str, client: str, headers: dict[str, str], **params: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                headers = {**ACCEPT, **headers, "X-Forwarded-For": client}
                connection.request("POST", "/mcp", json.dumps(message), headers)
                answer = connection.getresponse()
                answer.read()
                return answer

            opened = send("initialize", "10.0.0.1", {}, **HELLO)
            session = {"Mcp-Session-Id": opened.getheader("Mcp-Session-Id")}
            for _ in range(MAX_SESSIONS):
                send("initialize", sent, {}, **HELLO)
            assert send("ping", "10.0.0.1", session).status == status
        assert server.stop() == (0, "")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_clients_hear_of_changes(tmp_path: Path, mode: Any) -> None:
    write_skill(tmp_path, "one")
    with Served(tmp_path) as server:
        reported: list[str] = []
        heard = anyio.Event()

        async def on_message(message: Any) -> None:
            reported.append(type(message).__name__)
            if "ResourceUpdated" in reported[-1]:
                heard.set()

        async with Client(server.url, mode=mode, message_handler=on_message) as client:
            if mode == "legacy":
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource(ONE)  # pyright: ignore[reportDeprecated]
                await anyio.sleep(0.3)
                write_skill(tmp_path, "one", "Do so.")
                with anyio.fail_after(60):
                    await heard.wait()
            else:
                async with client.listen(resource_subscriptions=[ONE]) as events:
                    await anyio.sleep(0.3)
                    write_skill(tmp_path, "one", "Do so.")
                    with anyio.fail_after(60):
                        assert ONE in str(await anext(aiter(events)))
        code, err = await anyio.to_thread.run_sync(server.stop)
        assert (code, "Traceback" in err) == (0, False)


def test_an_open_stream_ends_with_its_result(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    with Served(tmp_path) as server:
        connection = server.connect()
        params = {"notifications": {"resourceSubscriptions": [ONE]}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
        connection.request("POST", "/mcp", json.dumps(message), {**ACCEPT, **headers})
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "text/event-stream"
        assert answer.readline() == b"event: message\r\n"
        assert json.loads(answer.readline().partition(b":")[2])["method"].endswith("acknowledged")
        server.process.send_signal(signal.SIGTERM)
        last = [line for line in answer.read().splitlines() if line.startswith(b"data:")]
        assert json.loads(last[-1].partition(b":")[2])["result"]["resultType"] == "complete"
        connection.close()
        assert server.process.wait(60) == 0


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    token_file = tmp_path / "token"
    token_file.write_text(f"{TOKEN}\n", "utf-8")
    with Served(tmp_path, "--token-file", str(token_file)) as server:
        wrong = ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"]
        for given in wrong:
            status, answer = server.modern("resources/read", {"Authorization": given}, uri=ONE)
            assert (status, answer) == (401, {"error": "a bearer token is needed"})
        assert server.modern("resources/read", uri=ONE)[0] == 401
        for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}"):
            assert server.modern("resources/read", {"Authorization": given}, uri=ONE)[0] == 200
        assert server.stop()[0] == 0


def test_other_machines_come_in_with_a_token_only() -> None:
    with pytest.raises(ConfigError, match="accepts connections from other machines"):
        open_socket(HttpSettings(host="0.0.0.0", port=0))
    with open_socket(HttpSettings(host="0.0.0.0", port=0, token=TOKEN)) as listening:
        assert listening.proto == socket.IPPROTO_TCP
    for host in ("localhost", "127.0.0.1"):
        open_socket(HttpSettings(host=host, port=0)).close()


@pytest.mark.anyio
async def test_a_server_whose_task_fails_ends_and_says_so(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ResourceServer(ResourceService(Catalog(()), ServerInfo("test", "1")))

    async def fail(_: HttpSessions) -> None:
        raise OSError("no more of it")

    monkeypatch.setattr(HttpSessions, "look_after", fail)
    settings = HttpSettings(port=0)
    with pytest.raises(RunError, match="one of its tasks failed"):
        await serve_http(server, settings, open_socket(settings))
    assert "no more of it" in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux has `prlimit`")
def test_without_a_descriptor_the_most_silent_client_makes_room(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    with Served(tmp_path) as server, closing(server.connect()) as silent:
        silent.request("GET", "/health")
        assert silent.getresponse().read()
        place = Path(f"/proc/{server.process.pid}/fd")
        used = max(int(one.name) for one in place.iterdir())
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 1, hard))
        with closing(server.connect()) as another:
            another.request("GET", "/health")
            assert another.getresponse().status == 200
        assert silent.sock is not None
        assert silent.sock.recv(1) == b""
        assert server.stop() == (0, "cannot accept a connection: too many open files\n")


def test_a_taken_port_is_reported() -> None:
    with open_socket(HttpSettings(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as refused:
            open_socket(HttpSettings(port=port))
    words = f"cannot listen on `127.0.0.1:{port}`: address already in use"
    assert refused.value.message == words
    assert "another `--port`" in (refused.value.hint or "")


def test_token_files(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(ConfigError, match="no such file"):
        read_token(str(path))
    for text in ("", "short\n", "\n" + TOKEN, "x" * 30 + "é"):
        path.write_text(text, "utf-8")
        with pytest.raises(ConfigError, match="must start with a token"):
            read_token(str(path))
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_token(str(path))
    path.write_text(f"{TOKEN}\n", "utf-8")
    assert read_token(str(path)) == TOKEN
