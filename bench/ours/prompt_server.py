"""A server that keeps prompts by the rules of Anthropic's prompt caching: prints its port.

It writes a prefix at each block that is marked (or at the last block, where the request is marked),
up to four; it reads the longest kept prefix that ends at a mark or at most 20 blocks before one;
shorter prefixes than 1,024 tokens are not kept. Four characters are a token. Every other answer
calls the first tool of the request with a number. `GET /` says what was read and asked so far. It
ends with its input.

usage: prompt_server.py
"""

from __future__ import annotations

import json
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
LEAST, LOOKED_BACK, MARKS = 1_024, 20, 4
kept: set[str] = set()
numbers = count(1)
totals = {"read": 0, "asked": 0}


def blocks_of(body: Json) -> list[Json]:
    """Return all blocks of a request, in the order in which they are kept."""
    found: list[Json] = [dict(tool) for tool in body.get("tools", ())]
    said: list[Json] = [{"role": "system", "content": body.get("system") or []}, *body["messages"]]
    for message in said:
        content = message["content"]
        whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [{"role": message["role"], **block} for block in whole]
    if body.get("cache_control") and found:
        found[-1]["cache_control"] = body["cache_control"]
    return found


def cached(body: Json) -> Json:
    """Keep what a request marks, and return what it uses."""
    blocks = blocks_of(body)
    marked = [at for at, one in enumerate(blocks) if one.pop("cache_control", None)]
    if len(marked) > MARKS:
        raise ValueError(f"{len(marked)} blocks are marked")
    texts = [json.dumps(one, sort_keys=True) for one in blocks]
    sizes = list(accumulate(len(text) // 4 for text in texts))
    digest, names = sha256(), list[str]()
    for text in texts:
        digest.update(text.encode())
        names.append(digest.copy().hexdigest())
    read = 0
    for mark in marked:
        for at in range(mark, max(-1, mark - LOOKED_BACK), -1):
            if names[at] in kept:
                read = max(read, sizes[at])
                break
    last = read
    for mark in marked:
        if sizes[mark] >= LEAST:
            kept.add(names[mark])
            last = max(last, sizes[mark])
    whole = sizes[-1] if sizes else 0
    totals["read"] += read
    totals["asked"] += whole
    return {
        "input_tokens": whole - last,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": last - read,
        "output_tokens": 50,
    }


def answer(body: Json) -> Json:
    """Call a tool in every other request, else say something."""
    asked = next(numbers)
    content: list[Json] = [{"type": "text", "text": f"This is answer {asked}. " * 20}]
    if asked % 2:
        content.append(
            {
                "type": "tool_use",
                "id": f"tu_{asked}",
                "name": body["tools"][0]["name"],
                "input": {"n": asked},
            }
        )
    return {
        "id": f"msg_{asked}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if asked % 2 else "end_turn",
        "stop_sequence": None,
        "usage": cached(body),
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

    def do_GET(self) -> None:
        self._send("application/json", json.dumps(totals))

    def do_POST(self) -> None:
        body = cast("Json", json.loads(self.rfile.read(int(self.headers["content-length"]))))
        message = answer(body)
        if not body.get("stream"):
            self._send("application/json", json.dumps(message))
            return
        events = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in streamed(message))
        self._send("text/event-stream", "".join(events))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def streamed(message: Json) -> Iterator[Json]:
    """Return an answer as the events of its stream."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty: Json = {**block, "text": ""} if is_text else {**block, "input": {}}
        kind, name = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        delta = {"type": kind, name: block["text"] if is_text else json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
