"""Raw client: HTTP by hand, for what a well-behaved client never does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from random import Random

    from anyio.abc import SocketStream

_SESSION = re.compile(rb"mcp-session-id: *([^\r\n]+)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_ANSWERS_IN = 120.0

_HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class RawSession:
    """A session of the handshake protocols, each request on a connection of its own.

    Args:
        port: Where the server listens on this machine.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = b""

    async def begin(self) -> None:
        """Shake hands."""
        answer = await self._sent(_message("initialize", _HELLO, 1))
        found = _SESSION.search(answer)
        if found is None:
            raise RuntimeError(f"no session was begun: {answer[:200]!r}")
        self._session = found[1].strip()
        await self._sent(_message("notifications/initialized", {}, None))

    async def leave_during(self, agent: str, seconds: float) -> None:
        """Call an agent, and hang up after a while."""
        call = {"name": agent, "arguments": {"message": "too late"}}
        async with await anyio.connect_tcp("127.0.0.1", self._port) as stream:
            await stream.send(self._request(b"POST", _message("tools/call", call, 2)))
            await anyio.sleep(seconds)

    async def end(self) -> None:
        """Notify the server that the session is over."""
        await self._sent(b"", b"DELETE")

    async def _sent(self, body: bytes, method: bytes = b"POST") -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", self._port) as stream:
            await stream.send(self._request(method, body))
            return await _all_of(stream)

    def _request(self, method: bytes, body: bytes) -> bytes:
        session = b"Mcp-Session-Id: %b\r\n" % self._session if self._session else b""
        return _http(method, body, self._port, session)


async def garbage(port: int, draw: Random) -> int | None:
    """Send nonsense of some kind.

    Returns:
        The status of the answer; None where the server hung up.
    """
    bodies = (
        draw.randbytes(300),
        b"{" * 5_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":{},"method":7}',
        b"[]",
        json.dumps(
            _message_of("initialize", {**_HELLO, "protocolVersion": "1900-01-01"}, 1)
        ).encode(),
        json.dumps(_message_of("tools/call", {"name": "\ud800", "arguments": {}}, 1)).encode(),
        b'"' + b"x" * (5 << 20) + b'"',
    )
    sent = draw.randbytes(400) if draw.random() < 0.2 else _http(b"POST", draw.choice(bodies), port)
    answer = b""
    try:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(sent)
            answer = await _all_of(stream)
    except (anyio.BrokenResourceError, OSError):
        return None
    found = _STATUS.match(answer)
    return None if found is None else int(found[1])


async def _all_of(stream: SocketStream) -> bytes:
    found = b""
    with anyio.move_on_after(_ANSWERS_IN):
        try:
            while True:
                found += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass
    return found


def _message(method: str, params: dict[str, Any], number: int | None) -> bytes:
    return json.dumps(_message_of(method, params, number)).encode()


def _message_of(method: str, params: dict[str, Any], number: int | None) -> dict[str, Any]:
    own = {} if number is None else {"id": number}
    return {"jsonrpc": "2.0", **own, "method": method, "params": params}


def _http(method: bytes, body: bytes, port: int, more: bytes = b"") -> bytes:
    return (
        b"%b /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
        b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        b"MCP-Protocol-Version: 2025-11-25\r\nConnection: close\r\n%b"
        b"Content-Length: %d\r\n\r\n%b" % (method, port, more, len(body), body)
    )
