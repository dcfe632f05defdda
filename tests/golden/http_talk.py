"""Talk over HTTP: requests written byte by byte, and answers with their status and headers."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from tests.golden.messages import (
    AGAIN_SECONDS,
    MODERN,
    fits,
    hello,
    is_modern,
    message_of,
    without_overtaken,
)
from tests.golden.stage import verb_of
from tests.golden.values import found_at
from tests.golden.world import change_file
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.golden.stage import Stage, Step
    from tests.golden.values import Values
    from tests.golden.world import ServerProcess

_END = object()
_PATH: Final = "/mcp"
_ACCEPT: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
_LEFT_OUT: Final = frozenset({"date", "content-length", "transfer-encoding"})
"""Headers that say how an answer travels, or when."""
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class HttpTalk:
    """The clients of a server over HTTP; each request has a connection of its own.

    Args:
        stage: What is played.
        server: The process.
        port: Where it listens.
    """

    def __init__(self, stage: Stage, server: ServerProcess, port: int) -> None:
        self._stage = stage
        self._server = server
        self._port = port
        self._number = 0
        self._headers: dict[str, dict[str, str]] = {}
        self._streams: dict[str, Stream] = {}
        self._asked: dict[str, Any] | None = None
        self._verbs: Mapping[str, Callable[[Step], list[Any]]] = {
            "ask": self._ask,
            "tell": self._ask,
            "begin": self._begin,
            "get": self._get,
            "hello": self._hello,
            "answer": self._answer,
            "refuse": self._answer,
            "http": self._http,
            "raw": self._raw,
            "await": self._await,
            "leave": self._leave,
            "signal": self._signal,
            "exit": self._exit,
        }

    def begin(self) -> None:
        """Begin an exchange: with no clients, no streams, and ids of requests from 1."""
        self.leave_all()
        self._number = 0
        self._headers = {}
        self._asked = None

    def play(self, step: Step, values: Values) -> list[Any]:
        """Do a step; returns what was answered."""
        filled: Step = values.filled(step)
        verb = verb_of(filled)
        done = self._verbs.get(verb)
        if done is None:
            change_file(self._server.world, verb, filled[verb])
            return []
        came = done(filled)
        values.keep(step.get("keep", {}), came[-1] if came else None)
        return without_overtaken(came)

    def close(self) -> None:
        """Leave, and end the server."""
        self.leave_all()
        self._server.end()

    def leave_all(self) -> None:
        """Close every stream."""
        while self._streams:
            self._streams.popitem()[1].leave()

    def _ask(self, step: Step) -> list[Any]:
        """Send a message; with `until`, again until the answer has a part."""
        end = time.monotonic() + PATIENCE
        request = self._posted(step)
        while True:
            answer = self._exchange(request)
            if "until" not in step or found_at(answer, step["until"]) is not None:
                return [answer]
            assert time.monotonic() < end, f"{step} was only answered {answer}"
            time.sleep(AGAIN_SECONDS)

    def _begin(self, step: Step) -> list[Any]:
        return self._keep_open(step["as"], Stream(self._port, self._posted(step)))

    def _get(self, step: Step) -> list[Any]:
        head = {"Accept": "text/event-stream", **self._client(step)}
        request = self._request("GET", _PATH, head, b"", step)
        return self._keep_open(step["get"], Stream(self._port, request))

    def _keep_open(self, name: str, stream: Stream) -> list[Any]:
        if name in self._streams:
            self._streams.pop(name).leave()
        self._streams[name] = stream
        return []

    def _http(self, step: Step) -> list[Any]:
        method, path = step["http"].split(" ", 1)
        body = _chunked(step) if "chunks" in step else step.get("body", "").encode()
        return [self._exchange(self._request(method, path, {}, body, step))]

    def _raw(self, step: Step) -> list[Any]:
        return [self._exchange("\r\n".join(step["raw"]).encode("latin-1"))]

    def _await(self, step: Step) -> list[Any]:
        return self._streams[step["in"]].until(step["await"], self._take_request)

    def _leave(self, step: Step) -> list[Any]:
        self._streams.pop(step["leave"]).leave()
        return []

    def _signal(self, step: Step) -> list[Any]:
        self._server.signal(step["signal"])
        return []

    def _exit(self, _: Step) -> list[Any]:
        return [{"exit": self._server.exit_status()}]

    def _hello(self, step: Step) -> list[Any]:
        can = step.get("can", self._stage.can)
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": "initialize"}
        body = json.dumps({**message, "params": hello(step["hello"], can)}).encode()
        answer = self._exchange(self._request("POST", _PATH, _ACCEPT, body, {}))
        version: Any = found_at(answer, "body.result.protocolVersion")
        client = {"Mcp-Session-Id": answer["headers"].get("mcp-session-id", "")}
        if version is not None:
            client["MCP-Protocol-Version"] = version
        self._headers[step.get("as", "")] = client
        note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        noted = self._exchange(self._request("POST", _PATH, {**_ACCEPT, **client}, note, {}))
        return [answer, noted]

    def _answer(self, step: Step) -> list[Any]:
        assert self._asked is not None, "the server asked for nothing"
        verb = verb_of(step)
        key = "result" if verb == "answer" else "error"
        message = {"jsonrpc": "2.0", "id": self._asked["id"], key: step[verb]}
        head = {**_ACCEPT, **self._client(step)}
        return [
            self._exchange(self._request("POST", _PATH, head, json.dumps(message).encode(), step))
        ]

    def _posted(self, step: Step) -> bytes:
        self._number += 1
        message = message_of(step, self._stage, self._number)
        head = {**_ACCEPT, **self._client(step)}
        if is_modern(step, self._stage):
            method: str = message["method"]
            head |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            named = message.get("params", {}).get(_NAMED.get(method, ""))
            if isinstance(named, str):
                head["Mcp-Name"] = named
        return self._request("POST", _PATH, head, json.dumps(message).encode(), step)

    def _client(self, step: Step) -> Mapping[str, str]:
        return self._headers.get(step.get("of", ""), {})

    def _request(
        self, method: str, path: str, head: Mapping[str, str], body: bytes, step: Step
    ) -> bytes:
        """Write a request; `headers` of the step replace others, or take them away with null."""
        changed: Mapping[str, str | None] = step.get("headers", {})
        headers = {"Host": f"127.0.0.1:{self._port}", **head, **changed}
        if method not in {"GET", "HEAD"} and "Transfer-Encoding" not in headers:
            headers.setdefault("Content-Length", str(len(body)))
        lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body

    def _exchange(self, request: bytes) -> dict[str, Any]:
        stream = Stream(self._port, request)
        try:
            return stream.whole()
        finally:
            stream.leave()

    def _take_request(self, message: dict[str, Any]) -> None:
        self._asked = message


class Stream:
    """An answer that comes piece by piece."""

    def __init__(self, port: int, request: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._method = request.split(b" ", 1)[0].decode("latin-1")
        self._came: Queue[Any] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        with suppress(OSError):  # it was refused before it was read; the answer says why
            self._socket.sendall(request)
        self._reader.start()

    def until(
        self, wanted: Any, take_request: Callable[[dict[str, Any]], None] | None = None
    ) -> list[Any]:
        """Take what comes up to a message, or up to `{head: true}` or `{end: true}`.

        Args:
            wanted: What is waited for.
            take_request: Given every request of the server.
        """
        came: list[Any] = []
        while True:
            try:
                item = self._came.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"{wanted!r} never came, only {came}") from None
            if item is _END:
                if wanted == {"end": True}:
                    return [*came, {"end": True}]
                raise AssertionError(f"the stream ended before {wanted!r}, after {came}")
            came.append(item)
            if take_request is not None and "method" in item and "id" in item:
                take_request(item)
            if (wanted == {"head": True} and "status" in item) or fits(item, wanted):
                return came

    def whole(self) -> dict[str, Any]:
        """Take the whole answer as one object: status, headers, and `body` or `events`."""
        head, *rest = self.until({"end": True})
        rest.pop()
        if "body" in head or not rest:
            return head
        return {**head, "events": rest}

    def leave(self) -> None:
        """Close the connection."""
        with suppress(OSError):  # the server has closed it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        response = http.client.HTTPResponse(self._socket, method=self._method)
        try:
            response.begin()
            headers = {
                name.lower(): value
                for name, value in sorted(response.getheaders())
                if name.lower() not in _LEFT_OUT
            }
            head: dict[str, Any] = {"status": response.status, "headers": headers}
            if headers.get("content-type", "").startswith("text/event-stream"):
                self._came.put(head)
                self._read_events(response)
            else:
                self._came.put({**head, **_body(response.read())})
        except (OSError, http.client.HTTPException) as error:
            self._came.put({"broken": type(error).__name__})
        finally:
            response.close()
        self._came.put(_END)

    def _read_events(self, response: http.client.HTTPResponse) -> None:
        event: dict[str, str] = {}
        while line := response.readline():
            name, _, value = line.decode().rstrip("\r\n").partition(": ")
            if name and not line.startswith(b":"):
                event[name] = value
            elif event:
                data = event.pop("data", "")
                more = {
                    key: one for key, one in event.items() if (key, one) != ("event", "message")
                }
                message: dict[str, Any] = json.loads(data) if data else {}
                self._came.put({**message, "sse": more} if more else message)
                event = {}


def _chunked(step: Step) -> bytes:
    """Write a body in chunks, with the lines of `trailers` behind them."""
    pieces = [piece.encode() for piece in step["chunks"]]
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    trailers = [f"{line}\r\n".encode("latin-1") for line in step.get("trailers", ())]
    return b"".join([*chunks, b"0\r\n", *trailers, b"\r\n"])


def _body(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        return {"body": json.loads(data)}
    except ValueError:
        return {"body": data.decode("utf-8", "replace")}
