"""The stdio edge: JSON-RPC messages, one a line, over a pair of descriptors, for both eras.

A host starts a stdio server at every launch and waits for it, so this loop imports no SDK and no
event loop, and writes the JSON that the core keeps ready. Answers to requests that came together
are written together.
"""

from __future__ import annotations

import os
from json import JSONDecoder
from threading import Lock
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

from fast_agent.errors import ResourceError
from fast_agent.resources.encoding import NOTHING, encode
from fast_agent.resources.problem import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    RequestRefused,
    error_object,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.resources.service import ResourceService
    from fast_agent.text.json_value import JsonObject, JsonValue

LONGEST_LINE = 4 << 20
"""Most bytes of one message."""

LARGEST_BATCH = 100
"""Most messages of one array, which only protocol 2025-03-26 knows."""

_BATCHED = "2025-03-26"
_CHUNK = 1 << 16
_WRITE_AT = 1 << 18


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no JSON")


_decode = JSONDecoder(parse_constant=_no_constant).decode

RequestId: TypeAlias = "int | str"


class Stopped(BaseException):
    """The loop was asked to end while it waited."""


class StdioServer:
    """Serves one client over two descriptors until the input ends or `stop` is called.

    Args:
        service: Answers.
        input_fd: Where requests come from; read blocking.
        output_fd: Where answers and notifications go; written blocking.
    """

    def __init__(self, service: ResourceService, input_fd: int, output_fd: int) -> None:
        self._service = service
        self._input = input_fd
        self._output = output_fd
        self._lock = Lock()
        self._open = True
        self._waiting = False
        self._stopping = False
        self._session = service.open(self._tell)

    def serve(self) -> None:
        """Answer until the input ends, the client stops reading, or `stop` is called."""
        lines = Lines()
        try:
            while chunk := self._next_chunk():
                self._answer_lines(lines.feed(chunk))
            self._answer_lines(lines.end())
        except Stopped:
            pass
        finally:
            self._end()

    def stop(self) -> None:
        """End the loop; for a signal's handler, which runs in the thread of `serve`.

        Raises:
            Stopped: Always where the loop waits for its client, which ends the wait.
        """
        self._stopping = True
        if self._waiting or not self._writable():
            raise Stopped

    def answer(self, line: bytes | None) -> bytes:
        """Answer one message.

        Args:
            line: The message, or None for one that was too long.

        Returns:
            The answer with its line end, or nothing where none is due.
        """
        if line is None:
            return _failure(None, _refusal(f"a message is longer than {LONGEST_LINE} bytes"))
        try:
            message = cast("JsonValue", _decode(line.decode()))
        except (ValueError, RecursionError):
            return _failure(None, RequestRefused(PARSE_ERROR, "the message is no JSON"))
        if isinstance(message, list):
            return self._batch(message)
        return self._one(message)

    def _next_chunk(self) -> bytes:
        self._waiting = True
        try:
            if self._stopping:
                raise Stopped
            return os.read(self._input, _CHUNK)
        except ConnectionError:  # the input may be a socket
            return b""
        finally:
            self._waiting = False

    def _answer_lines(self, lines: Iterator[bytes | None]) -> None:
        ready: list[bytes] = []
        size = 0
        for line in lines:
            if answer := self.answer(line):
                ready.append(answer)
                size += len(answer)
                if size >= _WRITE_AT:
                    self._write(b"".join(ready))
                    ready.clear()
                    size = 0
            if self._stopping:
                break
        if ready:
            self._write(b"".join(ready))
        if not self._open:
            raise Stopped

    def _batch(self, messages: list[JsonValue]) -> bytes:
        session = self._session
        if session.protocol != _BATCHED:
            return _failure(None, _refusal("a message is one object; arrays are not taken"))
        if not 0 < len(messages) <= LARGEST_BATCH:
            return _failure(None, _refusal(f"an array holds 1 to {LARGEST_BATCH} messages"))
        answers = [answer[:-1] for one in messages if (answer := self._one(one))]
        return b"[" + b",".join(answers) + b"]\n" if answers else b""

    def _one(self, message: JsonValue) -> bytes:
        if not isinstance(message, dict):
            return _failure(None, _refusal("a message is one object"))
        method = message.get("method")
        if method is None and "id" in message and ("result" in message or "error" in message):
            return b""  # an answer, to a question that was never asked
        request_id = message.get("id")
        named = isinstance(request_id, (int, str)) and not isinstance(request_id, bool)
        params = message.get("params")
        if (
            message.get("jsonrpc") != "2.0"
            or not isinstance(method, str)
            or not (params is None or isinstance(params, dict))
            or ("id" in message and not named)
        ):
            return _failure(
                cast("RequestId", request_id) if named else None,
                _refusal("the message is no JSON-RPC 2.0 request or notification of MCP"),
            )
        given: JsonObject = params if isinstance(params, dict) else NOTHING
        if named:
            return self._request(cast("RequestId", request_id), method, given)
        self._service.notice(self._session, method, given)
        return b""

    def _request(self, request_id: RequestId, method: str, params: JsonObject) -> bytes:
        try:
            answer = self._service.answer(self._session, method, params, request_id)
        except ResourceError as problem:
            return _failure(request_id, problem, self._session.era)
        except Exception:  # a task boundary: the server outlives a request it cannot answer
            from logging import getLogger

            getLogger(__name__).exception("could not answer `%s`", method)
            return _failure(request_id, RequestRefused(INTERNAL_ERROR, "internal error"))
        return b"" if answer is None else _success(request_id, answer.json)

    def _tell(self, method: str, params: JsonObject) -> None:
        """Write a notification, from whatever thread has it."""
        message: dict[str, JsonValue] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        self._write(encode(message) + b"\n")

    def _write(self, data: bytes) -> None:
        with self._lock:
            view = memoryview(data)
            try:
                while view and self._open:
                    view = view[os.write(self._output, view) :]
            except OSError:
                self._open = False  # the client has gone; the loop ends at its next step

    def _writable(self) -> bool:
        """Whether a write would not wait, so that one under way ends by itself."""
        from select import select

        try:
            return bool(select((), (self._output,), (), 0)[1])
        except (OSError, ValueError):
            return True

    def _end(self) -> None:
        """End open streams in good order, where the client still reads."""
        last = self._service.close(self._session)
        if self._open and self._writable():
            self._write(b"".join(_success(one, answer.json) for one, answer in last))
        self._open = False


