"""Read many streams of tokens at once by the peer's agents, one for each conversation.

The server and the measure are those of ours.

usage: streams.py CONVERSATIONS TOKENS_PER_SECOND TOKENS
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "ours"))


async def run(fast: Any, streams: Any, many: int, rate: float, tokens: int) -> dict[str, float]:
    """Hold a conversation with each agent."""
    async with fast.run() as app:

        async def stream(number: int) -> list[float]:
            came: list[tuple[float, str]] = []
            agent = app[f"a{number}"]

            def hear(chunk: Any) -> None:
                came.append((time.monotonic(), chunk.text))

            stop = agent.add_stream_listener(hear)
            await agent.send("go on")
            stop()
            delays: list[float] = []
            text = ""
            for now, piece in came:
                text += piece
                *whole, text = text.split(" ")
                delays.extend((now - float(sent)) * 1e3 for sent in whole)
            return delays

        return await streams.measure(stream, many, rate, tokens)


def main(many: int, rate: int, tokens: int) -> None:
    streams: Any = import_module("streams")
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=streams.serve, args=(there, rate, tokens))
    process.start()
    try:
        address = f"http://127.0.0.1:{here.recv()}/v1"
        config = f"generic: {{base_url: '{address}', api_key: none}}\n"
        Path("fastagent.config.yaml").write_text(config)
        peer: Any = import_module("fast_agent")
        fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)

        async def nothing() -> None:
            pass

        for number in range(many):
            add = fast.agent(f"a{number}", instruction="Be brief.", model="generic.m")
            add(nothing)
        print(json.dumps(asyncio.run(run(fast, streams, many, rate, tokens))))
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main(*(int(one) for one in sys.argv[1:4]))
