"""Load the same cards as given and as found and approved, in turn, in a process that is warm."""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path

from fast_agent.app import FastAgent
from fast_agent.trust.gate import TrustOptions

CONFIG = "fastagent.config.yaml"


def main(directory: str, rounds: int) -> None:
    desk = Path(directory)
    home = str(desk.parent / "home")
    environ = {"HOME": home, "FAST_AGENT_HOME": home, "PATH": os.environ["PATH"]}
    _approve(desk, environ)
    seconds: dict[str, list[float]] = {"given": [], "found": []}
    count = 0
    for number in range(rounds + 1):
        for kind, times in seconds.items():
            gc.collect()
            start = time.process_time()
            count = _load(desk, environ, found=kind == "found")
            if number:  # the first round imports
                times.append(time.process_time() - start)
    given, found = seconds["given"], seconds["found"]
    pairs = [after - before for before, after in zip(given, found, strict=True)]
    facts = {"given": statistics.median(given), "found": statistics.median(found)}
    print(json.dumps({"cards": count, **facts, "more": statistics.median(pairs)}))


def _load(desk: Path, environ: dict[str, str], *, found: bool) -> int:
    cards = desk / ".fast-agent" / "agent-cards"
    config = None if found else desk / CONFIG
    options = TrustOptions()
    program = FastAgent(cwd=desk, environ=environ, config_path=config, trust=options)
    program.expect(cards=[cards], found=[cards] if found else ())
    names = program.load(cards=[cards], found=[cards] if found else ())
    program.admission.require_some(names)
    left_out = [*program.admission.decisions.lines()]
    if left_out:
        sys.exit("\n".join(left_out[:5]))
    return len(names)


def _approve(desk: Path, environ: dict[str, str]) -> None:
    """Approve the project as `fast-agent trust --yes` does."""
    program = FastAgent(cwd=desk, environ=environ, trust=TrustOptions(passive=True))
    cards = desk / ".fast-agent" / "agent-cards"
    program.expect(cards=[cards], found=[cards])
    _ = program.settings
    for one in program.admission.decisions.found_sets():
        program.gate.approvals.approve(one)


main(sys.argv[1], int(sys.argv[2]))
