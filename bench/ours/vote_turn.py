"""Time whole votes of a MAKER card on a passthrough worker, in processor time: clones and all."""

from __future__ import annotations

import json
import sys
import time

import anyio

from fast_agent import FastAgent


async def main(votes: int) -> None:
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("worker", "Repeat.", model="passthrough", use_history=False)
    fast.maker("vote", worker="worker", k=3)
    draws = 0
    async with fast.run() as app:
        vote = app["vote"]
        await vote.send("hi")
        start = time.process_time()
        for _ in range(votes):
            result = await vote.generate("hi")
            record = result.workflow
            assert record is not None
            draws += int(str(record["total_samples"]))
            vote.clear()
        seconds = time.process_time() - start
    print(json.dumps({"votes": votes / seconds, "draws": draws / seconds}))


anyio.run(main, int(sys.argv[1]))
