"""A model server on loopback that streams Markdown at a rate: prints its port, ends with its input.

It speaks chat completions, and Responses for peers that speak nothing else.

usage: model_server.py TOKENS_PER_SECOND MANY_TOKENS
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE, MANY = float(sys.argv[1]), int(sys.argv[2])
_PROSE = "The card names an agent, its model and its tools; each turn is kept. "
_PART = (
    "## Part {n} of **the answer**\n\n"
    + _PROSE * 4
    + "With `code {n}` and *emphasis*.\n\n- "
    + "\n- ".join([_PROSE] * 4)
    + "\n\n```python\n"
    + "".join(f"def part_{n}(value: int) -> str:\n    return str(value)\n" for n in range(8))
    + "```\n\n| name | value |\n|---|---|\n| a | {n} |\n| b | 2 |\n\n"
)


def _pieces() -> list[str]:
    text, number = "", 0
    while len(text) < MANY * 4:
        number += 1
        text += _PART.replace("{n}", str(number))
    text = text[: MANY * 4]
    return [text[at : at + 4] for at in range(0, len(text), 4)] + ["\n\nTHE-END\n"]


def _paced() -> Iterator[str]:
    started = time.monotonic()
    for index, piece in enumerate(_pieces()):
        time.sleep(max(0.0, started + index / RATE - time.monotonic()))
        yield piece


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with suppress(ConnectionError):  # the client has read enough
            (self._respond if self.path.endswith("/responses") else self._stream)()

    def _stream(self) -> None:
        for piece in _paced():
            self._send({"role": "assistant", "content": piece}, None)
        self._send({}, "stop")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _respond(self) -> None:
        answer = {"id": "r", "object": "response", "created_at": 1, "model": "m"}
        item = {"id": "i", "type": "message", "role": "assistant"}
        none: list[object] = []
        empty = {**item, "status": "in_progress", "content": none}
        self._event(
            "response.created", response={**answer, "status": "in_progress", "output": none}
        )
        self._event("response.output_item.added", output_index=0, item=empty)
        for piece in _paced():
            self._event(
                "response.output_text.delta",
                item_id="i",
                output_index=0,
                content_index=0,
                delta=piece,
            )
        text = {"type": "output_text", "text": "".join(_pieces()), "annotations": none}
        whole = {**item, "status": "completed", "content": [text]}
        usage = {"input_tokens": 1, "output_tokens": MANY, "total_tokens": MANY + 1}
        done = {**answer, "status": "completed", "output": [whole], "usage": usage}
        self._event("response.output_item.done", output_index=0, item=whole)
        self._event("response.completed", response=done)
        self._chunk(b"")

    def _event(self, kind: str, **fields: object) -> None:
        self._chunk(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())

    def _send(self, delta: dict[str, str], reason: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        whole = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        data = json.dumps({**whole, "choices": [choice]})
        self._chunk(f"data: {data}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
