"""Hostile clients and pages of the real server over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

from tests.resources.hostile_world import HELLO, PROGRAM, make_world
from tests.whole_file import write_whole

SOUND = {"uri": "skill://sound/SKILL.md"}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return make_world(tmp_path)


@contextlib.contextmanager
def serving_http(world: Path) -> Generator[int]:
    """Serve the skills of a world over HTTP; gives the port."""
    command = (PROGRAM, "resources", "serve", "--skills", "skills", "--transport", "http")
    process = subprocess.Popen((*command, "--port", "0"), cwd=world, stderr=subprocess.PIPE)
    assert process.stderr is not None
    drain = threading.Thread(target=process.stderr.read)
    try:
        port = int(process.stderr.readline().split(b"127.0.0.1:")[1].split(b"/")[0])
        drain.start()
        yield port
    finally:
        process.terminate()
        process.wait(60)
        drain.join()
        process.stderr.close()


def make_trouble(port: int, done: threading.Event) -> None:
    """Send what no client should, until it is enough."""
    while not done.is_set():
        for body in (b"{", b"[" * 50_000, b"x" * (5 << 20), b'{"jsonrpc":"2.0"}'):
            with contextlib.suppress(OSError, http.client.HTTPException):
                post(port, body, {})
        with contextlib.suppress(OSError):
            half = socket.create_connection(("127.0.0.1", port))
            half.sendall(b"POST /mcp HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")
            half.close()


@pytest.mark.spec("T-12", "T-13")
def test_one_client_cannot_cost_another_its_answers(world: Path) -> None:
    done = threading.Event()
    with serving_http(world) as port:
        nuisance = threading.Thread(target=make_trouble, args=(port, done))
        nuisance.start()
        try:
            session = open_session(port)
            for number in range(40):
                asked = {"jsonrpc": "2.0", "id": number, "method": "resources/read"}
                status, _, body = post(
                    port, json.dumps({**asked, "params": SOUND}).encode(), session
                )
                assert status == 200
                answer = json.loads(body)
                assert answer["id"] == number
                assert "Does sound." in answer["result"]["contents"][0]["text"]
                assert str(world).encode() not in body
        finally:
            done.set()
            nuisance.join()


@pytest.mark.spec("T-9", "T-13")
def test_a_client_that_floods_subscriptions_costs_another_nothing(world: Path) -> None:
    with serving_http(world) as port:
        greedy, other = open_session(port), open_session(port)
        codes = subscribe(port, greedy, 1003)
        assert codes == [None] * 1000 + [-32602] * 3
        assert "result" in ask(port, other, "resources/subscribe", SOUND)
        reported = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        reported.request("GET", "/mcp", headers={**other, "Accept": "text/event-stream"})
        stream = reported.getresponse()
        head = world / "skills/sound/SKILL.md"
        write_whole(head, head.read_text() + "More.\n")
        lines = iter(stream.readline, b"")
        data = next(line for line in lines if b"resources/updated" in line)
        assert json.loads(data.removeprefix(b"data: "))["params"] == SOUND
        reported.close()
        assert "More." in str(ask(port, other, "resources/read", SOUND)["result"])
        assert "result" in ask(port, greedy, "resources/read", SOUND)


def open_session(port: int) -> dict[str, str]:
    """Begin as a client of the protocol before the newest; gives the headers of its requests."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    status, headers, _ = post(port, json.dumps(hello).encode(), {})
    assert status == 200
    session = {
        "mcp-session-id": headers["mcp-session-id"],
        "MCP-Protocol-Version": HELLO["protocolVersion"],
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(port, json.dumps(ready).encode(), session)[0] == 202
    return session


def subscribe(port: int, session: dict[str, str], count: int) -> list[int | None]:
    """Subscribe to so many URIs; gives the code of each error."""
    codes: list[int | None] = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        for number in range(count):
            params = {"uri": f"skill://sound/{number}.md"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params}
            answer = post_over(connection, json.dumps(message).encode(), session)[2]
            codes.append(json.loads(answer).get("error", {}).get("code"))
    return codes


def ask(port: int, session: dict[str, str], method: str, params: dict[str, str]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.loads(post(port, json.dumps(message).encode(), session)[2])


@pytest.mark.spec("T-14")
def test_pages_of_other_origins_do_not_reach_a_local_server(world: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    body = json.dumps(hello).encode()
    with serving_http(world) as port:
        assert post(port, body, {})[0] == 200
        for strange in (
            {"Host": "attacker.example"},
            {"Host": f"attacker.example:{port}"},
            {"Origin": "https://attacker.example"},
            {"Origin": "null"},
            {"Content-Type": "text/plain"},
        ):
            status, _, answer = post(port, body, strange)
            assert 400 <= status < 500, strange
            assert b"protocolVersion" not in answer


def post(port: int, body: bytes, more: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        return post_over(connection, body, more)


def post_over(
    connection: http.client.HTTPConnection, body: bytes, more: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        **more,
    }
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse()
    return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
