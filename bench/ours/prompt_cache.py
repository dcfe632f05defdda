"""Hold a conversation over a server that keeps prompts by the rules of Anthropic's prompt caching.

The server writes a prefix at each block that is marked (or at the last block, where the request is
marked), up to four; it reads the longest kept prefix that ends at a mark or at most 20 blocks
before one; shorter prefixes than 1,024 tokens are not kept. Four characters are a token.

usage: prompt_cache.py TURNS
"""

from __future__ import annotations

import json
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate, count
from pathlib import Path
from typing import Any, cast

import anyio

from fast_agent import FastAgent

Json = dict[str, Any]
LEAST, LOOKED_BACK, MARKS = 1_024, 20, 4
kept: set[str] = set()
numbers = count(1)


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
            {"type": "tool_use", "id": f"tu_{asked}", "name": "look_up", "input": {"n": asked}}
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

    def do_POST(self) -> None:
        body = cast("Json", json.loads(self.rfile.read(int(self.headers["content-length"]))))
        data = json.dumps(answer(body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def look_up(n: int) -> str:
    """Look something up.

    Args:
        n: What is looked up.
    """
    return f"Row {n} of the table. " * 40


async def main(turns: int) -> None:
    fast = FastAgent("bench", config_path="fast-agent.yaml")
    rules = "".join(f"Rule {number}: be brief and exact. " for number in range(100))
    model, params = "anthropic.claude-sonnet-4-6", {"max_tokens": 1000}
    fast.agent("ann", rules, model=model, function_tools=[look_up], request_params=params)
    async with fast.run() as app:
        agent = app["ann"]
        for number in range(turns):
            await agent.send(f"Question {number}: what is in the next row?")
        used = agent.usage
    print(json.dumps({"share": 100 * used.cache_read_tokens / used.input_tokens}))


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    Path("fast-agent.yaml").write_text(f"anthropic: {{base_url: '{address}', api_key: none}}\n")
    anyio.run(main, int(sys.argv[1]))
