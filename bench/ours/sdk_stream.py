"""Read an answer of a model server by the library of the providers alone: its share of a processor.

usage: sdk_stream.py PORT SECONDS
"""

from __future__ import annotations

import json
import sys
import time

import anyio
from pydantic_ai import messages as lib
from pydantic_ai.direct import model_request_stream

from fast_agent.models.check import Endpoint
from fast_agent.models.providers.classes import connect


async def main(port: str, seconds: float) -> None:
    address = f"http://127.0.0.1:{port}/v1"
    model = connect(Endpoint(provider="generic", model="m", api_key="none", base_url=address))
    asked: list[lib.ModelMessage] = [lib.ModelRequest(parts=[lib.UserPromptPart("go on")])]
    async with model_request_stream(model, asked) as stream:
        pieces = aiter(stream)
        await anext(pieces)  # what the first piece builds is not counted
        worked, began = time.process_time(), time.perf_counter()
        async for _ in pieces:
            if time.perf_counter() - began > seconds:
                break
        share = 100 * (time.process_time() - worked) / (time.perf_counter() - began)
    print(json.dumps({"share": share}))


anyio.run(main, sys.argv[1], float(sys.argv[2]))
