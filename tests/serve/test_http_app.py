"""MCP over HTTP: which requests are answered, with which status, and how answers are written."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.serve.agent_world import AgentWorld
from tests.serve.asgi_world import HELLO, META, MODERN, PROGRESS, open_app

from fast_agent.serve import http_app
from fast_agent.serve.http_app import HttpAnswer, Silences
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path


pytestmark = pytest.mark.anyio
CALL: dict[str, Any] = {"name": "ann", "arguments": {"message": "hi"}}


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann")
    return world


def request(method: str, params: object = None, request_id: object = 1) -> bytes:
    message: dict[str, object] = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}).encode()


PING = request("ping")
BODIES: list[tuple[bytes, int, object]] = [
    (PING, 200, 1),
    (b" \r\n\t" + PING + b"\n ", 200, 1),
    (request("ping", request_id=-1), 200, -1),
    (request("ping", request_id=2**70), 200, 2**70),
    (request("ping", request_id=""), 200, ""),
    (request("ping", request_id="é"), 200, "é"),
    (PING[:-1] + b',"more":2}', 200, 1),
    (PING[:-1] + b',"params":null}', 200, 1),
    (request("ping", {"a": "x" * 70_000}), 200, 1),
    (request("no/such"), 200, 1),
    (b"", 400, None),
    (b"\x0b" + PING, 400, None),
    (b"{", 400, None),
    (b"[]", 400, None),
    (b"null", 400, None),
    (PING.decode().encode("utf-16"), 400, None),
    (b"\xef\xbb\xbf" + PING, 400, None),
    (request("ping", request_id=True), 400, None),
    (request("ping", request_id=None), 400, None),
    (request("ping", request_id=1.0), 400, None),
    (request("ping", request_id=[]), 400, None),
    (request("ping", {"a": 7}).replace(b"7", b"NaN"), 400, None),
    (request("ping", {"a": 7}).replace(b"7", b"1e999"), 400, None),
    (request("ping", {"a": 7}).replace(b"7", b"9" * 5000), 400, None),
    (request("ping", {"a": 7}).replace(b"7", b"[" * 300 + b"]" * 300), 400, None),
    (PING[:-1] + b',"params":[]}', 400, 1),
    (PING.replace(b"2.0", b"1.0"), 400, 1),
    (request("ping").replace(b'"ping"', b"5"), 400, 1),
    (b'{"jsonrpc":"2.0","method":"notifications/x"}', 202, None),
    (b'{"jsonrpc":"2.0","id":5,"result":{}}', 202, None),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":"1"}}', 202, None),
]


@pytest.mark.spec("TR-N3.2a")
async def test_bodies(world: AgentWorld, caplog: pytest.LogCaptureFixture) -> None:
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        for body, status, request_id in BODIES:
            reply = await client.ask("POST", body)
            assert (body, reply.status) == (body, status)
            if status == 202:
                assert reply.body == b""
            else:
                assert reply.json["id"] == request_id
                assert ("error" in reply.json) == (status == 400 or b"no/such" in body)
    assert "Traceback" not in caplog.text


HEADERS: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"mcp-session-id": "none"}, 404),
    ({"mcp-protocol-version": "2025-06-18"}, 200),
    ({"mcp-protocol-version": "1999-01-01"}, 400),
    ({"mcp-protocol-version": MODERN}, 400),
    ({"content-type": "text/plain"}, 400),
    ({"content-type": "application/json; charset=utf-8"}, 200),
    ({"accept": "text/html"}, 406),
    ({"accept": "application/json"}, 406),
    ({"accept": "text/event-stream"}, 406),
    ({"accept": "application/*;q=0.5, TEXT/*"}, 200),
    ({"accept": "*/*"}, 200),
]


async def test_headers(world: AgentWorld) -> None:
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        for headers, status in HEADERS:
            reply = await client.ask("POST", PING, more=headers)
            assert (headers, reply.status) == (headers, status)


async def test_a_resource_server_needs_no_streams(world: AgentWorld) -> None:
    async with world.serving() as agents, open_app(ResourceServer(agents.service)) as client:
        await client.begin()
        for accepted, status in (("application/json", 200), ("text/event-stream", 406)):
            reply = await client.ask("POST", PING, more={"accept": accepted})
            assert (accepted, reply.status) == (accepted, status)


MODERN_HEADERS: list[tuple[dict[str, str], int, int]] = [
    ({}, 200, 0),
    ({"mcp-name": "=?base64?YW5u?="}, 200, 0),
    ({"mcp-name": "=?base64?YW5?="}, 400, -32020),
    ({"mcp-name": "bob"}, 400, -32020),
    ({"mcp-method": "tools/list"}, 400, -32020),
    ({"mcp-protocol-version": "2099-01-01"}, 400, -32020),
    ({"accept": "application/json"}, 200, 0),
    ({"accept": "text/event-stream"}, 406, -32600),
]


async def test_headers_of_the_newest_protocol(world: AgentWorld) -> None:
    named = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "ann"}
    async with world.serving() as server, open_app(server) as client:
        for more, status, code in MODERN_HEADERS:
            params = {**CALL, "_meta": META}
            reply = await client.send("tools/call", params, more={**named, **more})
            assert (more, reply.status) == (more, status)
            assert reply.json.get("error", {}).get("code", 0) == code
        for method in ("GET", "DELETE", "PUT"):
            reply = await client.ask(method, more=named)
            assert (reply.status, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("method", "params", "status"),
    [
        ("ping", {}, 404),
        ("initialize", HELLO, 404),
        ("no/such", {}, 404),
        ("prompts/get", {}, 400),
        ("tools/list", {}, 200),
        ("notifications/x", None, 202),
    ],
)
async def test_statuses_of_the_newest_protocol(
    world: AgentWorld, method: str, params: dict[str, Any] | None, status: int
) -> None:
    async with world.serving() as server, open_app(server) as client:
        if params is None:
            headers = {"mcp-protocol-version": MODERN}
            assert (await client.send(method, {}, None, more=headers)).status == status
        else:
            assert (await client.modern(method, "", params)).status == status


async def test_other_paths_and_methods(world: AgentWorld) -> None:
    async with world.serving() as server, open_app(server) as client:
        for path in ("/", "/mcp/x", "/" + "x" * 5000, "/MCP"):
            reply = await client.ask("POST", PING, path=path)
            assert (reply.status, "try `/mcp`" in reply.json["error"]["message"]) == (404, True)
        assert (await client.ask("POST", request("initialize", HELLO), path="/mcp/")).status == 200
        for verb in ("PUT", "PATCH", "HEAD"):
            reply = await client.ask(verb)
            assert (reply.status, reply.headers["allow"]) == (405, "GET, POST, DELETE")
        for verb in ("GET", "DELETE", "POST"):
            assert (await client.ask(verb, PING)).status == 400


@pytest.mark.parametrize(("accepted", "status"), [("application/json", 406), ("*/*", 200)])
async def test_only_a_stream_has_to_be_accepted(
    world: AgentWorld, accepted: str, status: int
) -> None:
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        async with client.stream("GET", more={"accept": accepted}) as stream:
            await stream.started()
            assert stream.reply.status == status
        assert (await client.ask("DELETE", more={"accept": accepted})).status == 200


@pytest.mark.parametrize("capabilities", [{"sampling": 5}, {"elicitation": [1]}, []])
async def test_a_failed_handshake_leaves_no_session(world: AgentWorld, capabilities: Any) -> None:
    async with world.serving() as server, open_app(server) as client:
        reply = await client.send("initialize", {**HELLO, "capabilities": capabilities})
        assert (reply.status, reply.json["error"]["code"]) == (200, -32602)
        assert "mcp-session-id" not in reply.headers
        assert not server.service.following.sessions


async def test_an_event_is_two_lines_whatever_it_says(world: AgentWorld) -> None:
    text = "a\u2028b\u2029c\x85d\r\ne"
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        params = {"name": "ann", "arguments": {"message": text}, "_meta": PROGRESS}
        reply = await client.send("tools/call", params)
        last = reply.body.decode().strip().split("\r\n\r\n")[-1]
        assert len(last.splitlines()) == 2
        assert reply.json["result"]["structuredContent"]["text"] == text


async def test_a_long_silence_is_filled_with_comments(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_app, "PING_SECONDS", 0.01)
    world.card("slow", model="slow?seconds=600")
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        body = request("tools/call", {**CALL, "name": "slow"})
        async with client.stream("POST", body) as call, client.stream("GET") as events:
            for stream in (call, events):
                await stream.until(b": ping\r\n\r\n: ping\r\n\r\n")
                assert stream.reply.headers["content-type"] == "text/event-stream"
            await client.send("notifications/cancelled", {"requestId": 1}, None)
            await call.ended.wait()
            assert call.reply.json["error"]["code"] == -32800
        assert not server.scopes.in_use


async def test_an_answer_that_was_sent_is_forgotten() -> None:
    async def send(message: object) -> None:
        raise AssertionError(message)

    silences, answer = Silences(), HttpAnswer(send, "ann", None, streams=True)
    with silences.broken(answer):
        assert silences.waiting == {answer}
    assert not silences.waiting


async def test_an_id_in_use_is_refused(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=600")
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        body = request("tools/call", {**CALL, "name": "slow", "_meta": PROGRESS})
        async with client.stream("POST", body) as call:
            await call.until(b"notifications/progress")
            assert (await client.ask("POST", PING)).json["error"]["code"] == -32600
            assert (await client.ask("POST", request("ping", request_id=2))).json["result"] == {}


async def test_a_client_that_leaves_takes_its_call_along(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=600")
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        for meta in ({}, PROGRESS):
            body = request("tools/call", {**CALL, "name": "slow", "_meta": meta})
            async with client.stream("POST", body):
                await _until(server, 1)
            await _until(server, 0)


async def _until(server: Any, in_use: int) -> None:
    with anyio.fail_after(60):
        while server.scopes.in_use != in_use:  # noqa: ASYNC110 - it comes true elsewhere
            await anyio.sleep(0.01)


async def test_a_request_leaves_nothing_to_the_garbage_collector(world: AgentWorld) -> None:
    """Garbage collections stop the server; answers that leave no cycles make them rare."""
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        await client.send("tools/call", CALL)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await client.send("tools/call", CALL)
            await client.modern("tools/call", "ann", CALL)
            gc.collect()
            garbage: list[object] = gc.garbage
            left = {type(one).__qualname__ for one in garbage if _is_ours(one)}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert not left


def _is_ours(value: object) -> bool:
    # Other rooms' objects may be those of earlier tests.
    return type(value).__module__.startswith(("fast_agent.serve", "fast_agent.rpc"))


@pytest.mark.spec("SERVE-6")
@pytest.mark.parametrize("waits", [False, True])
async def test_an_answer_that_was_cancelled_before_its_stream_began_is_a_whole_one(
    waits: bool,
) -> None:
    """A stream is one once its head is sent: until then, a client may be slow to read others."""
    sent: list[MutableMapping[str, Any]] = []
    is_slow = waits

    async def send(message: MutableMapping[str, Any]) -> None:
        if is_slow:
            await anyio.sleep_forever()
        sent.append(message)

    to = http_app.HttpAnswer(send, "", None, streams=True)
    with anyio.CancelScope() as scope:
        if waits:
            scope.deadline = anyio.current_time() + 0.05
        else:
            scope.cancel()
        await to.stream(b"x")
    is_slow = False
    await to.finish(b"{}")
    assert [one["type"] for one in sent] == ["http.response.start", "http.response.body"]
    assert (b"content-type", b"application/json") in sent[0]["headers"]
    assert sent[1]["body"] == b"{}"


async def test_what_was_streamed_before_a_cancellation_is_followed_by_the_end() -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    to = http_app.HttpAnswer(send, "", None, streams=True)
    await to.stream(b"x")
    await to.finish(b"{}")
    assert [one["type"].rpartition(".")[2] for one in sent] == ["start", "body", "body"]
    assert sent[2]["body"].endswith(b"{}\r\n\r\n")
    assert not sent[2]["more_body"]
