"""The HTTP server in a process of its own, and what its clients send."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.processes import unexpected
from tests.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
ACCEPT = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


def write_skill(root: Path, name: str, body: str = "Do it.") -> None:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: About {name}.\n---\n{body}\n"
    write_whole(folder / "SKILL.md", text)


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server says where it serves, whatever it says before."""
    assert process.stderr is not None
    before = ""
    while line := process.stderr.readline():
        if line.startswith("serving at "):
            return line.strip().removeprefix("serving at ")
        before += line
    raise AssertionError(f"it ended: {before}")


class Served:
    """A server in a process of its own."""

    def __init__(self, root: Path, *options: str, prefix: Sequence[str] = ()) -> None:
        program = Path(sys.executable).with_name("fast-agent")
        command = [program, "resources", "serve", "--skills", root, "--transport", "http"]
        self.process = subprocess.Popen(
            [*prefix, *command, "--port", "0", *options], stderr=subprocess.PIPE, text=True
        )
        self.url = address_of(self.process)
        self.port = int(self.url.split(":")[2].split("/")[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def post(
        self, body: bytes | dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(self.connect()) as connection:
            connection.request("POST", "/mcp", data, {**ACCEPT, **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
        return answer.status, json.loads(text) if text[:1] == b"{" else text

    def modern(self, method: str, headers: Mapping[str, str] | None = None, **params: Any) -> Any:
        named = {"Mcp-Name": params["uri"]} if method == "resources/read" else {}
        sent = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **named}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        return self.post(message, {**sent, **(headers or {})})

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        err = self.process.stderr.read()
        return self.process.wait(60), unexpected(err)
