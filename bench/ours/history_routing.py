"""Play turns of parents whose children end in any order, for one combination of histories.

By source, merge target and number of turns; prints how many were played, and what was not as it
should be.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path
from random import Random

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.agents.history_world import Episode

from fast_agent.cards.agent_config import HISTORIES, HistorySource

TURNS = 5
MEMORY = Path("/dev/shm")
"""Where history files are that need not outlive the run."""


WORDS: dict[str, HistorySource] = {word: word for word in HISTORIES}


async def main(source: str, target: str, turns: int, directory: Path) -> None:
    played, broken = 0, list[str]()
    for seed in range(-(-turns // TURNS)):
        random = Random(f"{source} {target} {seed}")
        episode = Episode(WORDS[source], WORDS[target], directory, random)
        broken += [f"{source} {target} {seed}: {one}" for one in await episode.play(TURNS)]
        played += TURNS
    print(json.dumps({"played": played, "broken": broken[:20], "count": len(broken)}))


logging.disable(logging.CRITICAL)  # children are meant to fail
with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(name))
