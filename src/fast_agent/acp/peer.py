"""Peer: JSON-RPC messages in both directions, one a line, over a pair of descriptors."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from json import JSONDecoder
from logging import getLogger
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeAlias, cast

import anyio
from anyio.to_thread import run_sync

from fast_agent.acp.outgoing import Outgoing
from fast_agent.acp.problem import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ClientRefused,
    Refused,
)
from fast_agent.resources.encoding import NOTHING, encode
from fast_agent.resources.stdio import Lines

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

log = getLogger(__name__)

LONGEST_LINE: Final = 32 << 20
"""Most bytes of one message; pictures in prompts are long."""

_CHUNK = 1 << 16
_LAST_SECONDS = 2.0

Work: TypeAlias = Callable[[], Awaitable["JsonObject"]]
RequestId: TypeAlias = "int | str"


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no JSON")


_decode = JSONDecoder(parse_constant=_no_constant).decode


class Side(Protocol):
    """What stands behind a peer."""

    def accept(self, method: str, params: JsonObject) -> Work:
        """Take a request, in the order in which they come.

        Returns:
            What gives its result; run beside other requests.

        Raises:
            Refused: It cannot be answered.
        """
        ...

    def notice(self, method: str, params: JsonObject) -> None:
        """Take a notification."""
        ...


@dataclass(slots=True)
class _Waiting:
    """A request of ours that has no answer yet."""

    came: anyio.Event = field(default_factory=anyio.Event)
    result: JsonValue = None
    refused: ClientRefused | None = None


class Peer:
    """One end of a connection.

    Args:
        input_fd: Where messages come from.
        output_fd: Where messages go; it is made non-blocking.
        begun: The beginning of a message that was read before.
        asked: How many requests the other side was sent before.

    Attributes:
        paused: Whether it reads no more, though the other side is there.
    """

    def __init__(
        self, input_fd: int, output_fd: int, *, begun: bytes = b"", asked: int = 0
    ) -> None:
        self._input = input_fd
        self._outgoing = Outgoing(output_fd, self._hang_up)
        self._lines = Lines(LONGEST_LINE)
        self._begun = begun
        self._reading = anyio.CancelScope()
        self.paused = False
        self._ids = count(asked + 1)
        self._waiting: dict[int, _Waiting] = {}
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._ended = False
        self._requests: anyio.abc.TaskGroup | None = None

    async def serve(self, side: Side) -> None:
        """Answer until the input ends, and cancel what still runs then, or until `pause`."""
        async with anyio.create_task_group() as writing:
            writing.start_soon(self._outgoing.run)
            try:
                async with anyio.create_task_group() as requests:
                    self._requests = requests
                    with self._reading:
                        await self._read(side, requests)
                    if not self.paused:
                        self._hang_up()
                if self.paused:
                    await self._outgoing.flushed()
            finally:
                with anyio.move_on_after(_LAST_SECONDS, shield=True):
                    await self._outgoing.flushed()
                writing.cancel_scope.cancel()

    def pause(self) -> None:
        """Read no more; what was read is answered, and then `serve` ends."""
        self.paused = True
        self._reading.cancel()

    def left(self) -> tuple[bytes, int]:
        """Give what the next one to serve the connection needs: `begun` and `asked`."""
        return self._lines.begun, next(self._ids) - 1

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._outgoing.put(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send_raw(self, message: bytes) -> None:
        """Send a message that is written already, without its line end."""
        self._outgoing.put(message)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the other side and wait for its answer.

        Raises:
            ClientRefused: It answered with an error, or the connection ended.
        """
        if self._ended:
            raise ClientRefused("the client is gone")
        number = next(self._ids)
        waiting = self._waiting[number] = _Waiting()
        self._outgoing.put(
            encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        )
        try:
            await waiting.came.wait()
        finally:
            del self._waiting[number]
        if waiting.refused is not None:
            raise waiting.refused
        result = waiting.result
        return result if isinstance(result, Mapping) else NOTHING

    async def _read(self, side: Side, requests: anyio.abc.TaskGroup) -> None:
        lines, chunk = self._lines, self._begun
        for line in lines.feed(chunk):
            self._take(line, side, requests)
        while chunk := await self._next_chunk():
            for line in lines.feed(chunk):
                self._take(line, side, requests)
        for line in lines.end():
            self._take(line, side, requests)

    async def _next_chunk(self) -> bytes:
        try:
            try:
                await anyio.wait_readable(self._input)
            except PermissionError:  # a plain file, which is always ready
                return await run_sync(os.read, self._input, _CHUNK)
            return os.read(self._input, _CHUNK)
        except ConnectionError:
            return b""

    def _take(self, line: bytes | None, side: Side, requests: anyio.abc.TaskGroup) -> None:
        if line is None:
            msg = f"a message is longer than {LONGEST_LINE:,} bytes"
            self._refuse(None, Refused(INVALID_REQUEST, msg))
            return
        try:
            message = cast("JsonValue", _decode(line.decode()))
        except (ValueError, RecursionError):
            self._refuse(None, Refused(PARSE_ERROR, "the message is no JSON"))
            return
        if not isinstance(message, dict):
            self._refuse(None, Refused(INVALID_REQUEST, "a message is one object"))
            return
        self._take_message(message, side, requests)

    def _take_message(self, message: JsonObject, side: Side, requests: anyio.abc.TaskGroup) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        named = isinstance(number, int | str) and not isinstance(number, bool)
        if method is None and named and ("result" in message or "error" in message):
            self._take_answer(message)
            return
        if (
            message.get("jsonrpc") != "2.0"
            or not isinstance(method, str)
            or not (params is None or isinstance(params, dict))
            or ("id" in message and not named)
        ):
            problem = Refused(INVALID_REQUEST, "the message is no JSON-RPC 2.0 request")
            self._refuse(cast("RequestId", number) if named else None, problem)
            return
        given: JsonObject = params if isinstance(params, dict) else NOTHING
        if named:
            self._begin(cast("RequestId", number), method, given, side, requests)
        elif method == "$/cancel_request":
            self._cancel(given.get("requestId"))
        else:
            try:
                side.notice(method, given)
            except Refused as problem:
                log.warning("`%s`: %s", method, problem.message)

    def _begin(
        self,
        number: RequestId,
        method: str,
        params: JsonObject,
        side: Side,
        requests: anyio.abc.TaskGroup,
    ) -> None:
        if number in self._running:
            self._refuse(number, Refused(INVALID_REQUEST, "a request with this id is running"))
            return
        try:
            work = side.accept(method, params)
        except Refused as problem:
            self._refuse(number, problem)
            return
        scope = self._running[number] = anyio.CancelScope()
        requests.start_soon(self._answer, number, method, work, scope)

    async def _answer(
        self, number: RequestId, method: str, work: Work, scope: anyio.CancelScope
    ) -> None:
        try:
            with scope:
                result = await work()
                answer = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(number), encode(result))
                self._outgoing.put(answer, now=True)
                return
            self._refuse(number, Refused(CANCELLED, "the request was cancelled"))
        except Refused as problem:
            self._refuse(number, problem)
        except Exception:  # a task boundary: the connection outlives a request it cannot answer
            log.exception("could not answer `%s`", method)
            self._refuse(number, Refused(INTERNAL_ERROR, "internal error"))
        finally:
            del self._running[number]

    def _cancel(self, number: JsonValue) -> None:
        scope = self._running.get(number) if isinstance(number, int | str) else None
        if scope is not None:
            scope.cancel()

    def _take_answer(self, message: JsonObject) -> None:
        number = message["id"]
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None:
            return
        error = message.get("error")
        if isinstance(error, Mapping):
            code = error.get("code")
            waiting.refused = ClientRefused(
                str(error.get("message") or "the client gave no reason"),
                code if isinstance(code, int) else None,
            )
        waiting.result = message.get("result")
        waiting.came.set()

    def _refuse(self, number: RequestId | None, problem: Refused) -> None:
        name = b"null" if number is None else _id(number)
        error = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (name, encode(problem.wire))
        self._outgoing.put(error, now=True)

    def _hang_up(self) -> None:
        """Take note that the client is gone: end what it asked for, and who waits for it."""
        self._ended = True
        if self._requests is not None:
            self._requests.cancel_scope.cancel()
        for waiting in self._waiting.values():
            waiting.refused = waiting.refused or ClientRefused("the client is gone")
            waiting.came.set()


def _id(number: RequestId) -> bytes:
    return b"%d" % number if isinstance(number, int) else encode(number)
