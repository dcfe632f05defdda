"""A peer: one end of a connection over a pair of descriptors, with requests in both directions.

Below it: what reads lines and writes them in the event loop, and the tasks that answer.
"""

from __future__ import annotations

import os
from asyncio import CancelledError, get_running_loop
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import anyio
from anyio.to_thread import run_sync

from fast_agent.rpc.calls import PendingRequests, RunningCalls
from fast_agent.rpc.message import (
    CHUNK_BYTES,
    INTERNAL_ERROR,
    MAX_LINE_BYTES,
    InvalidMessageError,
    Lines,
    Request,
    Response,
    RpcError,
    encode,
    error_message,
    notification_message,
    read_message,
    result_message,
    too_long,
)

if TYPE_CHECKING:
    from asyncio import Future

    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from fast_agent.rpc.message import RequestId
    from fast_agent.text.json_value import JsonObject

log = getLogger(__name__)

Result: TypeAlias = "JsonObject | bytes | None"
"""A result, as data or as JSON; None leaves the request without an answer."""

Work: TypeAlias = Callable[[], Awaitable[Result]]

MAX_UNREAD_BYTES: Final = 64 << 20
"""Maximum size of what waits to be read; beyond it, the other side counts as gone."""

FULL_BYTES: Final = 1 << 20
"""From which size on the writer is full: what can wait should."""

_CANCEL_GRACE_SECONDS: Final = 2.0
_MAX_IDLE: Final = 8

Job: TypeAlias = Callable[[], Awaitable[None]]


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
        announces: Whether the other side is notified when a request of ours is cancelled.
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
                with anyio.move_on_after(_CANCEL_GRACE_SECONDS, shield=True):
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


