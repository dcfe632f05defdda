"""Soak the servers of agents: `python -m tests.soak.run`, for `SOAK_MINUTES`, 30 if not said.

`SOAK_SEED` draws other edits and other clients. Exit status: 0 all held, 1 something did not.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

import anyio
from tests.soak.report import check_growth, render
from tests.soak.soak import Plan, Soak


def main() -> int:
    """Run it, and print what was found."""
    minutes = float(os.environ.get("SOAK_MINUTES") or 30)
    plan = Plan(seconds=minutes * 60, seed=int(os.environ.get("SOAK_SEED") or 1))
    # Clients here leave as answers come, and the SDK logs each with a traceback.
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
    print(f"soaking for {minutes:g} minutes, seed {plan.seed}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        soak = Soak(Path(place).resolve(), plan)
        settling = anyio.run(soak.run)
        check_growth(soak.findings, settling)
        print(render(soak, settling), end="")
    return 1 if soak.findings.violation_count else 0


if __name__ == "__main__":
    sys.exit(main())
