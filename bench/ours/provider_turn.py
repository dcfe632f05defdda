"""Turns with a model of a provider on loopback, and the same requests by the provider's SDK alone.

usage: provider_turn.py TURNS MESSAGES

MESSAGES are in the conversation before each turn.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
import time
from statistics import median
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from openai import AsyncOpenAI

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from multiprocessing.connection import Connection

BATCH = 10
_MESSAGE = {"role": "assistant", "content": "hi"}
_USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
_ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": _MESSAGE}],
        "usage": _USAGE,
    }
).encode()
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_ANSWER),
    _ANSWER,
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of a connection at once."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(_REPLY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def serve(port: Connection) -> None:
    """Answer requests in a process of its own, whose work is not counted."""

    async def run() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def batch(ask: Callable[[], Awaitable[object]]) -> float:
    """Return the processor seconds of one request, over a batch."""
    start = time.process_time()
    for _ in range(BATCH):
        await ask()
    return (time.process_time() - start) / BATCH


async def main(turns: int, count: int, port: int) -> None:
    """Time batches of each side in turn, after one that does not count."""
    address = f"http://127.0.0.1:{port}/v1"
    os.environ["GENERIC_BASE_URL"] = address
    fast = FastAgent("bench", ignore_config=True)
    past = [("user", "a question"), ("assistant", "an answer")] * (count // 2)
    with NamedTemporaryFile("w", suffix=".txt") as history:
        history.writelines(f"---{role.upper()}\n{text}\n" for role, text in past)
        history.flush()
        messages = [history.name] if past else []
        fast.agent("ann", "Be brief.", model="generic.m", use_history=False, messages=messages)
        await compare(fast, address, turns, past)


async def compare(fast: FastAgent, address: str, turns: int, past: list[tuple[str, str]]) -> None:
    """Print the processor seconds of a turn and of the SDK's request with the same messages."""
    said = [("system", "Be brief."), *past, ("user", "hello")]
    sent = [{"role": role, "content": text} for role, text in said]
    ours: list[float] = []
    bare: list[float] = []
    async with AsyncOpenAI(base_url=address, api_key="none") as client, fast.run() as app:
        agent = app["ann"]

        async def ask_bare() -> None:
            answer = await client.chat.completions.create(model="m", messages=sent)  # pyright: ignore[reportArgumentType]
            if answer.choices[0].message.content != "hi":
                sys.exit("the SDK did not get the answer")

        async def ask_ours() -> None:
            if await agent.send("hello") != "hi":
                sys.exit("the agent did not get the answer")

        for _ in range(turns // BATCH + 1):
            ours.append(await batch(ask_ours))
            bare.append(await batch(ask_bare))
    turn, request = median(ours[1:]), median(bare[1:])
    print(json.dumps({"turn": turn, "request": request}))


if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,))
    process.start()
    try:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), here.recv()))
    finally:
        process.terminate()
        process.join()
