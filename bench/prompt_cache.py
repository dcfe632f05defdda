"""The share of a long conversation that a provider reads from its prompt cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.request import urlopen

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

TURNS = 60


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure a conversation over a server that keeps prompts as Anthropic's API does."""

    def ours() -> Values:
        with setup.served("prompt_server.py") as port:
            setup.ours("prompt_cache.py", port, TURNS)
            return _share(port)

    def theirs(peer: Peer) -> Values:
        with setup.served("prompt_server.py") as port:
            setup.theirs(peer, "prompt_cache.py", port, TURNS)
            return _share(port)

    done = compare(setup, ours, peer=theirs, rounds=1)
    name = f"conversation of {TURNS} turns with tools: input read from the prompt cache"
    yield done.figure("share", name, "%", Goal(90, at_least=True))


def _share(port: int) -> Values:
    with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        totals = json.load(answer)
    return {"share": 100 * totals["read"] / totals["asked"]}
