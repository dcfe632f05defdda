"""Connections to an MCP server over HTTP, thin enough to measure the server and not the client."""

from __future__ import annotations

import os
import re
import selectors
import socket
import subprocess
import time
from typing import TYPE_CHECKING, TypeAlias, cast

from bench.process import BenchError, processor_seconds
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
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_JSON = "application/json"
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

    def resident(self) -> int:
        """Return the memory the process holds now, in bytes.

        Raises:
            BenchError: This system does not report it.
        """
        try:
            with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:  # noqa: PTH123
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError as error:
            raise BenchError(f"the memory of a process cannot be seen here: {error}") from error

    def processor_seconds(self) -> float:
        """Return what the server took of processors so far; see `bench.process`."""
        return processor_seconds(self._process.pid)

    def settle(self) -> None:
        """Wait until the server has imported all that it imports after its start.

        The media type says nothing more than the plain one; the SDK of the server has to see that.
        """
        self.connect(kind="application/json; charset=utf-8").socket.close()

    def connect(
        self, protocol: str = PROTOCOL, kind: str = _JSON, more: Headers = ()
    ) -> Connection:
        """Open a connection, and shake hands on it where the protocol has that.

        Args:
            protocol: Which version to speak.
            kind: The media type to write on bodies.
            more: More headers of each request.

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
        return Connection(one, self._port, protocol, kind, more)


class Connection:
    """A connection that is kept open, with a session of its own where the protocol has sessions.

    Args:
        connected: The socket.
        port: The server's port.
        protocol: The version to speak.
        kind: The media type to write on bodies.
        more: More headers of each request.
    """

    def __init__(
        self, connected: socket.socket, port: int, protocol: str, kind: str, more: Headers
    ) -> None:
        self.socket = connected
        self._modern = protocol == MODERN
        self._headers: Headers = (
            f"Host: 127.0.0.1:{port}",
            "Accept: application/json, text/event-stream",
            f"Content-Type: {kind}",
            f"MCP-Protocol-Version: {protocol}",
            *more,
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
        for key in ("uri", "name"):
            if key in params:
                named += (f"Mcp-Name: {params[key]}",)
        return self._post(request(number, method, {**params, "_meta": _ENVELOPE}), named)

    def ask(self, method: str, params: Mapping[str, object]) -> tuple[bytes, bytes]:
        """Send a request and give the head and the body of the answer."""
        return self._exchange(self.text(1, method, params))

    def call(self, tool: str, message: str) -> bytes:
        """Call a tool that takes a message, and give the body of the answer.

        Raises:
            BenchError: It is an error.
        """
        _, body = self.ask("tools/call", call_of(tool, message))
        _see_that_it_answers(body)
        return body

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
        self._chunked = False

    def feed(self, chunk: bytes) -> bool:
        """Take a chunk, and say whether the answer is whole.

        Raises:
            BenchError: The connection ended, or the answer is not a success.
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
            self._chunked = found is None and b"chunked" in head.lower()
            self._size = at + 4 + (int(found[1]) if found else 0)
        if self._chunked:
            return self._data.endswith(_LAST_CHUNK)
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
    texts = [
        [
            one.text(number, "resources/read", {"uri": uris[number % len(uris)]})
            for number in range(at * share, (at + 1) * share)
        ]
        for at, one in enumerate(connections)
    ]
    return _time(connections, texts, Reader)


def time_calls(connections: Sequence[Connection], tool: str, count: int) -> float:
    """Call a tool over all connections at once, one call at a time on each.

    Args:
        connections: Which.
        tool: A tool that takes a message.
        count: How many calls in all.

    Returns:
        The seconds of all.

    Raises:
        BenchError: A call was not answered, or by an error.
    """
    share = count // len(connections)
    texts = [
        [one.text(number, "tools/call", call_of(tool, "hello")) for number in range(2, share + 2)]
        for one in connections
    ]
    return _time(connections, texts, Caller)


def call_of(tool: str, message: str) -> Mapping[str, object]:
    """Return the parameters of a call of a tool that takes a message."""
    return {"name": tool, "arguments": {"message": message}}


def _time(
    connections: Sequence[Connection], texts: Sequence[Sequence[bytes]], kind: type[Reader]
) -> float:
    with selectors.DefaultSelector() as selector:
        for one, own in zip(connections, texts, strict=True):
            selector.register(one.socket, selectors.EVENT_READ, kind(one, iter(own)))
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
        self.answer = Answer()

    def send(self) -> bool:
        """Send the next request; False where there is none."""
        text = next(self._texts, None)
        if text is not None:
            self.answer = Answer()
            self._socket.sendall(text)
        return text is not None

    def receive(self) -> bool:
        """Take what came; False once all was answered."""
        return not self.answer.feed(self._socket.recv(_CHUNK)) or self.send()


class Caller(Reader):
    """The same, which sees that calls are answered well."""

    def receive(self) -> bool:
        """Take what came; see `Reader.receive`."""
        whole = self.answer.feed(self._socket.recv(_CHUNK))
        if whole:
            _see_that_it_answers(self.answer.parts[1])
        return not whole or self.send()


def _see_that_it_answers(body: bytes) -> None:
    if b'"hello"' not in body and b'"warm"' not in body:
        raise BenchError(f"a call was answered by {body[-200:].decode('utf-8', 'replace')}")
