"""Load the same cards again and again, as given or as found and approved, in processor time.

It runs with the source of an older commit too, which knows no approvals.

usage: found_cards.py DIRECTORY given|found
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path

from fast_agent.app import FastAgent

ROUNDS = 5


def load(desk: Path, environ: dict[str, str], *, found: bool, approves: bool = False) -> int:
    """Load the cards of a project; return how many there are."""
    cards = desk / ".fast-agent" / "agent-cards"
    if not found:
        program = FastAgent(cwd=desk, environ=environ, config_path=desk / "fastagent.config.yaml")
        return len(program.load_agents(cards))
    from fast_agent.trust.gate import TrustOptions

    program = FastAgent(cwd=desk, environ=environ, trust=TrustOptions(passive=approves))
    program.expect(cards=[cards], found=[cards])
    if approves:
        _ = program.settings
        for one in program.admission.decisions.found_sets():
            program.gate.approvals.approve(one)
        return 0
    names = program.load(cards=[cards], found=[cards])
    if left_out := [*program.admission.decisions.lines()]:
        sys.exit("\n".join(left_out[:5]))
    return len(names)


def main(desk: Path, *, found: bool) -> None:
    """Print the count of the cards, and the median of the processor seconds."""
    home = str(desk.parent / "home")
    environ = {"HOME": home, "FAST_AGENT_HOME": home, "PATH": os.environ["PATH"]}
    if found:
        load(desk, environ, found=True, approves=True)
    seconds: list[float] = []
    count = load(desk, environ, found=found)  # imports
    for _ in range(ROUNDS):
        gc.collect()
        start = time.process_time()
        load(desk, environ, found=found)
        seconds.append(time.process_time() - start)
    print(json.dumps({"cards": count, "seconds": statistics.median(seconds)}))


main(Path(sys.argv[1]), found=sys.argv[2] == "found")
