"""The stdio edge behind HTTP, for scenarios that know HTTP only.

Each session has a process of its own, as a host would start it; requests of the protocol without
sessions share one. A request is handed to the process as a line, and the line that answers it is
the body of the response.

Run: `python tests/conformance/bridge.py SKILLS`; the first line on standard output is the address.
"""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

_SERVER = Path(__file__).with_name("server.py")
_STATELESS = "2026-07-28"


class Process:
    """A server over stdio."""

    def __init__(self, skills: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, _SERVER, "stdio", skills],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lock = Lock()

    def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Hand over a message; None for a notification, which has no answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            while "id" in message:
                answer: dict[str, Any] = json.loads(self._process.stdout.readline())
                if answer.get("id") == message["id"]:
                    return answer
        return None

    def end(self) -> None:
        """End the process by ending its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Bridge(ThreadingHTTPServer):
    """The processes by session; the one without a session is `""`."""

    def __init__(self, skills: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.skills = skills
        self.processes = {"": Process(skills)}


class Handler(BaseHTTPRequestHandler):
    """One HTTP connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a message."""
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id", "")
        if message.get("method") == "subscriptions/listen":
            self._reply(405, None, "")  # it would be answered by a stream, which the bridge is not
            return
        if message.get("method") == "initialize":
            session = uuid4().hex
            self._bridge.processes[session] = Process(self._bridge.skills)
        process = self._bridge.processes.get(session)
        if process is None or not (
            session or self.headers.get("MCP-Protocol-Version") == _STATELESS
        ):
            self._reply(404 if session else 400, None, "")
            return
        answer = process.ask(message)
        self._reply(202 if answer is None else 200, answer, session)

    def do_GET(self) -> None:
        """Offer no stream."""
        self._reply(405, None, "")

    def do_DELETE(self) -> None:
        """End a session."""
        process = self._bridge.processes.pop(self.headers.get("Mcp-Session-Id", "none"), None)
        if process is not None:
            process.end()
        self._reply(404 if process is None else 200, None, "")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""

    @property
    def _bridge(self) -> Bridge:
        assert isinstance(self.server, Bridge)
        return self.server

    def _reply(self, status: int, answer: dict[str, Any] | None, session: str) -> None:
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    with Bridge(sys.argv[1]) as bridge:
        print(f"http://127.0.0.1:{bridge.server_address[1]}/mcp", flush=True)
        bridge.serve_forever()
