"""A client that writes lines to `fast-agent serve --transport stdio`, and reads what comes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Self

from tests.processes import unexpected
from tests.serve.agent_process import PROGRAM, call, environ_in
from tests.serve.served import HELLO, META

if TYPE_CHECKING:
    from pathlib import Path


class StdioClient:
    """A process of its own, in a directory with cards; killed in the end where it still runs."""

    def __init__(self, directory: Path, *options: str) -> None:
        command = [PROGRAM, "serve", "--card", "cards", "--transport", "stdio", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=directory, env=environ_in(directory)
        )
        self.heard: list[Any] = []
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def notify(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(message).encode())

    def begin(self, method: str, **params: Any) -> int:
        """Send a request; gives its id."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.write(json.dumps(message).encode())
        return self._number

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its answer; what is notified before it is in `heard`."""
        return self.answer(self.begin(method, **params))

    def answer(self, number: int) -> Any:
        while (message := self.read()).get("id") != number or "method" in message:
            self.heard.append(message)
        return message

    def open(self, **capabilities: Any) -> Any:
        answer = self.ask("initialize", **{**HELLO, "capabilities": capabilities})["result"]
        self.notify("notifications/initialized")
        return answer

    def call(self, agent: str, text: str, **meta: Any) -> str:
        result = self.ask("tools/call", **call(agent, text, **meta))["result"]
        return result["content"][0]["text"]

    def modern(self, method: str, **params: Any) -> Any:
        return self.ask(method, **params, _meta=META)

    def end(self) -> str:
        """Hang up; gives what was said on standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, said
        return unexpected(said.decode())
