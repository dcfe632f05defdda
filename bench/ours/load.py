"""Load a directory of cards once and check it, in a process that has loaded none before."""

from __future__ import annotations

import json
import sys
import time

from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set


def main(directory: str) -> None:
    servers = ("docs", "files", "search", "time")
    start = time.perf_counter()
    load = load_cards([directory], environ={})
    problems = (*load.diagnostics, *check_set(load.cards, servers=servers))
    seconds = time.perf_counter() - start
    errors = [f"{found.path}: {found.message}" for found in problems if found.severity == "error"]
    if errors:
        sys.exit("\n".join(errors[:5]))
    print(json.dumps({"seconds": seconds, "cards": len(load.cards)}))


main(sys.argv[1])
