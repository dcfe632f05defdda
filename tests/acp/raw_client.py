"""A client that writes bytes to `fast-agent acp`, a process of its own, and reads what comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Self

from tests.acp.editor_world import PROGRAM, work
from tests.processes import unexpected

if TYPE_CHECKING:
    from pathlib import Path


class RawClient:
    """A client without a library."""

    def __init__(self, place: Path, *options: str) -> None:
        self.home = place / "home"
        self.cwd = work(place)
        environ = {**os.environ, "FAST_AGENT_HOME": str(self.home), "HOME": str(self.home)}
        self.process = subprocess.Popen(
            [PROGRAM, "acp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env=environ,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def answer(self, number: object) -> Any:
        """The answer to a request, past what is notified before it."""
        while True:
            message = self.read()
            if "method" not in message and message.get("id") == number:
                return message

    def ask(self, number: object, method: str, **params: Any) -> Any:
        """Send a request and wait for its answer."""
        self.begin(number, method, **params)
        return self.answer(number)

    def begin(self, number: object, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.write(json.dumps(message).encode() + b"\n")

    def initialize(self) -> Any:
        return self.ask(0, "initialize", protocolVersion=1, clientCapabilities={})

    def open(self) -> str:
        answered = self.ask("new", "session/new", cwd=str(self.cwd), mcpServers=[])
        return answered["result"]["sessionId"]

    def begin_prompt(self, number: object, session: str, text: str) -> None:
        block = {"type": "text", "text": text}
        self.begin(number, "session/prompt", sessionId=session, prompt=[block])

    def prompt(self, number: object, session: str, text: str) -> Any:
        block = {"type": "text", "text": text}
        return self.ask(number, "session/prompt", sessionId=session, prompt=[block])

    def end(self) -> tuple[int, str]:
        """Hang up; gives the exit status, and what was said on standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, unexpected(said.decode())
