"""A bare loop at a terminal: echoes what is typed, and shows an answer as its pieces come.

The providers' library reads the answer; nothing is drawn, so no terminal echoes sooner.

usage: bare_terminal.py PORT
"""

from __future__ import annotations

import asyncio
import os
import sys
import tty

from pydantic_ai import messages as lib
from pydantic_ai.direct import model_request_stream

from fast_agent.models.check import Endpoint
from fast_agent.models.providers.classes import connect


async def main(port: str) -> None:
    address = f"http://127.0.0.1:{port}/v1"
    model = connect(Endpoint(provider="generic", model="m", api_key="none", base_url=address))
    asked: list[lib.ModelMessage] = [lib.ModelRequest(parts=[lib.UserPromptPart("go on")])]
    entered = asyncio.Event()

    def typed() -> None:
        keys = os.read(0, 4096)
        os.write(1, keys)
        if b"\r" in keys:
            entered.set()

    tty.setraw(0)
    asyncio.get_running_loop().add_reader(0, typed)
    os.write(1, b"> ")
    await entered.wait()
    async with model_request_stream(model, asked) as stream:
        async for event in stream:
            match event:
                case lib.PartStartEvent(part=lib.TextPart(content=text)):
                    os.write(1, text.encode())
                case lib.PartDeltaEvent(delta=lib.TextPartDelta(content_delta=text)):
                    os.write(1, text.encode())
                case _:
                    pass
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1]))
