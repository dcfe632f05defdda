"""A client of any MCP server over stdio, thin enough to measure the server and not itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from select import select
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.process import BenchError, processor_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

Message: TypeAlias = "dict[str, Any]"

PROTOCOL = "2025-11-25"
_CHUNK = 1 << 20
_SECONDS = 120.0
_TAIL = 400


def request(number: int, method: str, params: Mapping[str, object] | None = None) -> bytes:
    """Write a request as a line."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params or {})}
    return json.dumps(message).encode() + b"\n"


class StdioClient:
    """A server process and what was read of its output.

    Args:
        command: What starts the server.
        cwd: Where it runs.
        environ: Its whole environment.

    Raises:
        BenchError: It cannot be started.
    """

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str]
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self.begun = time.perf_counter()
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
            )
        except OSError as error:
            raise BenchError(f"`{command[0]}` cannot be run: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._rest = b""
        self._ids = 0
        self.reported: list[tuple[float, Message]] = []
        """Notifications, and when each came."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def open(self) -> Message:
        """Shake hands."""
        client = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        answer = self.ask("initialize", hello)
        self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return answer

    def ask(self, method: str, params: Mapping[str, object] | None = None) -> Message:
        """Ask and wait for the answer.

        Raises:
            BenchError: It is an error, or none comes.
        """
        self._ids += 1
        number = self._ids
        self._send(request(number, method, params))
        while True:
            message = json.loads(self._line())
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise BenchError(f"`{method}`: {message['error'].get('message')}")
                return message["result"]
            self._hear(message)

    def time_each(self, method: str, params: Sequence[Mapping[str, object]]) -> list[float]:
        """Ask one by one; gives the seconds of each."""
        lines = [request(number, method, one) for number, one in enumerate(params, 1_000_000)]
        seconds: list[float] = []
        for line in lines:
            start = time.perf_counter()
            self._send(line)
            self._line()
            seconds.append(time.perf_counter() - start)
        return seconds

    def time_all(self, method: str, params: Sequence[Mapping[str, object]]) -> float:
        """Send all requests at once and wait for as many lines; gives the seconds of all.

        Raises:
            BenchError: The last line is an error.
        """
        lines = [request(number, method, one) for number, one in enumerate(params, 1_000_000)]
        start = time.perf_counter()
        writer = Thread(target=self._send, args=(b"".join(lines),))
        writer.start()
        missing, last = len(lines), b""
        while missing > 0:
            chunk = self._chunk(_SECONDS)
            missing -= chunk.count(b"\n")
            last = (last + chunk)[-_CHUNK:] if missing <= 0 else chunk
        seconds = time.perf_counter() - start
        writer.join()
        if b'"error":{"' in last.rstrip(b"\n").rpartition(b"\n")[2][:80]:
            raise BenchError(f"`{method}`: {last[-_TAIL:].decode('utf-8', 'replace')}")
        return seconds

    def wait_told(self, method: str, seconds: float) -> float | None:
        """Wait for a notification that was not heard yet; gives when it came, None for never."""
        end = time.perf_counter() + seconds
        while True:
            for place, (when, message) in enumerate(self.reported):
                if message.get("method") == method:
                    del self.reported[: place + 1]
                    return when
            left = end - time.perf_counter()
            if left <= 0 or not (self._rest or select((self._out,), (), (), left)[0]):
                return None
            self._hear(json.loads(self._line()))

    def processor_seconds(self) -> float:
        """Return what the server took of processors so far; see `bench.process`."""
        return processor_seconds(self._process.pid)

    def peak_mib(self) -> float:
        """Return the most memory the server has held so far, in MiB.

        Raises:
            BenchError: This system does not report it.
        """
        if sys.platform != "linux":
            raise BenchError("the memory of a running process is known on Linux only")
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = [one for one in status.splitlines() if one.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024

    def _hear(self, message: Message) -> None:
        """Keep a notification, and refuse what the server asks of its client."""
        if "id" not in message:
            self.reported.append((time.perf_counter(), message))
        elif "method" in message:
            error = {"code": -32601, "message": "this client offers nothing"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            self._send(json.dumps(answer).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._in, view) :]
        except OSError:
            return  # the next read says what became of the server

    def _line(self) -> bytes:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            parts.append(self._chunk(_SECONDS))
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _chunk(self, seconds: float) -> bytes:
        if self._rest:
            chunk, self._rest = self._rest, b""
            return chunk
        if not select((self._out,), (), (), seconds)[0]:
            raise BenchError(f"the server did not answer for {seconds:g} s")
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            self._errors.seek(0)
            text = self._errors.read().decode("utf-8", "replace").strip()
            raise BenchError(f"the server ended: {text[-_TAIL:]}")
        return chunk
