"""Connections to an MCP server over HTTP, thin enough to measure the server and not the client."""

from __future__ import annotations

import re
import selectors
import socket
import subprocess
import time
from typing import TYPE_CHECKING, TypeAlias, cast

from bench.process import BenchError
from bench.stdio_client import PROTOCOL, request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

Headers: TypeAlias = "tuple[str, ...]"

_CHUNK = 1 << 16
_STARTS_IN = 60.0
_SECONDS = 60.0
_SIZE = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SESSION = re.compile(rb"mcp-session-id: *([^\r\n]+)", re.IGNORECASE)
_ACCEPT: Headers = (
    "Accept: application/json, text/event-stream",
    "Content-Type: application/json",
)
MODERN = "2026-07-28"
"""The protocol without handshake and sessions, where each request says all of itself."""
_ENVELOPE: Mapping[str, object] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def free_port() -> int:
    """Find a port of this machine that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class HttpServer:
    """A server process that listens.

    Args:
        command: What starts it.
        port: Where it will listen.
        cwd: Where it runs.
        environ: Its whole environment.
    """

    def __init__(
        self, command: Sequence[str | Path], port: int, *, cwd: Path, environ: Mapping[str, str]
    ) -> None:
        self._port = port
        quiet = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=environ, stdin=quiet, stdout=quiet, stderr=quiet
            )
        except OSError as error:
            raise BenchError(f"`{command[0]}` cannot be run: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def connect(self, protocol: str = PROTOCOL) -> Connection:
        """Open a connection, and shake hands on it where the protocol has that.

        Args:
            protocol: Which version to speak.

        Raises:
            BenchError: The server does not listen in time, or refuses.
        """
        end = time.monotonic() + _STARTS_IN
        while True:
            try:
                one = socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS)
                break
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise BenchError("the server does not listen") from None
                time.sleep(0.05)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Connection(one, self._port, protocol)


class Connection:
    """A connection that is kept open, with a session of its own where the protocol has sessions.

    Args:
        connected: The socket.
        port: The server's port.
        protocol: The version to speak.
    """

    def __init__(self, connected: socket.socket, port: int, protocol: str) -> None:
        self.socket = connected
        self._modern = protocol == MODERN
        self._headers: Headers = (
            f"Host: 127.0.0.1:{port}",
            *_ACCEPT,
            f"MCP-Protocol-Version: {protocol}",
        )
        if not self._modern:
            self._shake_hands(protocol)

    def _shake_hands(self, protocol: str) -> None:
        client = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": protocol, "capabilities": {}, "clientInfo": client}
        head, _ = self.ask("initialize", hello)
        if found := _SESSION.search(head):
            self._headers += (f"Mcp-Session-Id: {found[1].decode()}",)
        self._exchange(self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))

    def text(self, number: int, method: str, params: Mapping[str, object]) -> bytes:
        """Write a request."""
        if not self._modern:
            return self._post(request(number, method, params))
        named: Headers = (f"Mcp-Method: {method}",)
        if "uri" in params:
            named += (f"Mcp-Name: {params['uri']}",)
        return self._post(request(number, method, {**params, "_meta": _ENVELOPE}), named)

    def ask(self, method: str, params: Mapping[str, object]) -> tuple[bytes, bytes]:
        """Send a request and give the head and the body of the answer."""
        return self._exchange(self.text(1, method, params))

    def _post(self, body: bytes, named: Headers = ()) -> bytes:
        body = body.strip()
        head = ("POST /mcp HTTP/1.1", *self._headers, *named)
        text = "\r\n".join((*head, f"Content-Length: {len(body)}", "", ""))
        return text.encode() + body

    def _exchange(self, text: bytes) -> tuple[bytes, bytes]:
        self.socket.sendall(text)
        answer = Answer()
        while not answer.feed(self.socket.recv(_CHUNK)):
            pass
        return answer.parts


class Answer:
    """An answer as far as it was received."""

    def __init__(self) -> None:
        self._data = b""
        self._size = -1

    def feed(self, chunk: bytes) -> bool:
        """Take a chunk, and say whether the answer is whole.

        Raises:
            BenchError: The connection ended, or the answer is no success with a length.
        """
        if not chunk:
            raise BenchError("the server closed a connection")
        self._data += chunk
        if self._size < 0:
            at = self._data.find(b"\r\n\r\n")
            if at < 0:
                return False
            head = self._data[:at]
            if not head.startswith(b"HTTP/1.1 2"):
                raise BenchError(f"the server answered {head[:40].decode('latin-1')}")
            found = _SIZE.search(head)
            if found is None and b"chunked" in head.lower():
                raise BenchError("the server answers in chunks")
            self._size = at + 4 + (int(found[1]) if found else 0)
        return len(self._data) >= self._size

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """Head and body."""
        head, _, body = self._data.partition(b"\r\n\r\n")
        return head, body


def time_reads(connections: Sequence[Connection], uris: Sequence[str], count: int) -> float:
    """Read over all connections at once, one request at a time on each.

    Args:
        connections: Which.
        uris: What, in turn.
        count: How many reads in all.

    Returns:
        The seconds of all.
    """
    share = count // len(connections)
    with selectors.DefaultSelector() as selector:
        for at, one in enumerate(connections):
            texts = [
                one.text(number, "resources/read", {"uri": uris[number % len(uris)]})
                for number in range(at * share, (at + 1) * share)
            ]
            selector.register(one.socket, selectors.EVENT_READ, Reader(one, iter(texts)))
        start = time.perf_counter()
        for key in list(selector.get_map().values()):
            cast("Reader", key.data).send()
        while selector.get_map():
            ready = selector.select(_SECONDS)
            if not ready:
                raise BenchError(f"the server did not answer for {_SECONDS:g} s")
            for key, _ in ready:
                if not cast("Reader", key.data).receive():
                    selector.unregister(key.fileobj)
        return time.perf_counter() - start


class Reader:
    """A connection that sends its next request when the last was answered."""

    def __init__(self, connection: Connection, texts: Iterator[bytes]) -> None:
        self._socket = connection.socket
        self._texts = texts
        self._answer = Answer()

    def send(self) -> bool:
        """Send the next request; False where there is none."""
        text = next(self._texts, None)
        if text is not None:
            self._answer = Answer()
            self._socket.sendall(text)
        return text is not None

    def receive(self) -> bool:
        """Take what came; False once all was answered."""
        return not self._answer.feed(self._socket.recv(_CHUNK)) or self.send()