class Lines:
    """Cuts chunks of bytes into lines of bounded length."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Take a chunk and give the lines it ends, without blank ones; None for one too long."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[bytes | None]:
        """Give what was fed since the last line end, unless that is blank."""
        parts, size = self._parts, self._size
        self._parts, self._size = [], 0
        if size > self._longest:
            yield None
        elif line := (parts[0] if len(parts) == 1 else b"".join(parts)).strip():
            yield line

    @property
    def begun(self) -> bytes:
        """What was fed since the last line end."""
        return b"".join(self._parts)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._longest:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)


def serve_stdio(service: ResourceService) -> None:
    """Serve the client that started this process, until its input ends or SIGTERM or SIGINT comes.

    What anything else prints meanwhile goes to standard error, since standard output carries
    messages only.
    """
    import signal

    own_input, own_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    server = StdioServer(service, own_input, own_output)

    def stop(number: int, frame: object) -> None:  # noqa: ARG001
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server.serve()


def _refusal(message: str) -> RequestRefused:
    return RequestRefused(INVALID_REQUEST, message)


def _success(request_id: RequestId, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (_id(request_id), result)


def _failure(request_id: RequestId | None, problem: ResourceError, era: str = "handshake") -> bytes:
    error = encode(error_object(problem, "modern" if era == "modern" else "handshake"))
    name = b"null" if request_id is None else _id(request_id)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (name, error)


def _id(request_id: RequestId) -> bytes:
    return b"%d" % request_id if isinstance(request_id, int) else encode(request_id)
