"""Backlog: pieces of a streamed answer that wait together are read as one.

A library takes 0.15 to 0.35 ms of a processor for each event of a stream, however short its text.
Where more streams are open than a processor can read so, events wait in the buffers of the system.
Read one by one, they would come ever later; joined, they are read in the time of one. The more
streams are open, the longer each leaves what comes to the system before it is read again; a single
one that keeps up passes unchanged, at most 1.2 ms later.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakSet

import httpx2
from anyio import CancelScope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_KEYS: Final = (
    rb"content|reasoning_content|reasoning"  # chat completions
    rb"|text|thinking|partial_json"  # Messages
    rb"|delta|arguments"  # Responses; calls of both
)
_EVENT: Final = re.compile(
    rb"((?=.*delta)(?!.*audio)(?:event: .*\n)?data: \{.*?\"(?:" + _KEYS + rb')": ?")'
    rb'([^"\\]*(?:\\.[^"\\]*)*)(".*\})'
)
"""An event that adds to an answer: what comes before the piece, the piece, and what comes after."""

_PIECE: Final = re.compile(rb'"(?:' + _KEYS + rb')": ?"[^"]')
_MARKED: Final = re.compile(rb'["\\\n]')
"""What a piece has in it that is not text alone, or is not whole."""

_OF_EACH: Final = re.compile(rb'"(?:sequence_number": ?\d+|obfuscation": ?"[^"]*"),?')
"""Fields that differ from event to event and say nothing of the answer."""

_MOST_BYTES: Final = 1024 * 1024
"""How much of an answer is read ahead."""

_PAUSE_SECONDS: Final = 0.0012
"""How long a stream is left alone after a read, for each stream of the process that is open.

An event costs the libraries, and what is between them and the answer, about 0.8 ms. With this they
take some 0.8 of a processor however many streams are open; at 200 a stream is read four times a
second.
"""

_OPEN: Final = WeakSet["JoinedStream"]()
"""The open streams of this process, which share its processor."""


async def join_backlog(response: httpx2.Response) -> None:
    """Join the events of a response that wait together; a hook for responses of a client."""
    content_type = response.headers.get("content-type", "")
    is_plain = response.headers.get("content-encoding", "identity") == "identity"
    if content_type.startswith("text/event-stream") and is_plain:
        response.stream = JoinedStream(cast("httpx2.AsyncByteStream", response.stream))


class JoinedStream(httpx2.AsyncByteStream):
    """The bytes of an event stream, those that wait together at once.

    Args:
        stream: The bytes as they come.
    """

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._arrived: list[bytes] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._is_between = True
        self._has_waited = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield what has come since the last time, its events joined; again, what is left."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_ahead())
        while self._arrived or not self._reading.done():
            await self._changed.wait()
            data = b"".join(self._arrived)
            self._arrived.clear()
            self._size = 0
            self._changed.clear()
            self._taken.set()
            if data:
                is_between, self._is_between = self._is_between, data.endswith(b"\n\n")
                yield joined(data, is_between=is_between)
        if self._reading.cancelled():
            raise httpx2.StreamClosed
        self._reading.result()

    async def _read_ahead(self) -> None:
        loop = asyncio.get_running_loop()
        _OPEN.add(self)
        try:
            async for data in self._stream:
                self._arrived.append(data)
                self._size += len(data)
                self._changed.set()
                if self._has_waited:  # else more may be there, read from the system together
                    await asyncio.sleep(len(_OPEN) * _PAUSE_SECONDS)
                self._has_waited = False
                loop.call_soon(self._wait)
                if self._size > _MOST_BYTES:
                    self._taken.clear()
                    await self._taken.wait()
        finally:
            _OPEN.discard(self)
            self._changed.set()

    def _wait(self) -> None:
        """Note that the loop went on, and so that the next bytes were waited for."""
        self._has_waited = True

    async def aclose(self) -> None:
        """Close the stream; safe to call twice."""
        if self._reading is not None:
            self._reading.cancel()
            with CancelScope(shield=True):
                await asyncio.wait([self._reading])
            if not self._reading.cancelled():
                self._reading.exception()  # it has no reader any more
        await self._stream.aclose()


def joined(data: bytes, *, is_between: bool = True) -> bytes:
    """Join events that differ in their piece of the answer alone.

    Args:
        data: Bytes of an event stream; the last event may be incomplete.
        is_between: Whether they start with an event, and not in the middle of one.
    """
    *events, rest = data.split(b"\n\n")
    if len(events) < 2 or b"\r" in data:
        return data
    done: list[bytes] = [] if is_between else [events.pop(0)]
    around: tuple[bytes, bytes] | None = None
    start = end = piece = b""
    for event in events:
        if around and event.startswith(start) and event.endswith(end):
            text = event[len(start) : -len(end)]
            if len(event) >= len(start) + len(end) and not _MARKED.search(text):
                piece += text
                done[-1] = start + piece + end
                continue
        found = _EVENT.fullmatch(event)
        if found is None or _PIECE.search(found[3]):
            around = None
            done.append(event)
            continue
        start, end = found[1], found[3]
        before, around = around, (_OF_EACH.sub(b"", start), _OF_EACH.sub(b"", end))
        if before == around:
            piece += found[2]
            done[-1] = start + piece + end
        else:
            piece = found[2]
            done.append(event)
    return b"\n\n".join([*done, rest])
