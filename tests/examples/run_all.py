"""Runs card sets from Python, one after another: `run_all.py PLACE`, with a JSON object on stdin.

The object has the message to send to each directory below the place.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fast_agent import FastAgent


async def main(place: Path, messages: dict[str, str]) -> None:
    answers: dict[str, str] = {}
    for example, message in messages.items():
        program = FastAgent(example, cwd=place / example, ignore_config=True)
        program.load_agents(".")
        async with program.run(model="scripted?file=script.yaml") as app:
            answers[example] = await app(message)
    print(json.dumps(answers))


asyncio.run(main(Path(sys.argv[1]), json.load(sys.stdin)))
