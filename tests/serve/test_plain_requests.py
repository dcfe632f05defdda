"""The short way over HTTP: what takes it, and that it says what the long way says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.client import Client
from tests.serve.served import ACCEPT, HELLO, META, Served, write_skill

from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.session import Session
from fast_agent.serve.plain_requests import PlainRequests
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from http.client import HTTPConnection
    from pathlib import Path

ONE = "skill://one/SKILL.md"
READ: dict[str, Any] = {"uri": ONE}
LONG_WAY = {"Accept": "application/json;q=1.0, text/event-stream"}
DEEP = b"[" * 300 + b"]" * 300


class Handshaken:
    """A client that opened with a handshake, on a connection it keeps."""

    def __init__(self, served: Served, version: str = "2025-11-25") -> None:
        self._connection: HTTPConnection = served.connect()
        self.headers = {**ACCEPT, "MCP-Protocol-Version": version}
        hello = request("initialize", {**HELLO, "protocolVersion": version})
        _, headers, _ = self.send(hello)
        self.headers["Mcp-Session-Id"] = headers["mcp-session-id"]
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(
        self, body: bytes, headers: Mapping[str, str | None] | None = None, method: str = "POST"
    ) -> tuple[int, dict[str, str], Any]:
        """Send a body and give the answer's status, headers and body; None leaves a header out."""
        named = {**self.headers, **(headers or {})}
        sent = {name: value for name, value in named.items() if value is not None}
        self._connection.request(method, "/mcp", body, sent)
        answer = self._connection.getresponse()
        text = answer.read()
        told = {name.lower(): value for name, value in answer.getheaders() if name != "date"}
        told.pop("content-length", None)  # one value can be written in several ways
        return answer.status, told, json.loads(text) if text[:1] == b"{" else text

    def same(self, body: bytes) -> tuple[int, Any]:
        """Send a body both ways, which must be answered alike."""
        short, long = self.send(body), self.send(body, LONG_WAY)
        assert short == long
        return short[0], short[2]


def request(method: str, params: object = None, request_id: object = 1) -> bytes:
    message: dict[str, object] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}).encode()


@pytest.fixture(scope="module", name="served")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    root = tmp_path_factory.mktemp("skills")
    write_skill(root, "one")
    with Served(root) as server:
        yield server
        code, err = server.stop()
        assert (code, "Traceback" in err) == (0, False)


@pytest.fixture(scope="module", name="client")
def _client(served: Served) -> Generator[Handshaken]:
    with Handshaken(served) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", None),
        ("ping", {"x": 1}),
        ("resources/list", None),
        ("resources/list", {}),
        ("resources/list", {"cursor": "x"}),
        ("resources/list", {"cursor": None}),
        ("resources/templates/list", {"cursor": 5}),
        ("resources/templates/list", None),
        ("resources/read", READ),
        ("resources/read", {"uri": "skill://one/none"}),
        ("resources/read", {"uri": "SKILL://one/SKILL.md"}),
        ("resources/read", {"uri": "skill://one/größe"}),
        ("resources/read", {"uri": 5}),
        ("resources/read", None),
        ("resources/read", {**READ, "_meta": {"progressToken": 1}}),
        ("resources/read", {**READ, "_meta": {"progressToken": [True]}}),
        ("resources/read", {**READ, "_meta": 5}),
        ("resources/read", {**READ, "_meta": META}),
        ("server/discover", {}),
        ("resources/subscribe", READ),
        ("skills/list", {}),
        ("no/such", {}),
        ("", {}),
    ],
)
def test_a_handshaken_client_is_told_the_same(
    client: Handshaken, method: str, params: dict[str, Any] | None
) -> None:
    status, answer = client.same(request(method, params))
    assert status == 200
    assert ("result" in answer) != ("error" in answer)


@pytest.mark.parametrize("request_id", [0, -1, 2**70, "x", "", "é", True, None, 1.0, 1.5, [], {}])
def test_ids_are_given_back(client: Handshaken, request_id: object) -> None:
    client.same(request("resources/read", READ, request_id))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"null", 400),
        (request("ping").decode().encode("utf-16"), 400),
        (b"\xef\xbb\xbf" + request("ping"), 400),
        (request("ping", request_id="x").replace(b"x", b"\xff"), 400),
        (request("ping", request_id="x").replace(b"x", rb"\ud800"), 400),
        (request("ping", request_id="x").replace(b"x", rb"\uD800"), 400),
        (request("ping", {"a": 1}).replace(b"1}", DEEP + b"}"), 400),
        (request("ping", {"a": 7}).replace(b"7", b"NaN"), 200),
        (request("ping", {"a": 7}).replace(b"7", b"-Infinity"), 200),
        (request("ping", {"a": 7}).replace(b"7", b"9" * 5000), 400),
        (request("ping")[:-1] + b',"id":2}', 200),
        (request("ping")[:-1] + b',"more":2}', 200),
        (request("ping")[:-1] + b',"params":null}', 200),
        (request("ping")[:-1] + b',"params":[]}', 400),
        (request("ping").replace(b"2.0", b"1.0"), 400),
        (b" \r\n\t" + request("resources/read", READ) + b"\n ", 200),
        (request("resources/read", {**READ, "a": "x" * 70_000}), 200),
    ],
)
def test_odd_bodies_are_told_the_same(client: Handshaken, body: bytes, status: int) -> None:
    assert client.same(body)[0] == status


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just(ONE),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["uri", "cursor", "_meta"]), inner, max_size=3)
    ),
    max_leaves=5,
)
messages: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | values,
        "id": st.integers() | st.text(max_size=4) | values,
        "method": st.sampled_from(["ping", "resources/read", "resources/list"]) | values,
        "params": st.fixed_dictionaries({}, optional={"uri": values, "cursor": values}) | values,
        "result": values,
    },
)


