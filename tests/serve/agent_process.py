"""A server of agents in a process of its own, and what its clients send."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.serve.served import ACCEPT, HELLO, META, Served, address_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = Path(sys.executable).with_name("fast-agent")


def environ_in(directory: Path) -> dict[str, str]:
    home = str(directory / "home")
    return {**os.environ, "FAST_AGENT_HOME": home, "HOME": home}


class ServedAgents(Served):
    """A server over HTTP of the cards in a directory."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [*self.command(directory / "cards"), *options],
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory,
            env=environ_in(directory),
        )
        self.url = address_of(self.process)
        self.port = int(self.url.split(":")[2].split("/")[0])
        self._clients: list[HandshakeClient] = []

    def command(self, cards: Path) -> list[str | Path]:
        return [PROGRAM, "serve", "--card", cards, "--port", "0"]

    def __exit__(self, *problem: object) -> None:
        for client in self._clients:
            client.close()
        super().__exit__(*problem)

    def open(self, capabilities: Mapping[str, Any] | None = None) -> HandshakeClient:
        client = HandshakeClient(self.port, capabilities or {})
        self._clients.append(client)
        return client

    def modern_call(self, agent: str, message: str, **meta: Any) -> Any:
        status, answer = self.modern_post(agent, message, **meta)
        return answer["result"] if status == 200 and "result" in answer else answer

    def modern_post(self, agent: str, message: str, **meta: Any) -> tuple[int, Any]:
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
        params = {
            "name": agent,
            "arguments": {"message": message},
            "_meta": {**META, **meta},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        status, answer = self.post(body, {**headers, "Mcp-Name": agent})
        if str(answer).startswith("b': ping"):  # it took a while
            answer = json.loads(answer.rpartition(b"data: ")[2])
        return status, answer


class ImpatientAgents(ServedAgents):
    """The same, which gives calls half a second to end once it was asked to stop."""

    def command(self, cards: Path) -> list[str | Path]:
        return impatient(cards)


def impatient(cards: Path, *more: str) -> list[str | Path]:
    return [sys.executable, Path(__file__).with_name("agent_program.py"), cards, "0.5", *more]


class HandshakeClient:
    """A client that opened with a handshake, on one connection that is kept open."""

    def __init__(self, port: int, capabilities: Mapping[str, Any]) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = dict(ACCEPT)
        hello = {**HELLO, "capabilities": dict(capabilities)}
        answer = self.send("initialize", hello)
        self.version = answer["result"]["protocolVersion"]
        self.headers["MCP-Protocol-Version"] = self.version

    def post(self, body: bytes) -> tuple[int, bytes]:
        self._connection.request("POST", "/mcp", body, self.headers)
        answer = self._connection.getresponse()
        session = answer.headers.get("mcp-session-id")
        if session is not None:
            self.headers["Mcp-Session-Id"] = session
        return answer.status, answer.read()

    def send(self, method: str, params: Mapping[str, Any], request_id: int | None = 1) -> Any:
        status, text = self.post(message(method, params, request_id))
        assert status in {200, 202}, text
        return answer_in(text)

    def call(self, agent: str, text: str, request_id: int = 1, **meta: Any) -> Any:
        return self.send("tools/call", call(agent, text, **meta), request_id)["result"]

    def end(self) -> int:
        """End the session; return the status of the answer."""
        self._connection.request("DELETE", "/mcp", headers=self.headers)
        answer = self._connection.getresponse()
        answer.read()
        self.close()
        return answer.status

    def close(self) -> None:
        self._connection.close()


def call(agent: str, text: str, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": agent, "arguments": {"message": text}}
    return {**params, "_meta": meta} if meta else params


def message(method: str, params: Mapping[str, Any], request_id: int | None) -> bytes:
    one: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
    return json.dumps(one if request_id is None else {**one, "id": request_id}).encode()


def answer_in(text: bytes) -> Any:
    """The answer in a body: JSON, or the last event of a stream."""
    if text[:1] == b"{":
        return json.loads(text)
    events = [line[6:] for line in text.splitlines() if line.startswith(b"data: ")]
    return json.loads(events[-1]) if events else None
