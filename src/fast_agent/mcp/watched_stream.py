"""A transport's incoming stream that tells when it ends, which the SDK's client keeps to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from anyio import EndOfStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from types import TracebackType

    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage


class WatchedStream:
    """The stream, unchanged but for the telling.

    Args:
        inner: The transport's stream.
        on_end: Called when nothing more comes.
    """

    def __init__(
        self, inner: ReadStream[SessionMessage | Exception], on_end: Callable[[], None]
    ) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> Context | None:
        """The context of the sender, where the stream carries one."""
        context: Any = getattr(self._inner, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        """Receive the next message."""
        try:
            return await self._inner.receive()
        except EndOfStream:
            self._on_end()
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)
