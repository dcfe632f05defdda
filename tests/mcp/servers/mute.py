"""A process that reads and never answers; with `stubborn` it does not leave when asked to.

It makes the file named second once it has said that it starts.
"""

import signal
import sys
import time
from pathlib import Path

if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("starting up", file=sys.stderr, flush=True)
if len(sys.argv) > 2:
    Path(sys.argv[2]).touch()
for _line in sys.stdin:
    pass
if "stubborn" in sys.argv:
    time.sleep(600)