class LineReader:
    """Reads lines from a descriptor.

    Bytes are read in a callback of the event loop that stays registered: registering it again for
    each message costs more than handling one. Lines are handled in a task, because what they start
    starts tasks, and in a callback anyio does not know its library under `asyncio.run`.

    Args:
        descriptor: Where from.
        max_bytes: Maximum size of a line.
        begun: The start of a line that was read before.
        writer: Where answers go: nothing is read while it is full; None reads all the same.
    """

    def __init__(
        self,
        descriptor: int,
        max_bytes: int,
        *,
        begun: bytes = b"",
        writer: LineWriter | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._chunks = [begun]
        self._lines = Lines(max_bytes)
        self._writer = writer
        self._waiter: Future[None] | None = None
        self._watched = False
        """Whether the event loop watches the descriptor while there is room for answers."""
        self._over = False
        self._problem: OSError | None = None

    @property
    def begun(self) -> bytes:
        """What was read and not handled: the start of a line whose end did not come."""
        return b"".join((self._lines.begun, *self._chunks))

    async def run(self, take: Callable[[bytes | None], None]) -> None:
        """Handle lines until the input ends or this is cancelled.

        Args:
            take: Called for each line; None is one that was too long.

        Raises:
            OSError: The descriptor cannot be read.
        """
        loop = get_running_loop()
        try:
            loop.add_reader(self._descriptor, self._read)
        except PermissionError:  # a regular file, which is always ready
            await self._take_all(take)
            while chunk := await run_sync(os.read, self._descriptor, CHUNK_BYTES):
                self._chunks.append(chunk)
                await self._take_all(take)
        else:
            self._watched = True
            try:
                await self._take_all(take)
                while not self._over:
                    self._waiter = loop.create_future()
                    await self._waiter
                    await self._take_all(take)
            finally:
                self.stop()
        if self._problem is not None:
            raise self._problem
        for line in self._lines.end():
            take(line)

    def stop(self) -> None:
        """Read nothing more, unless the descriptor is a regular file."""
        self._watched = False
        get_running_loop().remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:  # another process took it
            return
        except ConnectionError:
            chunk = b""
        except OSError as error:
            chunk, self._problem = b"", error
        if chunk:
            self._chunks.append(chunk)
        else:
            self._over = True
            self.stop()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _take_all(self, take: Callable[[bytes | None], None]) -> None:
        while self._chunks:
            for line in self._lines.feed(self._chunks.pop(0)):
                take(line)
            if self._writer is not None and self._writer.full and not self._over:
                await self._wait(self._writer)

    async def _wait(self, writer: LineWriter) -> None:
        """Read nothing while the other side does not: what it sends waits in its pipe."""
        loop = get_running_loop()
        loop.remove_reader(self._descriptor)
        while writer.full:
            await writer.room()
        if self._watched:
            loop.add_reader(self._descriptor, self._read)


class LineWriter:
    """Writes messages to a descriptor, one a line, without keeping anybody waiting.

    Args:
        descriptor: Where to; it is made non-blocking.
        lost: Called once when the other side does not read any more.
    """

    def __init__(self, descriptor: int, lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._queue: list[bytes] = []
        self._rest = memoryview(b"")
        self._size = 0
        self._more = anyio.Event()
        self._all_read = anyio.Event()
        self._room = anyio.Event()
        self._soon = False
        self._gone = False

    @property
    def full(self) -> bool:
        """Whether much waits to be read."""
        return self._size > FULL_BYTES

    async def room(self) -> None:
        """Wait until more was read; the writer may still be full then."""
        if self._room.is_set():
            self._room = anyio.Event()  # anyio's events cannot be reset
        await self._room.wait()

    def put(self, message: bytes, *, now: bool = False) -> None:
        """Send a message.

        Args:
            message: The message, without its line end.
            now: Write it at once, with those before it, as far as that needs no waiting; else it is
                written soon, together with others.
        """
        if self._gone:
            return
        self._queue.append(message)
        self._size += len(message) + 1
        if self._size > MAX_UNREAD_BYTES:
            log.error("the client does not read; %d bytes wait for it", self._size)
            self._lose()
        elif now:
            self._push_on()
        elif not self._soon:
            self._soon = True
            get_running_loop().call_soon(self._push_soon)

    async def run(self) -> None:
        """Write what is put, until this is cancelled or the other side does not read any more."""
        blocking = os.get_blocking(self._descriptor)
        os.set_blocking(self._descriptor, False)
        try:
            while not self._gone:
                await self._more.wait()
                self._more = anyio.Event()
                self._push()
                while self._size:
                    await anyio.wait_writable(self._descriptor)
                    self._push()
        finally:
            self._gone = True  # what is put from now on may find the descriptor closed
            # A terminal would stay so for the program that is started in it next.
            os.set_blocking(self._descriptor, blocking)

    async def flushed(self) -> None:
        """Wait until everything is written, or the other side does not read any more."""
        while self._size:
            self._all_read = anyio.Event()
            await self._all_read.wait()

    def _push_soon(self) -> None:
        self._soon = False
        if self._size:
            self._push_on()

    def _push_on(self) -> None:
        """Write what is taken now; `run` writes the rest."""
        self._push()
        if self._size:
            self._more.set()

    def _push(self) -> None:
        """Write as much as is taken without waiting."""
        try:
            while self._size:
                if not self._rest:
                    self._rest = memoryview(b"\n".join((*self._queue, b"")))
                    self._queue.clear()
                written = os.write(self._descriptor, self._rest)
                self._rest = self._rest[written:]
                self._size -= written
                self._room.set()
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        self._all_read.set()

    def _lose(self) -> None:
        self._gone = True
        self._queue.clear()
        self._rest = memoryview(b"")
        self._size = 0
        self._all_read.set()
        self._room.set()
        self._lost()


class Workers:
    """Runs jobs concurrently, each as if in a separate task.

    Args:
        tasks: Where the tasks run.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._idle: list[Future[Job | None]] = []
        self._ending = False

    def do(self, job: Job) -> None:
        """Start a job soon; it must not raise."""
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(job)
                return
        self._tasks.start_soon(self._work, job)

    def end(self) -> None:
        """End every task once it is idle."""
        self._ending = True
        for waiting in self._idle:
            if not waiting.done():
                waiting.set_result(None)
        self._idle.clear()

    async def _work(self, job: Job | None) -> None:
        clean = copy_context()
        while job is not None:
            await job()
            # What a job leaves in its context is not for the next one to see.
            if self._ending or len(self._idle) >= _MAX_IDLE or copy_context() != clean:
                return
            job = await self._next()

    async def _next(self) -> Job | None:
        waiting: Future[Job | None] = get_running_loop().create_future()
        self._idle.append(waiting)
        try:
            return await waiting
        except CancelledError:
            job = None if waiting.cancelled() else waiting.result()
            if job is not None:  # it was given just now, and hears itself that it is cancelled
                await job()
            raise
