"""Calls in both directions: requests that are being answered, and our own that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

import anyio
from anyio import CancelScope

from fast_agent.rpc.message import (
    INVALID_REQUEST,
    NOTHING,
    RemoteError,
    RpcError,
    notification_message,
    request_message,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.rpc.message import RequestId, Response
    from fast_agent.text.json_value import JsonObject, JsonValue

GONE: Final = "the client is gone"
_CANCEL_SECONDS: Final = 1.0


class RunningCalls:
    """Requests of the other side that are being answered."""

    def __init__(self) -> None:
        self._scopes: dict[RequestId, CancelScope] = {}
        self._idle = anyio.Event()

    def __len__(self) -> int:
        return len(self._scopes)

    def start(self, request_id: RequestId) -> CancelScope:
        """Return the scope in which a request is to be answered.

        Raises:
            RpcError: Another request with this id is being answered.
        """
        if request_id in self._scopes:
            raise RpcError(INVALID_REQUEST, "a request with this id is running")
        scope = self._scopes[request_id] = CancelScope()
        return scope

    def end(self, request_id: RequestId) -> None:
        """Forget a request that was answered."""
        self._scopes.pop(request_id, None)
        if not self._scopes:
            self._idle.set()

    def cancel(self, request_id: JsonValue) -> None:
        """Cancel a request if it is being answered."""
        found = self._scopes.get(request_id) if isinstance(request_id, (int, str)) else None
        if found is not None:
            found.cancel()

    def cancel_all(self) -> None:
        """Cancel every request."""
        for scope in tuple(self._scopes.values()):
            scope.cancel()

    async def idle(self) -> None:
        """Wait until no request is being answered."""
        while self._scopes:
            self._idle = anyio.Event()
            await self._idle.wait()


@dataclass(slots=True)
class _PendingRequest:
    came: anyio.Event = field(default_factory=anyio.Event)
    result: JsonValue = None
    error: RemoteError | None = None


class PendingRequests:
    """Requests to the other side that have no answer yet.

    Args:
        sent: How many were sent before.
        cancel_method: The notification that cancels a request whose answer is not wanted any more;
            None if there is none.
    """

    def __init__(self, sent: int = 0, cancel_method: str | None = None) -> None:
        self._ids = count(sent + 1)
        self._cancel_method = cancel_method
        self._waiting: dict[RequestId, _PendingRequest] = {}
        self._closed = False

    @property
    def sent(self) -> int:
        """How many were sent; asked once, when no more will be sent."""
        return next(self._ids) - 1

    async def ask(
        self, method: str, params: JsonObject, send: Callable[[bytes], Awaitable[None]]
    ) -> JsonObject:
        """Send a request and wait for its answer.

        Args:
            method: What is asked for.
            params: Parameters.
            send: Sends a message.

        Raises:
            RemoteError: The answer is an error, or there will be none.
        """
        if self._closed:
            raise RemoteError(GONE)
        number = next(self._ids)
        waiting = self._waiting[number] = _PendingRequest()
        try:
            await send(request_message(number, method, params))
            await waiting.came.wait()
        except anyio.get_cancelled_exc_class():
            if self._cancel_method is not None and not self._closed:
                cancelled: JsonObject = {"requestId": number, "reason": "caller cancelled"}
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                    await send(notification_message(self._cancel_method, cancelled))
            raise
        finally:
            del self._waiting[number]
        if waiting.error is not None:
            raise waiting.error
        return waiting.result if isinstance(waiting.result, Mapping) else NOTHING

    def take(self, response: Response) -> None:
        """Take an answer; one to a request that does not wait is dropped."""
        waiting = None if response.id is None else self._waiting.get(response.id)
        if waiting is None:
            return
        if response.error is not None:
            code = response.error.get("code")
            waiting.error = RemoteError(
                str(response.error.get("message") or "the client gave no reason"),
                code if isinstance(code, int) else None,
                response.error.get("data"),
            )
        waiting.result = response.result
        waiting.came.set()

    def close(self) -> None:
        """End the waiting: the other side is gone."""
        self._closed = True
        for waiting in self._waiting.values():
            waiting.error = waiting.error or RemoteError(GONE)
            waiting.came.set()
