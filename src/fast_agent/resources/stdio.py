"""The stdio edge: JSON-RPC messages, one a line, over a pair of descriptors, for both eras.

A host starts a stdio server at every launch and waits for it, so this loop imports no SDK and no
event loop, and writes the JSON that the core keeps ready. Answers to requests that came together
are written together.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import error_object
from fast_agent.rpc.message import (
    CHUNK_BYTES,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    MAX_LINE_BYTES,
    InvalidMessageError,
    Lines,
    Request,
    Response,
    RpcError,
    decode,
    error_message,
    message_of,
    notification_message,
    result_message,
    take_stdio,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.resources.service import ResourceService
    from fast_agent.text.json_value import JsonObject, JsonValue

MAX_BATCH = 100
"""Maximum number of messages in an array, which only protocol 2025-03-26 has."""

_BATCHED = "2025-03-26"
_WRITE_AT = 1 << 18


class LoopStopped(BaseException):
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
        self._session = service.open(self._notify)

    def serve(self) -> None:
        """Answer until the input ends, the client stops reading, or `stop` is called."""
        lines = Lines()
        try:
            while chunk := self._next_chunk():
                self._answer_lines(lines.feed(chunk))
            self._answer_lines(lines.end())
        except LoopStopped:
            pass
        finally:
            self._end()

    def stop(self) -> None:
        """End the loop; for a signal's handler, which runs in the thread of `serve`.

        Raises:
            Stopped: Always where the loop waits for its client, which ends the wait.
        """
        self._stopping = True
        if self._waiting or not self._is_writable():
            raise LoopStopped

    def answer(self, line: bytes | None) -> bytes:
        """Answer one message.

        Args:
            line: The message, or None for one that was too long.

        Returns:
            The answer with its line end, or nothing where none is due.
        """
        try:
            if line is None:
                raise too_long(MAX_LINE_BYTES)
            message = decode(line)
            if isinstance(message, list) and self._session.protocol == _BATCHED:
                return self._batch(message)
            return self._answer_one(message)
        except InvalidMessageError as problem:
            return error_message(problem.request_id, problem.wire) + b"\n"

    def _next_chunk(self) -> bytes:
        self._waiting = True
        try:
            if self._stopping:
                raise LoopStopped
            return os.read(self._input, CHUNK_BYTES)
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
            raise LoopStopped

    def _batch(self, messages: list[JsonValue]) -> bytes:
        if not 0 < len(messages) <= MAX_BATCH:
            msg = f"an array holds 1 to {MAX_BATCH} messages"
            raise InvalidMessageError(INVALID_REQUEST, msg)
        answers: list[bytes] = []
        for one in messages:
            try:
                answer = self._answer_one(one)
            except InvalidMessageError as problem:
                answer = error_message(problem.request_id, problem.wire) + b"\n"
            answers.append(answer[:-1])
        answers = [answer for answer in answers if answer]
        return b"[" + b",".join(answers) + b"]\n" if answers else b""

    def _answer_one(self, value: JsonValue) -> bytes:
        message = message_of(value)
        if isinstance(message, Request):
            return self._request(message)
        if not isinstance(message, Response):  # nothing was asked that it could answer
            self._service.notice(self._session, message.method, message.params)
        return b""

    def _request(self, request: Request) -> bytes:
        number, method, params = request
        try:
            answer = self._service.answer(self._session, method, params, number)
        except ResourceError as problem:
            return error_message(number, error_object(problem, self._session.era)) + b"\n"
        except Exception:  # a task boundary: the server outlives a request it cannot answer
            from logging import getLogger

            getLogger(__name__).exception("could not answer `%s`", method)
            error = RpcError(INTERNAL_ERROR, "internal error").wire
            return error_message(number, error) + b"\n"
        return b"" if answer is None else result_message(number, answer.json) + b"\n"

    def _notify(self, method: str, params: JsonObject) -> None:
        """Write a notification, from whatever thread has it."""
        self._write(notification_message(method, params) + b"\n")

    def _write(self, data: bytes) -> None:
        with self._lock:
            view = memoryview(data)
            try:
                while view and self._open:
                    view = view[os.write(self._output, view) :]
            except OSError:
                self._open = False  # the client has gone; the loop ends at its next step

    def _is_writable(self) -> bool:
        """Whether a write would not wait, so that one in progress ends without help."""
        from select import select

        try:
            return bool(select((), (self._output,), (), 0)[1])
        except (OSError, ValueError):
            return True

    def _end(self) -> None:
        """End open streams in good order, where the client still reads."""
        last = self._service.close(self._session)
        if self._open and self._is_writable():
            self._write(b"".join(result_message(one, answer.json) + b"\n" for one, answer in last))
        self._open = False


def serve_stdio(service: ResourceService) -> None:
    """Serve the client that started this process, until its input ends or SIGTERM or SIGINT comes.

    Any other output during that time goes to standard error, since standard output carries
    messages only.
    """
    import signal

    server = StdioServer(service, *take_stdio())

    def stop(number: int, frame: object) -> None:  # noqa: ARG001
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server.serve()
