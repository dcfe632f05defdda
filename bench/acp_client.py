"""A bare client of the Agent Client Protocol over standard input and output."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class AcpClient:
    """An agent in a process of its own: `with AcpClient(command, cwd, environ) as client:`.

    Args:
        command: The program and its arguments.
        cwd: Where it runs, and the directory of its sessions.
        environ: Its whole environment.
    """

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str]
    ) -> None:
        self._cwd = str(cwd)
        self._number = 0
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def initialize(self) -> None:
        """Begin the connection."""
        self._ask("initialize", protocolVersion=1, clientCapabilities={})

    def open(self) -> str:
        """Open a session; gives its id."""
        return self._ask("session/new", cwd=self._cwd, mcpServers=[])["sessionId"]

    def prompt(self, session: str, text: str) -> None:
        """Send a prompt, and wait for the end of the turn."""
        block = {"type": "text", "text": text}
        ended = self._ask("session/prompt", sessionId=session, prompt=[block])
        if ended.get("stopReason") != "end_turn":
            raise BenchError(f"the turn ended as {ended}")

    def rate(self, session: str, prompts: int) -> float:
        """Send prompts one after another; gives how many a second."""
        start = time.perf_counter()
        for _ in range(prompts):
            self.prompt(session, "hello")
        return prompts / (time.perf_counter() - start)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise BenchError("the agent is closed")
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()
        # Only the answer is read as JSON, so that the client costs both sides the same little.
        mark = b'"id":%d,' % self._number, b'"id": %d,' % self._number
        for line in stdout:
            if mark[0] in line or mark[1] in line or line.rstrip().endswith(mark[0][:-1] + b"}"):
                answer = json.loads(line)
                if answer.get("id") == self._number and "method" not in answer:
                    if "result" not in answer:
                        raise BenchError(f"`{method}` failed: {answer.get('error')}")
                    return answer["result"]
        raise BenchError(f"the agent ended before it answered `{method}`")
