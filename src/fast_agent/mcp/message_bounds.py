"""Bounds of one message of a server: its bytes, its values, the entries of its lists.

The SDK parses a message as a whole, and a value costs it some 300 bytes, however short it was on
the wire: a page of 200,000 tools took 1.5 GB. So a message is bounded as bytes, before the SDK.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from typing import TYPE_CHECKING, Final, cast

import httpx2

from fast_agent.mcp.content import one_line
from fast_agent.mcp.listing import ITEM_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

MESSAGE_LIMIT: Final = 64 * 1024 * 1024
"""Longest message a server may send, in bytes."""

VALUE_LIMIT: Final = 4_000_000
"""Most JSON values a message may be sent with."""

KEPT_LIMIT: Final = 1_000_000
"""Most JSON values of a message that are left to the SDK, once its lists are cut."""

ENCODINGS: Final = "gzip"
"""What a server may compress its answers with, as an `Accept-Encoding` header says it."""

_CHECKED_VALUES: Final = 100_000
_LISTS: Final = ("tools", "resources", "resourceTemplates", "prompts", "skills")
_PIECE: Final = 1 << 20
_ZLIB_OR_GZIP: Final = 47
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_MAX_END: Final = 4

_log = logging.getLogger(__name__)


def values_of(data: bytes) -> int:
    """Count the JSON values of a text, or more: separators in its strings count as well."""
    return data.count(b",") + data.count(b"{") + data.count(b"[") + 1


class MessageBounds:
    """Bounds the messages of one server.

    Args:
        server_name: The server, for warnings.
    """

    def __init__(self, server_name: str) -> None:
        self._server_name = server_name
        self._cut: set[str] = set()

    def apply(self, data: bytes) -> bytes:
        """Return a message with its lists cut to `ITEM_LIMIT` entries; short ones as they are.

        Raises:
            ValueError: It has too many bytes or values.
        """
        if len(data) > MESSAGE_LIMIT:
            raise ValueError(f"it has over {MESSAGE_LIMIT:,} bytes")
        values = values_of(data)
        if values <= _CHECKED_VALUES:
            return data
        if values > VALUE_LIMIT:
            raise ValueError(f"it has over {VALUE_LIMIT:,} values")
        cut = self._with_lists_cut(data)
        if values_of(cut) > KEPT_LIMIT:
            raise ValueError(f"it has over {KEPT_LIMIT:,} values")
        return cut

    def _with_lists_cut(self, data: bytes) -> bytes:
        try:
            message = cast("object", json.loads(data))
        except (ValueError, RecursionError):
            return data  # the SDK says what is wrong
        result = cast("dict[str, object]", message).get("result") if _is_object(message) else None
        if not _is_object(result):
            return data
        lists = cast("dict[str, list[object]]", result)
        long = [key for key in _LISTS if _is_long(lists.get(key))]
        for key in long:
            self._warn(key, len(lists[key]))
            del lists[key][ITEM_LIMIT:]
        return json.dumps(message).encode() if long else data

    def _warn(self, key: str, count: int) -> None:
        if key not in self._cut:
            self._cut.add(key)
            _log.warning(
                "server `%s` lists %s %s on one page; the first %s are used",
                self._server_name,
                f"{count:,}",
                key,
                f"{ITEM_LIMIT:,}",
            )

    async def apply_to_response(self, response: httpx2.Response) -> None:
        """Bound the body of an HTTP answer before it is read: an `httpx2` hook for responses."""
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            encoding = response.headers.pop("content-encoding", "").strip().lower()
            kind = response.headers.get("content-type", "").lower()
            is_events = kind.startswith("text/event-stream")
            response.stream = _BoundedBody(stream, encoding, self, is_events=is_events)


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of an HTTP answer, decompressed: one message, or events that hold one each."""

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        encoding: str,
        bounds: MessageBounds,
        *,
        is_events: bool,
    ) -> None:
        self._body = body
        self._encoding = encoding
        self._bounds = bounds
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._events() if self._is_events else self._bounded_body()
        try:
            async for piece in pieces:
                yield piece
        except (ValueError, zlib.error) as problem:
            # For these two the SDK fails the one request; any other error ends the whole session.
            error = httpx2.SSEError if self._is_events else httpx2.StreamError
            raise error(f"the answer cannot be read: {problem}") from None

    async def _bounded_body(self) -> AsyncGenerator[bytes]:
        held = bytearray()
        async for piece in self._decompressed():
            held += piece
            if len(held) > MESSAGE_LIMIT:
                break
        yield self._bounds.apply(bytes(held))

    async def _events(self) -> AsyncGenerator[bytes]:
        """Yield event by event; the reader makes nothing of a part of one either."""
        held = bytearray()
        async for piece in self._decompressed():
            start = max(0, len(held) - _MAX_END)
            held += piece
            done = 0
            for end in _EVENT_END.finditer(held, start):
                yield self._event(bytes(held[done : end.end()]))
                done = end.end()
            del held[:done]
            if len(held) > MESSAGE_LIMIT:
                raise ValueError(f"it has over {MESSAGE_LIMIT:,} bytes")
        if held:
            yield self._event(bytes(held))

    def _event(self, event: bytes) -> bytes:
        if values_of(event) <= _CHECKED_VALUES:
            return event
        lines = [line for line in _LINE_END.split(event) if line]
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        others = [line for line in lines if not line.startswith(b"data:")]
        return b"\n".join([*others, b"data: " + self._bounds.apply(b"\n".join(data)), b"", b""])

    async def _decompressed(self) -> AsyncGenerator[bytes]:
        if self._encoding not in _COMPRESSED:
            if self._encoding not in {"", "identity"}:
                raise ValueError(f"it is compressed by `{one_line(self._encoding, 40)}`")
            async for piece in self._body:
                yield piece
            return
        decoder = zlib.decompressobj(_ZLIB_OR_GZIP)
        async for piece in self._body:
            rest = piece
            # Some output may be left when all input is taken, so the end is an empty output.
            while decompressed := decoder.decompress(rest, _PIECE):
                yield decompressed
                rest = decoder.unconsumed_tail

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_long(value: object) -> bool:
    return isinstance(value, list) and len(cast("list[object]", value)) > ITEM_LIMIT
