"""Count the peer's turns with a tool result of 100 KB each before one fails.

The server refuses a request of more than 128,000 tokens, as providers do; four characters are one.

usage: context.py TURNS
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

WINDOW = 128_000
ANSWER = "so it is"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = body["messages"]
        size = sum(len(json.dumps(one.get("content") or "")) for one in messages) // 4
        if size > WINDOW:
            text = f"This model's maximum context length is {WINDOW} tokens."
            error = {
                "message": text,
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
            self._send(400, "application/json", json.dumps({"error": error}))
            return
        delta: dict[str, Any] = {"role": "assistant", "content": ANSWER}
        if messages[-1]["role"] != "tool":
            called = {"name": body["tools"][0]["function"]["name"], "arguments": "{}"}
            call = {"index": 0, "id": f"c{len(messages)}", "type": "function", "function": called}
            delta = {"role": "assistant", "tool_calls": [call]}
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        usage = {"prompt_tokens": size, "completion_tokens": 10, "total_tokens": size + 10}
        chunks: list[dict[str, Any]] = [
            {"delta": delta, "finish_reason": None},
            {"delta": {}, "finish_reason": reason},
        ]
        whole = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        events = [
            json.dumps({**whole, "choices": [{"index": 0, **one}], "usage": usage})
            for one in chunks
        ]
        text = "".join(f"data: {one}\n\n" for one in [*events, "[DONE]"])
        self._send(200, "text/event-stream", text)

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


async def fetch() -> str:
    """Fetch a long page."""
    return "a line of a long page, as they are\n" * 2_900


async def run(fast: Any, most: int) -> int:
    """Return how many turns there were before one failed."""
    async with fast.run() as app:
        for number in range(most):
            try:
                said = await app.reader.send(f"question {number}")
            except Exception as error:  # noqa: BLE001 (whatever it raises, the turn failed)
                print(error, file=sys.stderr)
                return number
            if ANSWER not in said:
                print(said, file=sys.stderr)
                return number
    return most


def main(most: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    Path("fastagent.config.yaml").write_text(f"generic: {{base_url: '{address}', api_key: none}}\n")
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)

    async def nothing() -> None:
        pass

    add = fast.agent("reader", instruction="be brief", model="generic.m", function_tools=[fetch])
    add(nothing)
    print(json.dumps({"turns": asyncio.run(run(fast, most))}))


main(int(sys.argv[1]))
