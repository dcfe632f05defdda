"""Load a directory of cards once with the peer's loader."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from typing import Any


def main(directory: str) -> None:
    # Imported by name, because type checkers know our package of that name only.
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)
    start = time.perf_counter()
    names = fast.load_agents(directory)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "cards": len(names)}))


main(sys.argv[1])
