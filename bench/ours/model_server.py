"""A model server on loopback that streams Markdown at a rate: prints its port, ends with its input.

usage: model_server.py TOKENS_PER_SECOND MANY_TOKENS
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
            self._stream()

    def _stream(self) -> None:
        started = time.monotonic()
        for index, piece in enumerate(_pieces()):
            time.sleep(max(0.0, started + index / RATE - time.monotonic()))
            self._send({"role": "assistant", "content": piece}, None)
        self._send({}, "stop")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

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
