"""A loopback server that plays a provider from a script, and the answers of two well-known APIs."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias, cast

import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.message import Message
from fast_agent.models.check import Endpoint
from fast_agent.models.model import Delta, ModelRequest
from fast_agent.models.providers.provider import ProviderModel

Json: TypeAlias = dict[str, Any]


@dataclass
class Reply:
    """One scripted answer.

    `chunks` are written one after another; `cut` closes the connection before the announced end;
    `hold` keeps the request open until the server stops or the client goes away.
    """

    chunks: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    hold: bool = False


@dataclass
class Seen:
    path: str
    headers: Mapping[str, str]
    body: Json


class Wire(ThreadingHTTPServer):
    """A server of its own path, which answers nothing else.

    The system gives the port of a stopped server to another one soon. A client of the former that
    tries again would use up the script of the latter; the path distinguishes them.
    """

    daemon_threads = True

    def __init__(self, script: Sequence[Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.path = f"/wire-{secrets.token_hex(8)}"
        self.script = list(script)
        self.seen: list[Seen] = []
        self.holding = threading.Event()
        self.client_gone = threading.Event()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def wire(self) -> Wire:
        assert isinstance(self.server, Wire)
        return self.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        headers = {key.lower(): value for key, value in self.headers.items()}
        path = self.path.removeprefix(self.wire.path)
        if path == self.path or self.wire.closing.is_set():
            self.send_error(421, "the request is for a server that was stopped")
            return
        self.wire.seen.append(Seen(path, headers, cast("Json", json.loads(raw))))
        if not self.wire.script:
            self.send_error(599, "the script is used up")
            return
        reply = self.wire.script.pop(0)
        self.send_response(reply.status)
        length = sum(len(chunk) for chunk in reply.chunks) + (100 if reply.cut else 0)
        self.send_header("content-length", str(length + (1 if reply.hold else 0)))
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in reply.chunks:
            self.wfile.write(chunk)
            self.wfile.flush()
        if reply.hold:
            self._hold()
        if reply.cut or reply.hold:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _hold(self) -> None:
        self.wire.holding.set()
        self.connection.settimeout(0.02)
        while not self.wire.closing.is_set():
            try:
                gone = self.connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                gone = True
            if gone:
                self.wire.client_gone.set()
                return


StartWire: TypeAlias = Callable[..., Wire]


@pytest.fixture
def start_wire() -> Iterator[StartWire]:
    """Start servers that answer from a script, and stop them at the end of the test."""
    started: list[Wire] = []

    def start(*script: Reply) -> Wire:
        server = Wire(script)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.closing.set()
        server.shutdown()
        server.server_close()


class OpenAIWire:
    """Answers as an OpenAI-compatible chat endpoint gives them."""

    @staticmethod
    def reply(data: object, status: int = 200, **headers: str) -> Reply:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply([json.dumps(data).encode()], status, names)

    @classmethod
    def error(cls, status: int, message: str, code: str | None = None, **headers: str) -> Reply:
        body = {"error": {"message": message, "type": "some_error", "code": code}}
        return cls.reply(body, status, **headers)

    @classmethod
    def answer(cls, finish: str = "stop", **message: object) -> Reply:
        choice = {
            "index": 0,
            "finish_reason": finish,
            "message": {"role": "assistant", **message},
        }
        usage = {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4},
        }
        return cls.reply(cls._body("chat.completion", [choice], usage=usage))

    @classmethod
    def stream(
        cls, *deltas: Json, finish: str | None = "stop", cut: bool = False, hold: bool = False
    ) -> Reply:
        chunks = [
            cls._event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas
        ]
        if finish is not None:
            chunks.append(cls._event([{"index": 0, "delta": {}, "finish_reason": finish}]))
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            chunks.append(cls._event([], usage=usage))
            chunks.append(b"data: [DONE]\n\n")
        return Reply(chunks, 200, {"content-type": "text/event-stream"}, cut, hold)

    @classmethod
    def _event(cls, choices: Sequence[object], **more: object) -> bytes:
        return (
            f"data: {json.dumps(cls._body('chat.completion.chunk', choices, **more))}\n\n".encode()
        )

    @staticmethod
    def _body(kind: str, choices: Sequence[object], **more: object) -> Json:
        return {"id": "c1", "object": kind, "created": 1, "model": "m", "choices": choices, **more}

    @staticmethod
    def call(call_id: str, name: str, arguments: str, index: int = 0) -> Json:
        function = {"name": name, "arguments": arguments}
        return {"index": index, "id": call_id, "type": "function", "function": function}


class AnthropicWire:
    """Answers as the Anthropic messages API gives them."""

    @classmethod
    def answer(cls, *content: Json, stop: str = "end_turn") -> Reply:
        return OpenAIWire.reply(cls._message(list(content), stop))

    @classmethod
    def stream(cls, *content: Json, stop: str | None = "end_turn") -> Reply:
        events: list[Json] = [{"type": "message_start", "message": cls._message([], None)}]
        for index, block in enumerate(content):
            start, deltas = cls._pieces(block)
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events.extend(
                {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
            )
            events.append({"type": "content_block_stop", "index": index})
        if stop is not None:
            delta = {"stop_reason": stop, "stop_sequence": None}
            events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
            events.append({"type": "message_stop"})
        chunks = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        headers = {"content-type": "text/event-stream"}
        return Reply([chunk.encode() for chunk in chunks], 200, headers)

    @staticmethod
    def _message(content: list[Json], stop: str | None) -> Json:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-6",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 3,
            },
        }

    @staticmethod
    def _pieces(block: Json) -> tuple[Json, list[Json]]:
        match block["type"]:
            case "text":
                text = str(block["text"])
                halves = (text[: len(text) // 2], text[len(text) // 2 :])
                pieces = [{"type": "text_delta", "text": half} for half in halves]
                return {**block, "text": ""}, pieces
            case "thinking":
                return {**block, "thinking": "", "signature": ""}, [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case _:
                text = json.dumps(block["input"])
                return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]


KEY = "key-that-nobody-may-see"


@dataclass
class Asked:
    """A model on a scripted server, and the waits it asked for."""

    wire: Wire
    model: ProviderModel
    waits: list[float] = field(default_factory=list[float])
    deltas: list[Delta] = field(default_factory=list[Delta])

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.wire.seen]


def ask_of(
    start_wire: StartWire,
    *script: Reply,
    provider: str = "generic",
    path: str = "/v1",
    **options: Any,
) -> Asked:
    wire = start_wire(*script)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    endpoint = Endpoint(provider=provider, model="m", api_key=KEY, base_url=wire.url + path)
    model = ProviderModel(endpoint, sleep=sleep, jitter=lambda: 0.0, **options)
    return Asked(wire, model, waits)


HELLO = ModelRequest("be kind", [Message.user("hello")])


async def failure_of_request(
    asked: Asked, request: ModelRequest = HELLO, *, stream: bool = False
) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asked.model.request(request, asked.deltas.append if stream else None)
    await asked.model.aclose()
    shown: list[str] = [caught.value.message, caught.value.hint or ""]
    chain: BaseException | None = caught.value
    while chain is not None:
        shown.append(str(chain))
        chain = chain.__cause__
    assert not any(KEY in text for text in shown)
    return caught.value