@given(message=messages)
@settings(max_examples=100)
def test_random_messages_are_told_the_same(client: Handshaken, message: dict[str, Any]) -> None:
    status, _ = client.same(json.dumps(message).encode())
    assert status in {200, 202, 400}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Mcp-Session-Id": None}, 400),
        ({"Mcp-Session-Id": "none"}, 404),
        ({"MCP-Protocol-Version": None}, 200),
        ({"MCP-Protocol-Version": "2025-06-18"}, 200),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
        ({"MCP-Protocol-Version": "2026-07-28"}, 400),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 400),
        ({"Content-Type": None}, 400),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "application/jsonp"}, 406),
        ({"Accept": None}, 406),
        ({"Accept": "application/json"}, 200),
        ({"Accept": "*/*"}, 200),
    ],
)
def test_headers_are_looked_at(
    client: Handshaken, headers: dict[str, str | None], status: int
) -> None:
    assert client.send(request("resources/read", READ), headers)[0] == status


def test_only_what_the_newest_protocol_accepts(served: Served) -> None:
    assert served.modern("resources/read", {"Accept": "application/jsonp"}, uri=ONE)[0] == 406


def test_an_ended_session_is_gone_at_once(served: Served) -> None:
    with Handshaken(served) as client:
        read = request("resources/read", READ)
        assert client.send(read)[0] == 200
        assert client.send(b"", method="DELETE")[0] == 200
        assert client.send(read)[0] == 404


def test_a_token_is_asked_for_with_a_session_too(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    (tmp_path / "token").write_text("a-token-of-some-length\n", "utf-8")
    with Served(tmp_path, "--token-file", str(tmp_path / "token")) as server:
        connection = server.connect()
        bearing = {**ACCEPT, "Authorization": "Bearer a-token-of-some-length"}
        connection.request("POST", "/mcp", request("initialize", HELLO), bearing)
        answer = connection.getresponse()
        answer.read()
        named = {
            "Mcp-Session-Id": answer.headers["mcp-session-id"],
            "MCP-Protocol-Version": "2025-11-25",
        }
        statuses: list[int] = []
        for headers in (ACCEPT, bearing):
            read = request("resources/read", READ)
            connection.request("POST", "/mcp", read, {**headers, **named})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
        assert statuses == [401, 200]


@pytest.mark.anyio
async def test_a_client_hears_of_the_lists_it_was_shown(tmp_path: Path) -> None:
    write_skill(tmp_path, "one")
    with Served(tmp_path) as server:
        heard = anyio.Event()

        async def on_message(message: Any) -> None:
            if "ResourceListChanged" in type(message).__name__:
                heard.set()

        async with Client(server.url, mode="legacy", message_handler=on_message) as client:
            shown = await client.list_resources()
            await anyio.sleep(0.3)
            write_skill(tmp_path, "two")
            with anyio.fail_after(60):
                await heard.wait()
            more = await client.list_resources()
            assert len(more.resources) > len(shown.resources)


class Ways:
    """Plain requests in front of an application that answers 299, to see which way is taken."""

    def __init__(self, root: Path) -> None:
        write_skill(root, "one")
        roots = ResourceRoots((str(root),), None, internal=False)
        server = ResourceServer(roots.open().service("test", "1.0"))
        self.service = server.service
        self.sessions = server.sessions
        session = Session(lambda _method, _params: None)
        server.service.answer(session, "initialize", HELLO, 0)
        self.sessions.see("s", session)
        self._app = PlainRequests(self._long, server, "/mcp")

    async def _long(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 299, "headers": []})
        await send({"type": "http.response.body", "body": body})

    def send(self, body: bytes, more: Mapping[str, str] | None = None, method: str = "POST") -> int:
        headers = {
            "host": "here",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-session-id": "s",
            "mcp-protocol-version": "2025-11-25",
            **(more or {}),
        }
        told: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        async def run() -> None:
            pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
            scope = {"type": "http", "method": method, "path": "/mcp", "headers": pairs}
            await self._app(scope, receive, send)

        anyio.run(run)
        if told[0]["status"] == 299:
            assert told[1]["body"] == body
        else:
            assert dict(told[0]["headers"])[b"mcp-session-id"] == b"s"
        return told[0]["status"]


def test_who_takes_the_short_way(tmp_path: Path) -> None:
    ways = Ways(tmp_path)
    read = request("resources/read", READ)
    for body in (read, request("ping"), request("resources/list", {})):
        assert ways.send(body) == 200
    for body in (request("skills/list"), request("resources/read", {"uri": "x://y"}), b"{"):
        assert ways.send(body) == 299
    for more in (
        {"mcp-session-id": "t"},
        {"mcp-protocol-version": "2025-06-18"},
        {"accept": "application/jsonp"},
    ):
        assert ways.send(read, more) == 299
    assert ways.send(b"", method="DELETE") == 299
    assert ways.send(read) == 299


def test_a_request_that_breaks_something_takes_the_long_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it is logged, and answered as over stdio."""

    def broken(_uri: str) -> object:
        raise ZeroDivisionError

    ways = Ways(tmp_path)
    monkeypatch.setattr(ways.service.catalog, "read", broken)
    assert ways.send(request("resources/read", READ)) == 299
