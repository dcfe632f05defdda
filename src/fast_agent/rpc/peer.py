"""A peer: one end of a connection over a pair of descriptors, with requests in both directions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio

from fast_agent.rpc.calls import PendingRequests, RunningCalls
from fast_agent.rpc.encoding import encode
from fast_agent.rpc.line_reader import LineReader
from fast_agent.rpc.line_writer import LineWriter
from fast_agent.rpc.lines import MAX_LINE_BYTES, too_long
from fast_agent.rpc.message import (
    INTERNAL_ERROR,
    InvalidMessageError,
    Request,
    Response,
    RpcError,
    error_message,
    notification_message,
    read_message,
    result_message,
)
from fast_agent.rpc.workers import Workers

if TYPE_CHECKING:
    from anyio import CancelScope

    from fast_agent.rpc.message import RequestId
    from fast_agent.text.json_value import JsonObject

log = getLogger(__name__)

Result: TypeAlias = "JsonObject | bytes | None"
"""A result, as data or as JSON; None leaves the request without an answer."""

Work: TypeAlias = Callable[[], Awaitable[Result]]

_LAST_SECONDS: Final = 2.0


class Side(Protocol):
    """What answers behind a peer."""

    def accept(self, request: Request, scope: CancelScope) -> Work:
        """Accept a request, in the order in which requests arrive.

        Args:
            request: The request.
            scope: In which the work runs; if it is cancelled, `cancelled` answers.

        Returns:
            What returns the result; it runs concurrently with other requests.

        Raises:
            RpcError: The request cannot be answered.
        """
        ...

    def cancelled(self, request: Request) -> Result:
        """Return the result of a request that was cancelled.

        Raises:
            RpcError: There is none.
        """
        ...

    def notice(self, method: str, params: JsonObject) -> None:
        """Handle a notification.

        Raises:
            RpcError: It is wrong, which is logged.
        """
        ...


class Peer:
    """One end of a connection.

    Args:
        input_fd: Where messages are read.
        output_fd: Where messages are written; it is made non-blocking.
        cancel_method: The notification by which either side cancels a request.
        max_bytes: Maximum size of a message.
        begun: The start of a message that was read before.
        asked: How many requests the other side was sent before.
        redact: Hides secrets in notifications, results and errors; None hides none. Requests go as
            they are: a file that is written through the other side must not be changed.
        announces: Whether the other side is told that a request of ours is cancelled.
        waits: Whether nothing is read while the other side does not read.

    Attributes:
        calls: Requests of the other side that are being answered.
        paused: Whether nothing more is read, though the other side is there.
    """

    def __init__(
        self,
        input_fd: int,
        output_fd: int,
        *,
        cancel_method: str,
        max_bytes: int = MAX_LINE_BYTES,
        begun: bytes = b"",
        asked: int = 0,
        redact: Callable[[str], str] | None = None,
        announces: bool = False,
        waits: bool = False,
    ) -> None:
        self._redact = redact
        self._cancel_method = cancel_method
        self._max_bytes = max_bytes
        self._writer = LineWriter(output_fd, self._hang_up)
        backed_up = self._writer if waits else None
        self._reader = LineReader(input_fd, max_bytes, begun=begun, writer=backed_up)
        self._reading = anyio.CancelScope()
        self._pending = PendingRequests(asked, cancel_method if announces else None)
        self._tasks: anyio.abc.TaskGroup | None = None
        self.calls = RunningCalls()
        self.paused = False

    async def serve(self, side: Side, drain: Callable[[], Awaitable[None]] | None = None) -> None:
        """Answer until the input ends or `pause` or `stop` is called.

        Args:
            side: Answers.
            drain: Awaited at the end, before requests that are still being answered are
                cancelled; None cancels them at once.
        """
        async with anyio.create_task_group() as writing:
            writing.start_soon(self._writer.run)
            try:
                async with anyio.create_task_group() as self._tasks:
                    workers = Workers(self._tasks)
                    with self._reading:
                        await self._reader.run(partial(self._take, side, workers))
                    workers.end()
                    if not self.paused:
                        self._pending.close()
                        if drain is not None:
                            await drain()
                        self._hang_up()
                if self.paused:
                    await self._writer.flushed()
            finally:
                with anyio.move_on_after(_LAST_SECONDS, shield=True):
                    await self._writer.flushed()
                writing.cancel_scope.cancel()

    def stop(self) -> None:
        """Read no more, as if the input had ended."""
        self._reading.cancel()

    def pause(self) -> None:
        """Read no more; what was read is answered, and then `serve` returns."""
        self.paused = True
        self._reader.stop()
        self._reading.cancel()

    def left(self) -> tuple[bytes, int]:
        """Return what the next one to serve the connection needs: `begun` and `asked`."""
        return self._reader.begun, self._pending.sent

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self.send_raw(notification_message(method, params))

    def send_raw(self, message: bytes) -> None:
        """Send a notification that is written already, without its line end."""
        self._writer.put(self._hidden(message))

    async def room(self) -> None:
        """Wait while much is unread."""
        while self._writer.full:
            await self._writer.room()

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and wait for its answer.

        Raises:
            RemoteError: The answer is an error, or the connection ended.
        """
        return await self._pending.ask(method, params, self._put)

    async def _put(self, message: bytes) -> None:
        self._writer.put(message)

    def _hidden(self, message: bytes) -> bytes:
        """Return a message with the secrets in its texts hidden."""
        if self._redact is None:
            return message
        text = message.decode("utf-8", "surrogatepass")
        hidden = self._redact(text)
        return message if hidden is text else hidden.encode("utf-8", "surrogatepass")

    def _take(self, side: Side, workers: Workers, line: bytes | None) -> None:
        try:
            if line is None:
                raise too_long(self._max_bytes)
            message = read_message(line)
        except InvalidMessageError as problem:
            self._refuse(problem.request_id, problem)
            return
        if isinstance(message, Request):
            self._start(side, workers, message)
        elif isinstance(message, Response):
            self._pending.take(message)
        else:
            self._notice(side, message.method, message.params)

    def _notice(self, side: Side, method: str, params: JsonObject) -> None:
        if method == self._cancel_method:
            self.calls.cancel(params.get("requestId"))
        try:
            side.notice(method, params)
        except RpcError as problem:
            log.warning("`%s`: %s", method, problem.message)

    def _start(self, side: Side, workers: Workers, request: Request) -> None:
        try:
            scope = self.calls.start(request.id)
        except RpcError as problem:
            self._refuse(request.id, problem)
            return
        try:
            work = side.accept(request, scope)
        except RpcError as problem:
            self.calls.end(request.id)
            self._refuse(request.id, problem)
            return
        workers.do(partial(self._answer, side, request, work, scope))

    async def _answer(self, side: Side, request: Request, work: Work, scope: CancelScope) -> None:
        try:
            result: Result = None
            with scope:
                while self._writer.full:
                    await self._writer.room()
                result = await work()
            if scope.cancelled_caught:
                result = side.cancelled(request)
            if result is not None:
                json = result if isinstance(result, bytes) else encode(result)
                self._writer.put(self._hidden(result_message(request.id, json)), now=True)
        except RpcError as problem:
            self._refuse(request.id, problem)
        except Exception:  # a task boundary: the connection outlives a request it cannot answer
            log.exception("could not answer `%s`", request.method)
            self._refuse(request.id, RpcError(INTERNAL_ERROR, "internal error"))
        finally:
            self.calls.end(request.id)

    def _refuse(self, request_id: RequestId | None, problem: RpcError) -> None:
        self._writer.put(self._hidden(error_message(request_id, problem.wire)), now=True)

    def _hang_up(self) -> None:
        """End what the other side asked for, and the waiting for its answers."""
        self._pending.close()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
