"""Run again, alone, the few tests that failed beside others: `python -m tests.alone`.

A test that then passes has a race, in itself or in the product. It is named, so that somebody finds
it, and does not hold back what others finished. One that fails again fails the run, and so do more
than `MOST` failures: those are no races.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 4
KEPT = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Return the exit status of the whole run."""
    try:
        failed = sorted(json.loads(KEPT.read_text("utf-8")))
    except (OSError, ValueError):
        failed = []
    if not 0 < len(failed) <= MOST or not all("::" in one for one in failed):
        return 1
    print(f"\n{len(failed)} failed beside others; alone:", flush=True)
    status = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    if status == 0:
        print("\nThese have a race that must be found:", *failed, sep="\n  ", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
