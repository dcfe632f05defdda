"""Run again, alone, the few tests that failed beside others: `python -m tests.alone`.

A test that then passes has a race, in itself or in the product. It is named, so that somebody finds
it, and does not hold back what others finished. One that fails again fails the run, and so do more
than `MAX_FAILURES` failures: those are no races. Of these the first are run, since only here does
a failure show the values it compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MAX_FAILURES = 4
KEPT = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Return the exit status of the whole run."""
    try:
        failed = sorted(json.loads(KEPT.read_text("utf-8")))
    except (OSError, ValueError):
        failed = []
    if not failed or not all("::" in one for one in failed):
        return 1
    again = failed[:MAX_FAILURES]
    shown = "alone" if again == failed else f"the first {MAX_FAILURES} alone"
    print(f"\n{len(failed)} failed beside others; {shown}:", flush=True)
    status = subprocess.run([sys.executable, "-m", "pytest", *again], check=False).returncode
    if again != failed:
        return 1
    if status == 0:
        print("\nThese have a race that must be found:", *failed, sep="\n  ", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
