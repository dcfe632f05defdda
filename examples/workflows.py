"""Every kind of workflow, run by the real command on the cards beside this file.

The model `scripted` answers what each directory's `script.yaml` says, so that everything runs
without a key or a network and gives the same answer each time. Another model is used by naming it:
`python workflows.py --model sonnet`.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = "scripted?file=script.yaml"
RUNS = {
    "chain": "Search finds umlauts. Exports are twice as fast. The log uses less memory.",
    "parallel": (
        "Our bridge is the longest in Europe, it has been said to have been finished early."
    ),
    "router": "My train was an hour late. What do I get back?",
    "evaluator-optimizer": "The library lends tools now: drills, ladders, sewing machines.",
    "orchestrator": "A fair in our street on 6 June.",
    "iterative-planner": "Who wrote the letter on the lighthouse, of May 1911?",
    "maker": "A: 3 2 1, B: -, C: -. Move the smallest disk to C, then continue.",
}
"""The message each example is sent, by its directory."""


def command(message: str, model: str) -> list[str]:
    """Return the command that runs the example in the working directory."""
    return ["fast-agent", "go", "--card", ".", "--model", model, "--message", message]


def main(arguments: list[str]) -> None:
    """Run the examples one after another; end where one fails."""
    model = arguments[1] if arguments[:1] == ["--model"] and len(arguments) > 1 else SCRIPT
    for example, message in RUNS.items():
        asked = command(message, model)
        print(f"\n{example}\n$ {shlex.join(asked)}", flush=True)
        done = subprocess.run(asked, cwd=HERE / example, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.exit(f"`{example}` failed with status {done.returncode}")


if __name__ == "__main__":
    main(sys.argv[1:])
