"""Read many streams of tokens at once, by agents or by the provider's SDK alone.

Each token is the time at which the server sent it, so that its delay is known on arrival.

usage: streams.py ours|sdk CONVERSATIONS TOKENS_PER_SECOND TOKENS
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import time
from statistics import quantiles
from typing import TYPE_CHECKING

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from multiprocessing.connection import Connection

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_START = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def _event(delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + json.dumps({**_START, "choices": [choice]}).encode() + b"\n\n"


def serve(port: Connection, rate: float, tokens: int) -> None:
    """Stream tokens to every request, in a process of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(_HEAD)
            start = time.monotonic()
            for number in range(tokens):
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                writer.write(_event({"content": f"{time.monotonic():.6f} "}, None))
            writer.write(_event({}, "stop") + b"data: [DONE]\n\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def read(pieces: AsyncIterator[str]) -> list[float]:
    """Return the delay of each token but the first ones, in milliseconds."""
    delays: list[float] = []
    text = ""
    async for piece in pieces:
        now = time.monotonic()
        text += piece
        *whole, text = text.split(" ")
        delays.extend((now - float(sent)) * 1e3 for sent in whole)
    return delays


async def measure(
    stream: Callable[[int], Coroutine[object, object, list[float]]],
    many: int,
    rate: float,
    tokens: int,
) -> dict[str, float]:
    """Read all streams at once.

    Returns:
        The processors it takes at this rate, and what 99 of 100 tokens take at most, in
        milliseconds. The share is that of the work, so that a busy machine does not lessen it.
    """
    await stream(0)  # connects, imports and builds what only the first request needs
    worked = time.process_time()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stream(number)) for number in range(many)]
    worked = time.process_time() - worked
    delays = [delay for task in tasks for delay in task.result()]
    if len(delays) != many * tokens:
        sys.exit(f"{len(delays)} tokens came, not {many * tokens}")
    return {"cores": worked / tokens * rate, "late": quantiles(delays, n=100)[-1]}


async def by_agents(many: int, rate: float, tokens: int) -> dict[str, float]:
    """Measure conversations of one agent."""
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("ann", "Be brief.", model="generic.m", default=True)
    async with fast.run() as app:

        async def stream(_number: int) -> list[float]:
            conversation = app.new_conversation()
            try:
                return await read(app.agent("ann", conversation).stream_text("go on"))
            finally:
                await conversation.aclose()

        return await measure(stream, many, rate, tokens)


async def by_sdk(address: str, many: int, rate: float, tokens: int) -> dict[str, float]:
    """Measure requests of the provider's SDK alone."""
    async with AsyncOpenAI(base_url=address, api_key="none") as client:

        async def pieces() -> AsyncIterator[str]:
            asked = ChatCompletionUserMessageParam(role="user", content="go on")
            made = client.chat.completions.create(model="m", messages=[asked], stream=True)
            async for chunk in await made:
                if chunk.choices and chunk.choices[0].delta.content:
                    yield chunk.choices[0].delta.content

        async def stream(_number: int) -> list[float]:
            return await read(pieces())

        return await measure(stream, many, rate, tokens)


if __name__ == "__main__":
    side, given = sys.argv[1], [int(one) for one in sys.argv[2:5]]
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, *given[1:]))
    process.start()
    try:
        address = f"http://127.0.0.1:{here.recv()}/v1"
        os.environ["GENERIC_BASE_URL"] = address
        run = by_agents(*given) if side == "ours" else by_sdk(address, *given)
        print(json.dumps(asyncio.run(run)))
    finally:
        process.terminate()
        process.join()
