"""Hostile clients and pages of the real server over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

from tests.resources.hostile_world import HELLO, PROGRAM, make_world

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
        process.wait(10)
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
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
            status, headers, _ = post(port, json.dumps(hello).encode(), {})
            assert status == 200
            session = {"mcp-session-id": headers["mcp-session-id"]}
            for number in range(40):
                ask = {"jsonrpc": "2.0", "id": number, "method": "resources/read", "params": SOUND}
                status, _, body = post(port, json.dumps(ask).encode(), session)
                assert status == 200
                answer = json.loads(body)
                assert answer["id"] == number
                assert "Does sound." in answer["result"]["contents"][0]["text"]
                assert str(world).encode() not in body
        finally:
            done.set()
            nuisance.join()


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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
            **more,
        }
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        return (
            answer.status,
            {name.lower(): text for name, text in answer.getheaders()},
            answer.read(),
        )
    finally:
        connection.close()
