"""Peer: JSON-RPC messages in both directions, one a line, over a pair of descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from json import JSONDecoder
from typing import TYPE_CHECKING, Final, NoReturn, cast

import anyio

from fast_agent.acp.incoming import LONGEST_LINE, Incoming
from fast_agent.acp.outgoing import Outgoing
from fast_agent.acp.problem import INVALID_REQUEST, PARSE_ERROR, ClientRefused, Refused
from fast_agent.acp.requests import Requests
from fast_agent.resources.encoding import NOTHING, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.acp.requests import RequestId, Side
    from fast_agent.text.json_value import JsonObject, JsonValue

_LAST_SECONDS: Final = 2.0


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no JSON")


_decode = JSONDecoder(parse_constant=_no_constant).decode


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
        redact: Hides secrets in notifications and errors; None hides none. Requests go as they
            are: a file that is written through the other side is not to be changed.

    Attributes:
        paused: Whether it reads no more, though the other side is there.
    """

    def __init__(
        self,
        input_fd: int,
        output_fd: int,
        *,
        begun: bytes = b"",
        asked: int = 0,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._redact = redact
        self._incoming = Incoming(input_fd, begun=begun)
        self._outgoing = Outgoing(output_fd, self._hang_up)
        self._reading = anyio.CancelScope()
        self.paused = False
        self._ids = count(asked + 1)
        self._waiting: dict[int, _Waiting] = {}
        self._ended = False
        self._tasks: anyio.abc.TaskGroup | None = None

    async def serve(self, side: Side) -> None:
        """Answer until the input ends, and cancel what still runs then, or until `pause`."""
        async with anyio.create_task_group() as writing:
            writing.start_soon(self._outgoing.run)
            try:
                async with anyio.create_task_group() as self._tasks:
                    requests = Requests(side, self._outgoing, self._tasks, self._hidden)
                    with self._reading:
                        await self._incoming.run(partial(self._take, requests))
                    requests.end()
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
        self._incoming.stop()
        self._reading.cancel()

    def left(self) -> tuple[bytes, int]:
        """Give what the next one to serve the connection needs: `begun` and `asked`."""
        return self._incoming.begun, next(self._ids) - 1

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self.send_raw(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send_raw(self, message: bytes) -> None:
        """Send a notification that is written already, without its line end."""
        self._outgoing.put(self._hidden(message))

    def _hidden(self, message: bytes) -> bytes:
        """Return a message with the secrets in its texts hidden."""
        if self._redact is None:
            return message
        text = message.decode("utf-8", "surrogatepass")
        hidden = self._redact(text)
        return message if hidden is text else hidden.encode("utf-8", "surrogatepass")

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

    def _take(self, requests: Requests, line: bytes | None) -> None:
        if line is None:
            msg = f"a message is longer than {LONGEST_LINE:,} bytes"
            requests.refuse(None, Refused(INVALID_REQUEST, msg))
            return
        try:
            message = cast("JsonValue", _decode(line.decode()))
        except (ValueError, RecursionError):
            requests.refuse(None, Refused(PARSE_ERROR, "the message is no JSON"))
            return
        if not isinstance(message, dict):
            requests.refuse(None, Refused(INVALID_REQUEST, "a message is one object"))
            return
        self._take_message(requests, message)

    def _take_message(self, requests: Requests, message: JsonObject) -> None:
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
            requests.refuse(cast("RequestId", number) if named else None, problem)
            return
        given: JsonObject = params if isinstance(params, dict) else NOTHING
        if named:
            requests.begin(cast("RequestId", number), method, given)
        else:
            requests.notice(method, given)

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

    def _hang_up(self) -> None:
        """Take note that the client is gone: end what it asked for, and who waits for it."""
        self._ended = True
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
        for waiting in self._waiting.values():
            waiting.refused = waiting.refused or ClientRefused("the client is gone")
            waiting.came.set()
