"""A process that reads and never answers; with `stubborn` it does not leave when asked to."""

import signal
import sys
import time

if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("starting up", file=sys.stderr, flush=True)
for _line in sys.stdin:
    pass
if "stubborn" in sys.argv:
    time.sleep(600)
