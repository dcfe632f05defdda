"""The least a server of skills over HTTP can do: one loop, and answers that are bytes already.

It looks at nothing but the length and the URI of a request, and checks neither.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys


class Bare(asyncio.Protocol):
    """Answers requests that come whole, one after the other."""

    def __init__(self, reads: dict[str, bytes]) -> None:
        self._reads = reads
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        message = json.loads(data.partition(b"\r\n\r\n")[2])
        uri = message.get("params", {}).get("uri")
        body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (
            message.get("id", 0),
            self._reads[uri] if uri else b"{}",
        )
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)


async def main(root: str, port: int) -> None:
    reads: dict[str, bytes] = {}
    for entry in os.scandir(root):
        uri = f"skill://{entry.name}/SKILL.md"
        with open(f"{entry.path}/SKILL.md", encoding="utf-8", newline="") as file:  # noqa: ASYNC230, PTH123
            text = file.read()
        content = {"uri": uri, "mimeType": "text/markdown", "text": text}
        reads[uri] = json.dumps({"contents": [content]}).encode()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Bare(reads), "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
